"""Triton model: token embeddings to one embedding of length 1 for each sentence."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    """token_embeddings FP32 [n, tokens, 384], attention_mask INT32 [n, tokens] -> embedding FP32 [n, 384]."""

    def execute(self, requests):
        """Answer each request by itself: lengths differ from one to the next."""
        return [self.answer(request) for request in requests]

    def answer(self, request):
        """Return the mean over the tokens that are no padding, scaled to length 1."""
        states = pb_utils.get_input_tensor_by_name(request, "token_embeddings").as_numpy()
        mask = pb_utils.get_input_tensor_by_name(request, "attention_mask").as_numpy()
        weights = mask[:, :, np.newaxis].astype(np.float32)
        means = (states * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1e-9)
        lengths = np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)
        return pb_utils.InferenceResponse([pb_utils.Tensor("embedding", means / lengths)])
