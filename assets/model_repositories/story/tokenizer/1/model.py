"""Triton model: a text to the ids of its tokens."""

from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils
from tokenizers import Tokenizer


class TritonPythonModel:
    """text_input: BYTES [1] -> input_ids: INT32 [n]."""

    def initialize(self, args):
        """Read the tokenizer of this version."""
        folder = Path(args["model_repository"]) / args["model_version"]
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))

    def execute(self, requests):
        """Answer each request by itself."""
        return [self.respond(request) for request in requests]

    def respond(self, request):
        """Return the tokens of one text."""
        text = pb_utils.get_input_tensor_by_name(request, "text_input").as_numpy()[0].decode("utf-8")
        ids = np.array(self.tokenizer.encode(text).ids, np.int32)
        return pb_utils.InferenceResponse([pb_utils.Tensor("input_ids", ids)])
