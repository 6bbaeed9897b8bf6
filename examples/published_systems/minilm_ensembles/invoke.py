"""Call both ensembles: `python invoke.py [--endpoint-url http://127.0.0.1:8080] [--picture JPEG]`.

Without a URL the endpoint in AWS is called. The archive of each ensemble is read from the assembly,
where `cdk synth` writes it.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from constructs_triton_client import ModelIndex, TritonClient

HERE = Path(__file__).resolve().parent
LABELS = HERE.parent / "dali_inception" / "article" / "inception_graphdef" / "inception_labels.txt"
SENTENCES = [
    "A man is playing a guitar.",
    "Someone performs music on a stringed instrument.",
    "A man is eating.",
]


def target_models(assembly: Path) -> ModelIndex:
    """Read the stack's output ``TargetModels``."""
    template = json.loads((assembly / "MinilmEnsembles.template.json").read_text(encoding="utf-8"))
    return ModelIndex(json.loads(template["Outputs"]["TargetModels"]["Value"]))


def classify(client: TritonClient, picture: Path) -> str:
    """Return the best class of a JPEG file and its probability."""
    file = np.fromfile(picture, dtype=np.uint8)[np.newaxis]
    (scores,) = client.infer({"INPUT": file}, TargetModel="model_tf_dali")["OUTPUT"]
    best = int(scores.argmax())
    label = LABELS.read_text(encoding="utf-8").splitlines()[best]
    return f"{scores[best]:6.3f}  {picture.name}: {label}"


def compare_sentences(client: TritonClient) -> str:
    """Return a line for each sentence with its similarity to the first."""
    texts = np.array(SENTENCES, dtype=object)[:, np.newaxis]
    embeddings = client.infer({"INPUT0": texts}, TargetModel="model_trt_python")["embedding"]
    similarities = embeddings @ embeddings[0]
    return "\n".join(
        f"{similarity:6.3f}  {text}"
        for similarity, text in zip(similarities, SENTENCES, strict=True)
    )


def main() -> int:
    """Read the command line and call the endpoint."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--picture", type=Path, default=HERE.parent / "dali_inception" / "picture.jpg"
    )
    parser.add_argument("--endpoint-url", help="where `constructs-triton local up` listens")
    parser.add_argument("--assembly", type=Path, default=HERE / "cdk.out")
    arguments = parser.parse_args()
    client = TritonClient.for_endpoint(
        "minilm-ensembles",
        endpoint_url=arguments.endpoint_url,
        index=target_models(arguments.assembly),
    )
    sys.stdout.write(f"{classify(client, arguments.picture)}\n{compare_sentences(client)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
