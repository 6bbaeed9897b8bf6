"""Classifies a JPEG file: ``python invoke.py ENDPOINT [--endpoint-url URL] [--picture JPEG]
[--labels TXT]``.

The request is sent as JSON, in binary by tritonclient, as in the article, and with the client of
this library, which also requests the best classes from Triton.
"""

# ruff: noqa: T201 - a command

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import boto3
import numpy as np
from tritonclient.http import InferenceServerClient, InferInput, InferRequestedOutput

from constructs_triton_client import TritonClient

HERE = Path(__file__).resolve().parent
BINARY = "application/vnd.sagemaker-triton.binary+json;json-header-size={}"


def as_json(runtime: Any, endpoint: str, rv2: np.ndarray) -> np.ndarray:
    """Send the article's first request, UINT8 [1, bytes] as JSON numbers; return FP32 [1, 1001]."""
    payload = {
        "inputs": [{"name": "INPUT", "shape": rv2.shape, "datatype": "UINT8", "data": rv2.tolist()}]
    }
    response = runtime.invoke_endpoint(
        EndpointName=endpoint, ContentType="application/octet-stream", Body=json.dumps(payload)
    )
    (output,) = json.loads(response["Body"].read())["outputs"]
    return np.array(output["data"], np.float32).reshape(output["shape"])


def as_binary(runtime: Any, endpoint: str, rv2: np.ndarray) -> np.ndarray:
    """Send the article's second request, encoded by tritonclient."""
    tensor = InferInput("INPUT", list(rv2.shape), "UINT8")
    tensor.set_data_from_numpy(rv2, binary_data=True)
    body, header_length = InferenceServerClient.generate_request_body(
        [tensor], outputs=[InferRequestedOutput("OUTPUT", binary_data=True)]
    )
    response = runtime.invoke_endpoint(
        EndpointName=endpoint, ContentType=BINARY.format(header_length), Body=body
    )
    size = int(response["ContentType"].rpartition("json-header-size=")[2])
    result = InferenceServerClient.parse_response_body(response["Body"].read(), header_length=size)
    return np.asarray(result.as_numpy("OUTPUT"))


def with_the_client(client: TritonClient, rv2: np.ndarray) -> np.ndarray:
    """Send the same bytes with TritonClient."""
    return client.infer({"INPUT": rv2}, ["OUTPUT"])["OUTPUT"]


def main() -> None:
    """Print the best class for each of the three requests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("endpoint")
    parser.add_argument("--endpoint-url", help="of a local endpoint; AWS's own by default")
    parser.add_argument("--picture", type=Path, default=HERE / "picture.jpg")
    parser.add_argument(
        "--labels",
        type=Path,
        default=HERE / "build" / "twin" / "inception_graphdef" / "inception_labels.txt",
    )
    arguments = parser.parse_args()
    labels = arguments.labels.read_text(encoding="utf-8").splitlines()
    rv2 = np.fromfile(arguments.picture, dtype=np.uint8)[np.newaxis]
    runtime = boto3.client("sagemaker-runtime", endpoint_url=arguments.endpoint_url)
    client = TritonClient.for_endpoint(arguments.endpoint, endpoint_url=arguments.endpoint_url)
    for name, scores in (
        ("JSON", as_json(runtime, arguments.endpoint, rv2)),
        ("binary, tritonclient", as_binary(runtime, arguments.endpoint, rv2)),
        ("binary, TritonClient", with_the_client(client, rv2)),
    ):
        best = int(scores[0].argmax())
        print(f"{name}: {labels[best]} ({scores[0, best]:.3f})")


if __name__ == "__main__":
    main()
