"""Triton model: what the DALI pipeline does, by Pillow on the CPU."""

import numpy as np
import triton_python_backend_utils as pb_utils
from PIL import UnidentifiedImageError
from preprocessing import inception_pixels


class TritonPythonModel:
    """DALI_INPUT_0: UINT8 [n, bytes], a JPEG file a row -> DALI_OUTPUT_0: FP32 [n, 299, 299, 3], -1 to 1."""

    def execute(self, requests):
        """Answer each request by itself, so that a file that is no picture fails only its own request."""
        return [respond(request) for request in requests]


def respond(request):
    """Return the response to one request: its pixels, or an error that names the bad file."""
    files = pb_utils.get_input_tensor_by_name(request, "DALI_INPUT_0").as_numpy()
    pixels = []
    for index, file in enumerate(files):
        try:
            pixels.append(inception_pixels(file.tobytes()))
        except (UnidentifiedImageError, OSError) as error:
            message = f"INPUT[{index}]: must be a whole JPEG file, got {file.size} bytes ({error})"
            return refusal(message)
    return pb_utils.InferenceResponse([pb_utils.Tensor("DALI_OUTPUT_0", np.stack(pixels))])


def refusal(message):
    """Return an error response that SageMaker passes on as the caller's fault: 400, not 500."""
    return pb_utils.InferenceResponse(error=pb_utils.TritonError(message, pb_utils.TritonError.INVALID_ARG))
