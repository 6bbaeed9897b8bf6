"""Triton model: decides whether a review is published, with business logic scripting."""

import numpy as np
import triton_python_backend_utils as pb_utils

COMPLAINT = 3
THRESHOLD = 0.5


class TritonPythonModel:
    """features: FP32 [n, 4] -> decision: BYTES [n, 1], "publish" or "review"."""

    def execute(self, requests):
        """Answer each request by itself."""
        return [self.respond(request) for request in requests]

    def respond(self, request):
        """Return the response to one request."""
        features = pb_utils.get_input_tensor_by_name(request, "features").as_numpy()
        decisions = np.full((len(features), 1), b"publish", dtype=np.object_)
        complaints = features[:, COMPLAINT] > 0
        if complaints.any():
            scores = self.score(features[complaints])
            decisions[complaints] = np.where(scores < THRESHOLD, b"review", b"publish").astype(np.object_)
        return pb_utils.InferenceResponse([pb_utils.Tensor("decision", decisions)])

    def score(self, features):
        """Call the ONNX model, which is loaded in the same server."""
        request = pb_utils.InferenceRequest(
            model_name="scorer",
            requested_output_names=["score"],
            inputs=[pb_utils.Tensor("features", features)],
        )
        response = request.exec()
        if response.has_error():
            raise pb_utils.TritonModelException(response.error().message())
        return pb_utils.get_output_tensor_by_name(response, "score").as_numpy()
