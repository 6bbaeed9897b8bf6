"""The function of the shop: asks the endpoint for the sentiment of a review.

The index is read at each cold start. It names the current archive of each model, so the function
follows a new model without being deployed again. Install the client into this folder before you
deploy. It requires only NumPy, and Lambda's runtime has boto3:

    pip install constructs-triton-client --target examples/composition/function \\
        --platform manylinux_2_28_x86_64 --only-binary :all: --python-version 3.13
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from constructs_triton_client import TritonClient

client = TritonClient.for_endpoint(
    os.environ["SENTIMENT_ENDPOINT"], index=os.environ["MODEL_INDEX"], target_model="sentiment"
)


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:  # noqa: ARG001 - Lambda's interface
    """Return the score of a review."""
    text = np.array([[event["review"]]], dtype=object)
    return {"score": float(client.infer({"text": text})["score"].item())}
