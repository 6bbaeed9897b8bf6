"""Triton model: tokens to token embeddings, by ONNX Runtime inside the Python backend.

For servers without an ONNX Runtime backend of their own, such as the one that runs on a laptop. In the image
the same file is better served by Triton's own backend, or compiled by TensorRT: see README.md.
"""

import json
from pathlib import Path

import numpy as np
import onnxruntime
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """input_ids, attention_mask: INT32 [n, tokens] -> token_embeddings: FP32 [n, tokens, 384]."""

    def initialize(self, args):
        """Read the graph beside this file, once for each instance."""
        config = json.loads(args["model_config"])
        options = onnxruntime.SessionOptions()
        # Each instance is a process with a pool of its own; together they should not ask for more cores
        # than there are.
        options.intra_op_num_threads = int(config["parameters"]["intra_op_num_threads"]["string_value"])
        graph = Path(args["model_repository"]) / args["model_version"] / "model.onnx"
        providers = ["CPUExecutionProvider"]
        self.session = onnxruntime.InferenceSession(str(graph), options, providers=providers)

    def execute(self, requests):
        """Answer what the dynamic batcher put together, all of one length, with one pass."""
        ids = [pb_utils.get_input_tensor_by_name(request, "input_ids").as_numpy() for request in requests]
        mask = [
            pb_utils.get_input_tensor_by_name(request, "attention_mask").as_numpy() for request in requests
        ]
        feed = {"input_ids": np.concatenate(ids), "attention_mask": np.concatenate(mask)}
        (states,) = self.session.run(["token_embeddings"], feed)
        ends = np.cumsum([len(rows) for rows in ids])[:-1]
        return [
            pb_utils.InferenceResponse([pb_utils.Tensor("token_embeddings", part)])
            for part in np.split(states, ends)
        ]

    def finalize(self):
        """Give the session's memory back before the process ends."""
        self.session = None
