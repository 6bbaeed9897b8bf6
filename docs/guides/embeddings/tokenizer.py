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
        texts = pb_utils.get_input_tensor_by_name(request, "text").as_numpy()
        texts = [text.decode() for text in texts.ravel()]
        found = self.tokenizer.encode_batch(texts)
        tensors = {
            "input_ids": [each.ids for each in found],
            "attention_mask": [each.attention_mask for each in found],
            "token_type_ids": [each.type_ids for each in found],
        }
        arrays = {name: np.array(rows, "int64") for name, rows in tensors.items()}
        outputs = [pb_utils.Tensor(name, array) for name, array in arrays.items()]
        return pb_utils.InferenceResponse(outputs)
