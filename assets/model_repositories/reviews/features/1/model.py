"""Triton model: the features of a review."""

import numpy as np
import triton_python_backend_utils as pb_utils

PRAISE = ("good", "great", "love")
COMPLAINT = ("bad", "broken", "refund")


class TritonPythonModel:
    """text: BYTES [n, 1], UTF-8 -> features: FP32 [n, 4]."""

    def execute(self, requests):
        """Answer each request by itself."""
        return [self.respond(request) for request in requests]

    def respond(self, request):
        """Return the response to one request."""
        texts = pb_utils.get_input_tensor_by_name(request, "text").as_numpy().reshape(-1)
        rows = np.array([features(bytes(text).decode("utf-8", "replace")) for text in texts], np.float32)
        return pb_utils.InferenceResponse([pb_utils.Tensor("features", rows.reshape(-1, 4))])


def features(text):
    """Return the four numbers that describe a text."""
    words = text.lower().split()
    praise, complaint = (sum(word in known for word in words) for known in (PRAISE, COMPLAINT))
    return [len(text) / 100, text.count("!"), praise, complaint]
