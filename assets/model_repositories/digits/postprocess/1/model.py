"""Triton model: logits to the name of the digit and the probability of each digit."""

from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils
from scores import load_labels, most_likely, softmax


class TritonPythonModel:
    """logits: FP32 [n, 10] -> label: BYTES [n, 1]; probabilities: FP32 [n, 10]."""

    def initialize(self, args):
        """Read the labels beside this file, once for each instance."""
        version_directory = Path(args["model_repository"]) / args["model_version"]
        self.labels = load_labels(version_directory / "labels.txt")

    def execute(self, requests):
        """Answer each request by itself."""
        return [self.respond(request) for request in requests]

    def respond(self, request):
        """Return the response to one request: labels and probabilities, or an error."""
        logits = pb_utils.get_input_tensor_by_name(request, "logits").as_numpy()
        if not np.isfinite(logits).all():
            message = "logits: every value must be a finite number, got NaN or infinity"
            return refusal(message)
        probabilities = softmax(logits)
        return pb_utils.InferenceResponse(
            [
                pb_utils.Tensor("label", most_likely(self.labels, probabilities)),
                pb_utils.Tensor("probabilities", probabilities),
            ]
        )


def refusal(message):
    """Return an error response that SageMaker passes on as the caller's fault: 400, not 500."""
    return pb_utils.InferenceResponse(error=pb_utils.TritonError(message, pb_utils.TritonError.INVALID_ARG))
