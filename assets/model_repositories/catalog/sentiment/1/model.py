"""Triton model: the sentiment of English texts."""

from pathlib import Path

import numpy as np
import triton_python_backend_utils as pb_utils
from lexicon import label_of, load_lexicon, sentiment


class TritonPythonModel:
    """text: BYTES [n, 1], UTF-8 -> score: FP32 [n, 1], -1 to 1; label: BYTES [n, 1]."""

    def initialize(self, args):
        """Read the lexicon beside this file, once for each instance."""
        version_directory = Path(args["model_repository"]) / args["model_version"]
        self.lexicon = load_lexicon(version_directory / "lexicon.json")

    def execute(self, requests):
        """Answer each request by itself, so that a bad text fails only the request it came in."""
        return [self.respond(request) for request in requests]

    def respond(self, request):
        """Return the response to one request: scores and labels, or an error that names the text."""
        texts = pb_utils.get_input_tensor_by_name(request, "text").as_numpy().reshape(-1)
        scores = []
        for index, text in enumerate(texts):
            try:
                scores.append(sentiment(self.lexicon, bytes(text).decode("utf-8")))
            except UnicodeDecodeError as error:
                message = f"text[{index}]: must be UTF-8, got {error.reason} at byte {error.start}"
                return refusal(message)
        labels = [label_of(score).encode() for score in scores]
        return pb_utils.InferenceResponse(
            [
                pb_utils.Tensor("score", np.array(scores, np.float32)[:, np.newaxis]),
                pb_utils.Tensor("label", np.array(labels, np.object_)[:, np.newaxis]),
            ]
        )


def refusal(message):
    """Return an error response that SageMaker passes on as the caller's fault: 400, not 500."""
    return pb_utils.InferenceResponse(error=pb_utils.TritonError(message, pb_utils.TritonError.INVALID_ARG))
