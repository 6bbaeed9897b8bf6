"""Send tokens to T5 and print tokens: `python invoke.py [--endpoint-url http://127.0.0.1:8080] [options]`.

Without a URL the endpoint in AWS is called. With `--model` it is the multi-model endpoint, otherwise the
single-model endpoint.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np

from constructs_triton.client import ModelIndex, TritonClient

HERE = Path(__file__).parent


def target_models(assembly: Path) -> ModelIndex:
    """Read the stack's output ``TargetModels``, which maps model names to archives."""
    template = json.loads((assembly / "T5PythonBackend.template.json").read_text(encoding="utf-8"))
    return ModelIndex(json.loads(template["Outputs"]["TargetModels"]["Value"]))


def main() -> int:
    """Read the command line and call the endpoint."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tokens", nargs="*", type=int, default=[13, 37, 42, 7], help="ids of one sentence")
    parser.add_argument("--model", help="name of a model behind the multi-model endpoint")
    parser.add_argument("--endpoint-url", help="where `constructs-triton local up` listens")
    parser.add_argument("--assembly", type=Path, default=HERE / "cdk.out")
    arguments = parser.parse_args()
    ids = np.array([arguments.tokens], dtype=np.int32)
    inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
    if arguments.model is None:
        client = TritonClient.for_endpoint("t5", endpoint_url=arguments.endpoint_url)
    else:
        client = TritonClient.for_endpoint(
            "t5-multi-model",
            endpoint_url=arguments.endpoint_url,
            target_model=arguments.model,
            index=target_models(arguments.assembly),
        )
    sys.stdout.write(" ".join(map(str, client.infer(inputs)["output"][0])) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
