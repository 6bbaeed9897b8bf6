"""Sends a picture to both models: ``python invoke.py ENDPOINT [--endpoint-url URL] [--picture
FILE]``.

The first request uses boto3 and JSON, as in the article. The second uses the client and binary,
which needs a fifth of the bytes. Needs Pillow to decode the JPEG file.
"""

# ruff: noqa: T201 - a command

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import boto3
import numpy as np

from constructs_triton_client import TritonClient

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "small_network"))
from preprocessing import resnet_pixels  # noqa: E402 - found by the line above

TARGETS = {
    "resnet_pt_v0.tar.gz": ("INPUT__0", "OUTPUT__0"),
    "resnet_trt_v0.tar.gz": ("input", "output"),
}


def as_in_the_article(runtime: Any, endpoint: str, target: str, pixels: np.ndarray) -> np.ndarray:
    """Send one picture, FP32 [3, 224, 224], as JSON; return scores, FP32 [1000]."""
    name, _ = TARGETS[target]
    payload = {
        "inputs": [
            {"name": name, "shape": [1, 3, 224, 224], "datatype": "FP32", "data": pixels.tolist()}
        ]
    }
    response = runtime.invoke_endpoint(
        EndpointName=endpoint,
        ContentType="application/octet-stream",
        Body=json.dumps(payload),
        TargetModel=target,
    )
    return np.array(json.loads(response["Body"].read())["outputs"][0]["data"], np.float32)


def with_the_client(client: TritonClient, target: str, pixels: np.ndarray) -> np.ndarray:
    """Send the same picture in binary."""
    name, output = TARGETS[target]
    return client.infer({name: pixels[np.newaxis]}, TargetModel=target)[output][0]


def main() -> None:
    """Print the best three classes of each model for both requests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("endpoint")
    parser.add_argument("--endpoint-url", help="of a local endpoint; AWS's own by default")
    parser.add_argument("--picture", type=Path, default=HERE / "picture.jpg")
    arguments = parser.parse_args()
    pixels = resnet_pixels(arguments.picture.read_bytes())
    runtime = boto3.client("sagemaker-runtime", endpoint_url=arguments.endpoint_url)
    client = TritonClient.for_endpoint(arguments.endpoint, endpoint_url=arguments.endpoint_url)
    for target in TARGETS:
        for name, scores in (
            ("JSON", as_in_the_article(runtime, arguments.endpoint, target, pixels)),
            ("binary", with_the_client(client, target, pixels)),
        ):
            print(f"{target} ({name}): classes {scores.argsort()[::-1][:3].tolist()}")


if __name__ == "__main__":
    main()
