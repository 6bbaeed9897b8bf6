"""Translate sentences: `python invoke.py [SENTENCE ...] [--endpoint-url URL] [--model NAME]`.

Without a URL the endpoint in AWS is called. With `--model` it is the multi-model endpoint,
otherwise the single-model endpoint. `tokenizer.json` is that of the checkpoint; `build_models.py`
copies it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from constructs_triton_client import ModelIndex, TritonClient

HERE = Path(__file__).resolve().parent
SENTENCES = ["translate English to German: The house is wonderful."]


def target_models(assembly: Path) -> ModelIndex:
    """Read the stack's output ``TargetModels``, which maps model names to archives."""
    template = json.loads((assembly / "T5PythonBackend.template.json").read_text(encoding="utf-8"))
    return ModelIndex(json.loads(template["Outputs"]["TargetModels"]["Value"]))


def client_of(arguments: argparse.Namespace) -> TritonClient:
    """Return a client of the single-model or the multi-model endpoint."""
    if arguments.model is None:
        return TritonClient.for_endpoint("t5", endpoint_url=arguments.endpoint_url)
    is_archive = arguments.model.endswith(".tar.gz")
    return TritonClient.for_endpoint(
        "t5-multi-model",
        endpoint_url=arguments.endpoint_url,
        target_model=arguments.model,
        index=None if is_archive else target_models(arguments.assembly),
    )


def inputs_of(tokenizer: Tokenizer, sentences: Sequence[str]) -> dict[str, NDArray[np.int32]]:
    """Return the tokens of the sentences, padded to the longest, and the mask."""
    tokenizer.enable_padding(pad_id=0)
    encodings = tokenizer.encode_batch(list(sentences))
    return {
        "input_ids": np.array([each.ids for each in encodings], dtype=np.int32),
        "attention_mask": np.array([each.attention_mask for each in encodings], dtype=np.int32),
    }


def main() -> int:
    """Read the command line and call the endpoint."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("sentences", nargs="*", default=SENTENCES, metavar="SENTENCE")
    parser.add_argument("--model", help="model of the multi-model endpoint: a name, or NAME.tar.gz")
    parser.add_argument("--endpoint-url", help="where `constructs-triton local up` listens")
    parser.add_argument("--assembly", type=Path, default=HERE / "cdk.out")
    parser.add_argument("--tokenizer", type=Path, default=HERE / "tokenizer.json")
    parser.add_argument("--tokens", action="store_true", help="print token ids in place of text")
    arguments = parser.parse_args()
    client = client_of(arguments)
    tokenizer = Tokenizer.from_file(str(arguments.tokenizer))
    for row in client.infer(inputs_of(tokenizer, arguments.sentences))["output"].tolist():
        text = " ".join(map(str, row)) if arguments.tokens else tokenizer.decode(row)
        sys.stdout.write(f"{text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
