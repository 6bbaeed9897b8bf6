"""Alerts for readings that are far from their expected values."""

import numpy as np
import triton_python_backend_utils as pb_utils

THRESHOLD = 10.0


class TritonPythonModel:
    """readings, expected: FP32 [n] -> alerts: BOOL [n], distance: FP32 [n]."""

    def execute(self, requests):
        """Return ``alerts`` and ``distance`` for each request."""
        return [self.respond(request) for request in requests]

    def respond(self, request):
        """Return the response to one request, which may be a batch of rows."""
        readings = pb_utils.get_input_tensor_by_name(request, "readings").as_numpy()
        expected = pb_utils.get_input_tensor_by_name(request, "expected").as_numpy()
        distance = np.abs(readings - expected).astype(np.float32)
        outputs = [pb_utils.Tensor("alerts", distance > THRESHOLD), pb_utils.Tensor("distance", distance)]
        return pb_utils.InferenceResponse(outputs)
