"""Triton model: texts to tokens, with the tokenizer.json of the exported model."""

from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils
from tokenizers import Tokenizer


class TritonPythonModel:
    def initialize(self, args):
        folder = Path(args["model_repository"], args["model_version"])
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.enable_truncation(256)
        self.tokenizer.enable_padding()

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        texts = pb_utils.get_input_tensor_by_name(request, "text").as_numpy().ravel()
        found = self.tokenizer.encode_batch([text.decode() for text in texts])
        tensors = {
            "input_ids": [each.ids for each in found],
            "attention_mask": [each.attention_mask for each in found],
            "token_type_ids": [each.type_ids for each in found],
        }
        return pb_utils.InferenceResponse(
            [pb_utils.Tensor(name, np.array(rows, "int64")) for name, rows in tensors.items()]
        )
