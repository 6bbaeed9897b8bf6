"""Turns the output of a classifier into the best classes, with their scores and labels.

``model new --task classify`` has written this file. It needs only NumPy. All settings are the
parameters in config.pbtxt:

activation
    ``softmax`` if the network's output are logits, ``none`` if they are probabilities.

How many classes are returned is the size of the outputs. The labels of the classes are the lines of
labels.txt beside this file. If a class has no line, its label is its number.
"""

import json
from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """Triton creates one object of this class for each instance of the model."""

    def initialize(self, args):
        """Read the settings and the labels."""
        config = json.loads(args["model_config"])
        self.activation = config["parameters"]["activation"]["string_value"]
        self.is_batched = config["max_batch_size"] > 0
        scores = pb_utils.get_output_config_by_name(config, "scores")
        self.most = int(scores["dims"][-1])
        folder = Path(args["model_repository"]) / args["model_version"]
        labels = folder / "labels.txt"
        self.labels = labels.read_text("utf-8").splitlines() if labels.is_file() else []

    def execute(self, requests):
        """Return one response for each request, in the same order."""
        return [self.respond(request) for request in requests]

    def respond(self, request):
        """Name the classes of each picture of one request."""
        values = pb_utils.get_input_tensor_by_name(request, "predictions").as_numpy()
        values = values.astype("float32").reshape(len(values), -1)
        if self.activation == "softmax":
            values = softmax(values)
        classes = np.argsort(-values, axis=1, kind="stable")[:, : self.most]
        scores = np.take_along_axis(values, classes, axis=1)
        labels = np.array([[self.label(each) for each in row] for row in classes], "object")
        found = {"scores": scores, "classes": classes.astype("int32"), "labels": labels}
        return pb_utils.InferenceResponse(
            [
                pb_utils.Tensor(name, array if self.is_batched else array[0])
                for name, array in found.items()
            ]
        )

    def label(self, number):
        """Return the label of a class as bytes."""
        known = 0 <= number < len(self.labels)
        return (self.labels[number] if known else str(number)).encode()


def softmax(values):
    """Turn logits into probabilities."""
    powers = np.exp(values - values.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)
