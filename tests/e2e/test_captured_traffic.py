"""Captured traffic of a real server becomes a recording and a load test."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import boto3
import numpy as np
import pytest
from moto import mock_aws
from triton_server import needs_server

from constructs_triton.cli import main
from constructs_triton_client.wire import encode_request
from constructs_triton_tools.local import LocalEndpoint

pytestmark = [pytest.mark.e2e, needs_server, pytest.mark.xdist_group("local_endpoints")]

KEY = "data-capture/adder/AllTraffic/2026/11/22/10/05-03-222.jsonl"


def captured(content_type: str, body: bytes) -> dict[str, str]:
    """One side of a line, as SageMaker writes what is neither CSV nor JSON."""
    data = base64.b64encode(body).decode()
    return {"observedContentType": content_type, "data": data, "encoding": "BASE64"}


def capture(endpoint_url: str, values: list[float]) -> str:
    """Call the endpoint, and return a line of its capture."""
    request = encode_request({"X": np.array(values, np.float32)})
    runtime = boto3.client("sagemaker-runtime", "us-east-1", endpoint_url=endpoint_url)
    answer = runtime.invoke_endpoint(
        EndpointName="adder", Body=bytes(request.body), ContentType=request.content_type
    )
    sides = {
        "endpointInput": captured(request.content_type, bytes(request.body)),
        "endpointOutput": captured(answer["ContentType"], answer["Body"].read()),
    }
    event = {"eventId": f"e{len(values)}", "inferenceTime": "2026-11-22T10:05:03Z"}
    return json.dumps({"captureData": sides, "eventMetadata": event}) + "\n"


def test_capture_is_verified_and_sent_again(
    shared: LocalEndpoint, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The bodies of the server, in a capture file, are tensors, a recording
    that passes, and a load.
    """
    record, requests, table = (
        str(tmp_path / name) for name in ("record.json", "mix.jsonl", "b.csv")
    )
    url = shared.endpoint_url
    file = tmp_path / KEY
    file.parent.mkdir(parents=True)
    file.write_text(capture(url, [1.0]) + capture(url, [1.0, 2.0]))
    read = [
        "capture",
        "read",
        str(tmp_path / "data-capture"),
        "--record",
        record,
        "--requests",
        requests,
    ]
    assert main(read) == 0
    assert "X FP32[2]" in capsys.readouterr().out
    assert main(["verify", "adder", record, "--endpoint-url", url]) == 0
    load = ["load-test", "adder", "--endpoint-url", url, "--requests", requests, "--rates", "80"]
    assert main([*load, "--step-seconds", "1", "--warm-up-seconds", "0", "-o", table]) == 0


def test_capture_is_read_from_s3(capsys: pytest.CaptureFixture[str]) -> None:
    """A prefix in S3 is read like a folder, and --variant chooses among its files."""
    side = captured("application/json", b'{"inputs": []}')
    line = json.dumps(
        {"captureData": {"endpointInput": side}, "eventMetadata": {"eventId": "only"}}
    )
    with mock_aws():
        s3 = boto3.client("s3", "us-east-1")
        s3.create_bucket(Bucket="traffic")
        s3.put_object(Bucket="traffic", Key=KEY, Body=line.encode())
        s3.put_object(Bucket="traffic", Key=KEY.replace("AllTraffic", "Shadow"), Body=b"damage\nx")
        read = ["capture", "read", "s3://traffic/data-capture", "--region", "us-east-1", "--json"]
        assert main([*read, "--variant", "AllTraffic", "--since", "1d"]) == 0
        (found,) = json.loads(capsys.readouterr().out)["requests"]
        assert (found["event_id"], found["problems"]) == ("only", ["not captured"])
        assert main([*read, "--variant", "Other"]) != 0
        assert "has no .jsonl file of variant Other" in capsys.readouterr().err
