"""Triton model: PNG files to normalised pixels."""

import numpy as np
import triton_python_backend_utils as pb_utils
from pixels import pixels_of
from png_decoder import PngError


class TritonPythonModel:
    """image: BYTES [n, 1], one PNG file each -> pixels: FP32 [n, 1, 8, 8], 0 to 1."""

    def execute(self, requests):
        """Answer each request by itself, so that a bad image fails only the request it came in."""
        return [respond(request) for request in requests]


def respond(request):
    """Return the response to one request: its pixels, or an error that names the bad image."""
    images = pb_utils.get_input_tensor_by_name(request, "image").as_numpy().reshape(-1)
    pixels = []
    for index, image in enumerate(images):
        try:
            pixels.append(pixels_of(bytes(image)))
        except PngError as error:
            message = f"image[{index}]: {error}, got {len(image)} bytes; send one whole PNG file per element"
            return refusal(message)
    return pb_utils.InferenceResponse([pb_utils.Tensor("pixels", np.stack(pixels))])


def refusal(message):
    """Return an error response that SageMaker passes on as the caller's fault: 400, not 500."""
    return pb_utils.InferenceResponse(error=pb_utils.TritonError(message, pb_utils.TritonError.INVALID_ARG))
