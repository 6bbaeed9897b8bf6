"""Calls a local endpoint with the SageMaker Python SDK. Runs in the environment of the SDK.

python sdk_predictor.py URL: prints the answers to the same request as JSON and in binary, as one
JSON object.
"""

from __future__ import annotations

import json
import struct
import sys
from typing import Any

import boto3
from sagemaker import Session
from sagemaker.deserializers import BytesDeserializer
from sagemaker.predictor import Predictor
from sagemaker.serializers import IdentitySerializer

BINARY = "application/vnd.sagemaker-triton.binary+json;json-header-size="


def predictor(url: str, content_type: str) -> Any:
    """Return a predictor of the multi-model endpoint whose requests go to ``url``."""
    session = Session(
        boto_session=boto3.Session(region_name="us-east-1"),
        sagemaker_client=boto3.client("sagemaker", region_name="us-east-1", endpoint_url=url),
        sagemaker_runtime_client=boto3.client(
            "sagemaker-runtime", region_name="us-east-1", endpoint_url=url
        ),
    )
    serializer = IdentitySerializer(content_type=content_type)
    return Predictor("doubled", session, serializer=serializer, deserializer=BytesDeserializer())


def as_json(url: str) -> object:
    """Send numbers as JSON; return the numbers of the answer."""
    tensor = {"name": "X", "shape": [1, 2], "datatype": "FP32", "data": [1.5, 2.0]}
    body = json.dumps({"inputs": [tensor]})
    answer = predictor(url, "application/octet-stream").predict(body, target_model="double.tar.gz")
    return json.loads(answer)["outputs"][0]["data"]


def as_binary(url: str) -> object:
    """Send the same numbers after a header of JSON; return the numbers of the answer."""
    numbers = struct.pack("<2f", 1.5, 2.0)
    tensor = {
        "name": "X",
        "shape": [1, 2],
        "datatype": "FP32",
        "parameters": {"binary_data_size": len(numbers)},
    }
    wanted = {"name": "Y", "parameters": {"binary_data": True}}
    header = json.dumps({"inputs": [tensor], "outputs": [wanted]}).encode()
    caller = predictor(url, f"{BINARY}{len(header)}")
    answer = caller.predict(header + numbers, target_model="double.tar.gz")
    return list(struct.unpack("<2f", answer[-8:]))


if __name__ == "__main__":
    answers = {"json": as_json(sys.argv[1]), "binary": as_binary(sys.argv[1])}
    sys.stdout.write(json.dumps(answers) + "\n")
