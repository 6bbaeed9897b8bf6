"""Triton model: ResNet-50's contract, kept by a small network in NumPy."""

import json
from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils
from network import load_weights, log_probabilities


class TritonPythonModel:
    """FP32 [n, 3, 224, 224] -> FP32 [n, 1000], by whatever names the configuration gives them."""

    def initialize(self, args):
        """Read the weights beside this file, and the tensors' names from the configuration."""
        config = json.loads(args["model_config"])
        self.input, self.output = config["input"][0]["name"], config["output"][0]["name"]
        version_directory = Path(args["model_repository"]) / args["model_version"]
        weights = load_weights(version_directory / "weights.npz")
        # Half precision is how the weights are kept; NumPy computes in it a hundred times slower.
        self.weights = {name: value.astype(np.float32) for name, value in weights.items()}

    def execute(self, requests):
        """Answer each request with one pass through the network."""
        return [self.respond(request) for request in requests]

    def respond(self, request):
        """Return the scores of one request; the class for "no object" is not among ResNet's 1,000."""
        pixels = pb_utils.get_input_tensor_by_name(request, self.input).as_numpy()
        scores = log_probabilities(self.weights, pixels)[:, 1:].astype(np.float32)
        return pb_utils.InferenceResponse([pb_utils.Tensor(self.output, np.ascontiguousarray(scores))])
