"""Triton model: T5 in NumPy, tokens in, tokens out."""

import json
from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils
from t5 import T5

INPUTS = ("input_ids", "attention_mask")
OUTPUT = "output"


class TritonPythonModel:
    """input_ids, attention_mask: INT32 [n, source] -> output: INT32 [n, target]."""

    @staticmethod
    def auto_complete_config(auto_complete_model_config):
        """Say what config.pbtxt leaves out; what it says must agree."""
        for name in INPUTS:
            auto_complete_model_config.add_input({"name": name, "data_type": "TYPE_INT32", "dims": [-1]})
        auto_complete_model_config.add_output({"name": OUTPUT, "data_type": "TYPE_INT32", "dims": [-1]})
        if auto_complete_model_config.as_dict()["max_batch_size"] == 0:
            auto_complete_model_config.set_max_batch_size(8)
        auto_complete_model_config.set_dynamic_batching()
        return auto_complete_model_config

    def initialize(self, args):
        """Read the weights beside this file, once for each instance."""
        folder = Path(args["model_repository"]) / args["model_version"]
        with np.load(folder / "weights.npz") as weights:
            self.network = T5(json.loads((folder / "config.json").read_text()), dict(weights))
        parameters = json.loads(args["model_config"])["parameters"]
        self.max_new_tokens = int(parameters["max_new_tokens"]["string_value"])

    def execute(self, requests):
        """Answer what the dynamic batcher put together, all of one length, with one greedy decoding."""
        ids, mask = (
            [pb_utils.get_input_tensor_by_name(request, name).as_numpy() for request in requests]
            for name in INPUTS
        )
        refused = [self.refusal(part) for part in ids]
        # A request with a token that does not exist must not spoil its neighbours'.
        valid = [np.where((part < 0) | (part >= self.network.vocabulary_size), 0, part) for part in ids]
        tokens = self.network.generate(np.concatenate(valid), np.concatenate(mask), self.max_new_tokens)
        ends = np.cumsum([len(part) for part in ids])[:-1]
        return [
            error or pb_utils.InferenceResponse([pb_utils.Tensor(OUTPUT, self.network.trim(part))])
            for error, part in zip(refused, np.split(tokens, ends), strict=True)
        ]

    def refusal(self, ids):
        """Return an error that SageMaker passes on as the caller's, 400, or None for tokens that exist."""
        size = self.network.vocabulary_size
        if ((ids >= 0) & (ids < size)).all():
            return None
        message = f"input_ids: every token must be from 0 to {size - 1}, got {ids.min()} to {ids.max()}"
        return pb_utils.InferenceResponse(
            error=pb_utils.TritonError(message, pb_utils.TritonError.INVALID_ARG)
        )

    def finalize(self):
        """Give the weights back before the process ends."""
        self.network = None
