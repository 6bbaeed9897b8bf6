"""Triton model: one vector of length 1 for each text."""

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        vectors = self.read(request, "last_hidden_state")
        mask = self.read(request, "attention_mask")[:, :, None]
        means = (vectors * mask).sum(axis=1) / mask.sum(axis=1)
        embedding = means / np.linalg.norm(means, axis=1, keepdims=True)
        output = pb_utils.Tensor("embedding", embedding.astype("float32"))
        return pb_utils.InferenceResponse([output])

    def read(self, request, name):
        return pb_utils.get_input_tensor_by_name(request, name).as_numpy()
