"""Triton model: BERT's contract, kept by a small encoder in NumPy."""

import json

import numpy as np
import triton_python_backend_utils as pb_utils
from encoder import logits, make_weights


class TritonPythonModel:
    """INPUT__0 tokens, INPUT__1 mask: INT32 [n, 512] -> OUTPUT__0 logits FP32 [n, 2]."""

    def initialize(self, args):
        """Draw the weights, once for each instance, in the dtype of the configuration."""
        parameters = json.loads(args["model_config"])["parameters"]
        self.weights = make_weights(parameters.get("dtype", {}).get("string_value", "float32"))

    def execute(self, requests):
        """Answer what the dynamic batcher put together with one pass through the encoder."""
        tokens, masks = ([_array(request, name) for request in requests] for name in ("INPUT__0", "INPUT__1"))
        answer = logits(self.weights, np.concatenate(tokens), np.concatenate(masks)).astype(np.float32)
        ends = np.cumsum([len(each) for each in tokens])[:-1]
        return [
            pb_utils.InferenceResponse([pb_utils.Tensor("OUTPUT__0", np.ascontiguousarray(part))])
            for part in np.split(answer, ends)
        ]


def _array(request, name):
    return pb_utils.get_input_tensor_by_name(request, name).as_numpy()
