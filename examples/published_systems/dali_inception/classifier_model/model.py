"""Triton model: Inception v3's contract, kept by a small network in NumPy."""

from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils
from network import load_weights, log_probabilities

OUTPUT = "InceptionV3/Predictions/Softmax"


class TritonPythonModel:
    """input: FP32 [n, 299, 299, 3], -1 to 1 -> probabilities FP32 [n, 1001], "background" first."""

    def initialize(self, args):
        """Read the weights beside this file, once for each instance."""
        version_directory = Path(args["model_repository"]) / args["model_version"]
        self.weights = load_weights(version_directory / "weights.npz")

    def execute(self, requests):
        """Answer each request with one pass through the network."""
        return [self.respond(request) for request in requests]

    def respond(self, request):
        """Return the probabilities for one request."""
        pixels = pb_utils.get_input_tensor_by_name(request, "input").as_numpy()
        scores = log_probabilities(self.weights, pixels.transpose(0, 3, 1, 2))
        return pb_utils.InferenceResponse([pb_utils.Tensor(OUTPUT, np.exp(scores).astype(np.float32))])
