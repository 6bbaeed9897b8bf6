"""The average of each reading's neighbours."""

import numpy as np
import triton_python_backend_utils as pb_utils

WINDOW = 5


class TritonPythonModel:
    """Averages each row over a window, without the reading itself."""

    def execute(self, requests):
        """Return ``expected`` for each request."""
        return [self._answer(request) for request in requests]

    def _answer(self, request):
        readings = pb_utils.get_input_tensor_by_name(request, "readings").as_numpy()
        expected = np.stack([smooth(row) for row in readings]).astype(np.float32)
        return pb_utils.InferenceResponse(output_tensors=[pb_utils.Tensor("expected", expected)])


def smooth(row):
    """Return the mean of the neighbours of each value; at the ends there are fewer of them."""
    kernel = np.ones(WINDOW)
    kernel[WINDOW // 2] = 0
    if row.size < WINDOW:
        return np.full_like(row, row.mean())
    total = np.convolve(row, kernel, mode="same")
    return total / np.convolve(np.ones_like(row), kernel, mode="same")
