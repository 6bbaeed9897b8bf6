"""Triton model: how unusual a pump's readings are."""

from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils
from detector import distances, load_detector, z_scores


class TritonPythonModel:
    """readings: FP32 [n, 4] -> distance: FP32 [n, 1]; z_scores: FP32 [n, 4]; is_anomaly: BOOL [n, 1]."""

    def initialize(self, args):
        """Read the parameters beside this file, once for each instance."""
        version_directory = Path(args["model_repository"]) / args["model_version"]
        self.detector = load_detector(version_directory / "parameters.json")

    def execute(self, requests):
        """Answer each request by itself."""
        return [self.respond(request) for request in requests]

    def respond(self, request):
        """Return the response to one request, or an error when a sensor sent no number."""
        readings = pb_utils.get_input_tensor_by_name(request, "readings").as_numpy()
        if not np.isfinite(readings).all():
            row, column = np.argwhere(~np.isfinite(readings))[0]
            message = f"readings[{row}][{column}]: must be a finite number, got {readings[row, column]}"
            return refusal(message)
        scores = z_scores(self.detector, readings)
        distance = distances(self.detector, scores)
        return pb_utils.InferenceResponse(
            [
                pb_utils.Tensor("distance", distance.astype(np.float32)),
                pb_utils.Tensor("z_scores", scores.astype(np.float32)),
                pb_utils.Tensor("is_anomaly", distance > self.detector.threshold),
            ]
        )


def refusal(message):
    """Return an error response that SageMaker passes on as the caller's fault: 400, not 500."""
    return pb_utils.InferenceResponse(error=pb_utils.TritonError(message, pb_utils.TritonError.INVALID_ARG))
