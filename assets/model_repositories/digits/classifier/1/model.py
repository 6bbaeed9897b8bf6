"""Triton model: pixels of handwritten digits to logits."""

from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils
from network import forward, load_weights


class TritonPythonModel:
    """pixels: FP32 [n, 1, 8, 8], 0 to 1 -> logits: FP32 [n, 10], one for each digit."""

    def initialize(self, args):
        """Read the weights beside this file, once for each instance."""
        version_directory = Path(args["model_repository"]) / args["model_version"]
        self.weights = load_weights(version_directory / "weights.npz")

    def execute(self, requests):
        """Answer what the dynamic batcher put together with one pass through the network."""
        inputs = [pb_utils.get_input_tensor_by_name(request, "pixels").as_numpy() for request in requests]
        logits = forward(self.weights, np.concatenate(inputs))
        ends = np.cumsum([len(pixels) for pixels in inputs])[:-1]
        return [respond(pixels, part) for pixels, part in zip(inputs, np.split(logits, ends), strict=True)]


def respond(pixels, logits):
    """Return one request's logits, or an error for it alone when its pixels are not numbers."""
    if not np.isfinite(pixels).all():
        message = "pixels: every value must be a finite number, got NaN or infinity"
        return refusal(message)
    return pb_utils.InferenceResponse([pb_utils.Tensor("logits", logits)])


def refusal(message):
    """Return an error response that SageMaker passes on as the caller's fault: 400, not 500."""
    return pb_utils.InferenceResponse(error=pb_utils.TritonError(message, pb_utils.TritonError.INVALID_ARG))
