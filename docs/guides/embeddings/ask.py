"""Print how similar texts are: python ask.py "How do I reset my password?" "I cannot log in."."""

from __future__ import annotations

import sys

import numpy as np

from constructs_triton_client import TritonClient

texts = np.array(sys.argv[1:], object)
(first, *others) = TritonClient.for_endpoint("embeddings").infer({"text": texts[:, None]})["embedding"]
for text, other in zip(texts[1:], others, strict=True):
    print(f"{first @ other:.3f} {text}")
