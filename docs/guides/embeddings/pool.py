"""Triton model: the vectors of the tokens to one vector of length 1 for each text."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        vectors = pb_utils.get_input_tensor_by_name(request, "last_hidden_state").as_numpy()
        mask = pb_utils.get_input_tensor_by_name(request, "attention_mask").as_numpy()[:, :, None]
        means = (vectors * mask).sum(axis=1) / mask.sum(axis=1)
        embedding = means / np.linalg.norm(means, axis=1, keepdims=True)
        return pb_utils.InferenceResponse([pb_utils.Tensor("embedding", embedding.astype("float32"))])
