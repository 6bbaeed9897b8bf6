"""A logistic regression with the weights of weights.json. Replace it with your model."""

import json
from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Returns a score from 0 to 1 for each row of features."""

    def initialize(self, args):
        """Read the weights once."""
        file = Path(args["model_repository"], args["model_version"], "weights.json")
        parameters = json.loads(file.read_text())
        self.weights = np.array(parameters["weights"], np.float32)
        self.bias = np.float32(parameters["bias"])

    def execute(self, requests):
        """Return one response for each request."""
        return [self.respond(request) for request in requests]

    def respond(self, request):
        """Score the rows of one request."""
        features = pb_utils.get_input_tensor_by_name(request, "features").as_numpy()
        score = 1 / (1 + np.exp(-(features @ self.weights + self.bias)))
        return pb_utils.InferenceResponse(
            [pb_utils.Tensor("score", score[:, None].astype(np.float32))]
        )
