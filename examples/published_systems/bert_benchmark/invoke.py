"""Sends token ids to the classifier: ``python invoke.py ENDPOINT [--endpoint-url URL] [--tokens
101,102]``.

BERT's tokenizer converts words to token ids (``BertTokenizer`` in transformers). This script pads
them to 512, as in the benchmark.
"""

# ruff: noqa: T201 - a command

from __future__ import annotations

import argparse
from collections.abc import Sequence

import numpy as np

from constructs_triton_client import TritonClient

LENGTH = 512


def classify(client: TritonClient, sentences: Sequence[Sequence[int]]) -> np.ndarray:
    """Return probabilities FP32 [n, 2] for n sentences of at most 512 token ids, in one request."""
    tokens = np.zeros((len(sentences), LENGTH), np.int32)
    mask = np.zeros_like(tokens)
    for row, sentence in enumerate(sentences):
        kept = sentence[:LENGTH]
        tokens[row, : len(kept)] = kept
        mask[row, : len(kept)] = 1
    logits = client.infer({"INPUT__0": tokens, "INPUT__1": mask})["OUTPUT__0"]
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)


def main() -> None:
    """Print the probability of each class."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("endpoint")
    parser.add_argument("--endpoint-url", help="of a local endpoint; AWS's own by default")
    parser.add_argument(
        "--tokens", default="101,2023,2003,2307,102", help="ids, separated by commas"
    )
    arguments = parser.parse_args()
    client = TritonClient.for_endpoint(arguments.endpoint, endpoint_url=arguments.endpoint_url)
    (probabilities,) = classify(client, [[int(each) for each in arguments.tokens.split(",")]])
    print(f"no: {probabilities[0]:.3f}, yes: {probabilities[1]:.3f}")


if __name__ == "__main__":
    main()
