"""Triton model: what the DALI pipeline does, by Pillow on the CPU. It runs in the place of DALI."""

import numpy as np
import triton_python_backend_utils as pb_utils
from PIL import UnidentifiedImageError
from preprocessing import imagenet_pixels

SIDE = 299


class TritonPythonModel:
    """DALI_INPUT_0: UINT8 [n, bytes], a JPEG file in each row -> DALI_OUTPUT_0: FP32 [n, 299, 299, 3]."""

    def execute(self, requests):
        """Answer each request by itself, so that a file that is not a picture fails only its own request."""
        return [self.answer(request) for request in requests]

    def answer(self, request):
        """Return the pixels, or an error that SageMaker passes on as the caller's: 400, not 500."""
        files = pb_utils.get_input_tensor_by_name(request, "DALI_INPUT_0").as_numpy()
        try:
            pixels = np.stack([imagenet_pixels(file.tobytes(), SIDE) for file in files])
        except (UnidentifiedImageError, OSError) as error:
            message = f"INPUT: every row must be a whole JPEG file ({error})"
            refusal = pb_utils.TritonError(message, pb_utils.TritonError.INVALID_ARG)
            return pb_utils.InferenceResponse(error=refusal)
        return pb_utils.InferenceResponse([pb_utils.Tensor("DALI_OUTPUT_0", pixels)])
