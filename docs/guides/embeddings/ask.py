"""Print how similar other texts are to the first one."""

from __future__ import annotations

import sys

import numpy as np

from constructs_triton_client import TritonClient

texts = np.array(sys.argv[1:], object)
response = TritonClient.for_endpoint("embeddings").infer({"text": texts[:, None]})
(first, *others) = response["embedding"]
for text, other in zip(texts[1:], others, strict=True):
    print(f"{first @ other:.3f} {text}")
