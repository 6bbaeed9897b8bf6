"""Call both ensembles: `python invoke.py [--endpoint-url http://127.0.0.1:8080] [--assembly cdk.out]`.

Without a URL the endpoint in AWS is called. The archive of each model is read from the assembly, where
`cdk synth` writes it.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from constructs_triton.client import ModelIndex, TritonClient

HERE = Path(__file__).parent
SENTENCES = [
    "A man is playing a guitar.",
    "Someone performs music on a stringed instrument.",
    "A man is eating.",
]


def target_models(assembly: Path) -> ModelIndex:
    """Read the stack's output ``TargetModels``."""
    template = json.loads((assembly / "MinilmEnsembles.template.json").read_text(encoding="utf-8"))
    return ModelIndex(json.loads(template["Outputs"]["TargetModels"]["Value"]))


def compare_sentences(client: TritonClient) -> str:
    """Return a line for each sentence with its similarity to the first."""
    texts = np.array(SENTENCES, dtype=object)[:, np.newaxis]
    embeddings = client.infer({"INPUT0": texts}, TargetModel="sentence_embeddings")["embedding"]
    similarities = embeddings @ embeddings[0]
    return "\n".join(
        f"{similarity:6.3f}  {text}" for similarity, text in zip(similarities, SENTENCES, strict=True)
    )


def classify(client: TritonClient, pictures: list[Path]) -> str:
    """Return a line for each PNG file of a handwritten digit."""
    files = np.array([path.read_bytes() for path in pictures], dtype=object)[:, np.newaxis]
    labels = client.infer({"image": files}, TargetModel="digits")["label"][:, 0]
    return "\n".join(
        f"{label.decode():>6}  {path.name}" for label, path in zip(labels, pictures, strict=True)
    )


def main() -> int:
    """Read the command line and call the endpoint."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pictures", nargs="*", type=Path, help="PNG files of handwritten digits")
    parser.add_argument("--endpoint-url", help="where `constructs-triton local up` listens")
    parser.add_argument("--assembly", type=Path, default=HERE / "cdk.out")
    arguments = parser.parse_args()
    client = TritonClient.for_endpoint(
        "minilm-ensembles", endpoint_url=arguments.endpoint_url, index=target_models(arguments.assembly)
    )
    sys.stdout.write(compare_sentences(client) + "\n")
    if arguments.pictures:
        sys.stdout.write(classify(client, arguments.pictures) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
