"""Send four images to the endpoint: python ask.py [URL of a local endpoint]."""

import sys

import numpy as np
from sklearn.datasets import load_digits

from constructs_triton_client import TritonClient

client = TritonClient.for_endpoint(
    "digits",
    endpoint_url=sys.argv[1] if len(sys.argv) > 1 else None,
    region_name="us-east-1",
)
images, labels = load_digits(return_X_y=True)
result = client.infer({"pixels": images[:4].astype(np.float32)})
print("answers:", result["probabilities"].argmax(axis=1), "labels:", labels[:4])
