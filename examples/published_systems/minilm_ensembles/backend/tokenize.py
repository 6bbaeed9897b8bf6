"""Triton model: sentences to WordPiece tokens, as all-MiniLM-L6-v2 was trained on them."""

import json
from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils
from tokenizers import Tokenizer


class TritonPythonModel:
    """INPUT0: BYTES [n, 1], UTF-8 -> input_ids, attention_mask: INT32 [n, tokens of the longest sentence]."""

    def initialize(self, args):
        """Read the tokenizer beside this file, once for each instance."""
        config = json.loads(args["model_config"])
        length = int(config["parameters"]["max_sequence_length"]["string_value"])
        folder = Path(args["model_repository"]) / args["model_version"]
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        # The file asks for 128 tokens, always; the model was made for up to 256 and needs no more padding
        # than the longest sentence of a request.
        self.tokenizer.enable_truncation(length)
        self.tokenizer.enable_padding()

    def execute(self, requests):
        """Answer each request by itself: its sentences are padded to its own longest."""
        return [self.answer(request) for request in requests]

    def answer(self, request):
        """Return the tokens, or an error that SageMaker passes on as the caller's: 400, not 500."""
        elements = pb_utils.get_input_tensor_by_name(request, "INPUT0").as_numpy().ravel()
        try:
            sentences = [element.decode() for element in elements]
        except UnicodeDecodeError as error:
            message = f"INPUT0: every sentence must be UTF-8, got a byte that is not ({error})"
            refusal = pb_utils.TritonError(message, pb_utils.TritonError.INVALID_ARG)
            return pb_utils.InferenceResponse(error=refusal)
        encodings = self.tokenizer.encode_batch(sentences)
        columns = {
            "input_ids": [encoding.ids for encoding in encodings],
            "attention_mask": [encoding.attention_mask for encoding in encodings],
        }
        return pb_utils.InferenceResponse(
            [pb_utils.Tensor(name, np.array(rows, dtype=np.int32)) for name, rows in columns.items()]
        )
