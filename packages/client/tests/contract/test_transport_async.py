"""Asynchronous inference with boto3 and an S3 in memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import numpy as np
import pytest
from botocore.stub import Stubber
from moto import mock_aws

from constructs_triton_client import ModelIndex, PendingInference, SageMakerTransport, TritonClient
from constructs_triton_client.wire import decode_request, encode_response
from constructs_triton_core.errors import InvalidValueError, InvocationError

INPUTS = {"X": np.arange(3, dtype="f4")}
OUTPUT, FAILURE = "s3://bucket/out/1.out", "s3://bucket/fail/1-error.out"


@pytest.fixture
def session() -> Iterator[boto3.Session]:
    """A session whose S3 has one bucket."""
    with mock_aws():
        session = boto3.Session("akid", "secret", region_name="us-east-1")
        session.client("s3").create_bucket(Bucket="bucket")
        yield session


@pytest.fixture
def client(session: boto3.Session) -> TritonClient:
    """A client of an asynchronous endpoint."""
    return TritonClient.for_endpoint("demo", session=session)


def start(client: TritonClient) -> tuple[PendingInference, dict[str, Any]]:
    """Start an inference with a scripted response of SageMaker; also return the parameters of the call."""
    transport = client.transport
    assert isinstance(transport, SageMakerTransport)
    asked: dict[str, Any] = {}
    runtime = transport.client("sagemaker-runtime")
    runtime.meta.events.register(
        "provide-client-params.sagemaker-runtime.InvokeEndpointAsync",
        lambda params, **_: asked.update(params),
    )
    with Stubber(runtime) as stubber:
        answer = {"InferenceId": "i", "OutputLocation": OUTPUT, "FailureLocation": FAILURE}
        stubber.add_response("invoke_endpoint_async", answer)
        inference = client.infer_async(
            INPUTS, input_location="s3://bucket/in/", options={"InvocationTimeoutSeconds": 900}
        )
    return inference, asked


def put(session: boto3.Session, location: str, body: bytes) -> None:
    bucket, _, key = location.removeprefix("s3://").partition("/")
    session.client("s3").put_object(Bucket=bucket, Key=key, Body=body)


@pytest.mark.parametrize("in_binary", [True, False])
def test_async_result_is_decoded_without_its_content_type(
    session: boto3.Session, client: TritonClient, in_binary: bool
) -> None:
    """The request is stored in S3, and the result is decoded although its object has no content type."""
    inference, asked = start(client)
    bucket, _, key = asked["InputLocation"].removeprefix("s3://").partition("/")
    stored = session.client("s3").get_object(Bucket=bucket, Key=key)
    assert decode_request(stored["Body"].read(), asked["ContentType"]).inputs["X"].tolist() == [0, 1, 2]
    assert stored["ContentType"] == asked["ContentType"]
    assert asked["InvocationTimeoutSeconds"] == 900
    assert inference.poll() is None
    request = decode_request(b'{"inputs":[]}', "application/json")
    tricky = {'}{"': np.array([b'}"'], dtype=object)} if in_binary else {"Y": np.array([1.5])}
    put(session, OUTPUT, encode_response(tricky, request=None if in_binary else request).body)
    assert [array.tolist() for array in inference.result().values()] == [a.tolist() for a in tricky.values()]


def test_async_failure_object_is_an_invocation_error(session: boto3.Session, client: TritonClient) -> None:
    """The object that SageMaker writes to the failure location is the error's message."""
    inference, _ = start(client)
    put(session, FAILURE, b'{"error":"model fell over"}')
    with pytest.raises(InvocationError, match="model fell over"):
        inference.result()


def test_async_result_that_is_missing_times_out(client: TritonClient) -> None:
    """Waiting ends with an error that names the expected location."""
    inference, _ = start(client)
    with pytest.raises(InvocationError, match=r"out/1\.out"):
        inference.result(timeout_seconds=0)


def test_async_result_without_access_says_what_to_grant(client: TritonClient) -> None:
    """S3's 403 may mean "not yet", so it is polled again; then the error says what to grant."""
    inference, _ = start(client)
    assert isinstance(client.transport, SageMakerTransport)
    with Stubber(client.transport.client("s3")) as s3:
        for _ in range(4):
            s3.add_client_error("get_object", "AccessDenied", "Access Denied", http_status_code=403)
        assert inference.poll() is None
        with pytest.raises(
            InvocationError, match=r"grant s3:GetObject on it, and s3:ListBucket.*does not exist yet"
        ) as caught:
            inference.result(timeout_seconds=0)
    assert caught.value.status == 403


@pytest.mark.parametrize(("code", "status"), [("NoSuchBucket", 404), ("InvalidAccessKeyId", 403)])
def test_async_result_with_another_error_is_not_polled_again(
    client: TritonClient, code: str, status: int
) -> None:
    """Without the bucket, or with invalid credentials, no result will ever be read."""
    inference, _ = start(client)
    assert isinstance(client.transport, SageMakerTransport)
    with Stubber(client.transport.client("s3")) as s3:
        s3.add_client_error("get_object", code, "no", http_status_code=status)
        with pytest.raises(InvocationError, match=f"got status {status}: no"):
            inference.poll()


def test_index_is_read_from_s3(session: boto3.Session) -> None:
    """A client with the index's URI finds models by name, and suggests a name for a misspelt one."""
    put(
        session,
        "s3://bucket/m/index.json",
        b'{"version": 1, "target_models": {"resnet": "resnet-3f.tar.gz"}}',
    )
    client = TritonClient.for_endpoint("demo", session=session, index="s3://bucket/m/index.json")
    assert isinstance(client.index, ModelIndex)
    assert client.index.target_model("resnet") == "resnet-3f.tar.gz"
    with pytest.raises(InvalidValueError, match='did you mean "resnet"'):
        client.infer(INPUTS, TargetModel="resnt")


def test_missing_index_is_an_invocation_error(session: boto3.Session) -> None:
    """A missing index raises an error with the endpoint and S3's reason."""
    with pytest.raises(InvocationError, match="key does not exist"):
        TritonClient.for_endpoint("demo", session=session, index="s3://bucket/none.json")
