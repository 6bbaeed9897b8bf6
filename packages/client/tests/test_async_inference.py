"""Asynchronous inference with boto3 clients whose responses are scripted."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import boto3
import numpy as np
import pytest
from botocore.response import StreamingBody
from botocore.stub import ANY, Stubber

from constructs_triton_client import PendingInference, SageMakerTransport, TritonClient
from constructs_triton_client.wire import decode_request, encode_response
from constructs_triton_core.errors import InvalidValueError, InvocationError, RequestEncodingError

INPUTS = {"X": np.arange(3, dtype="f4")}
OUTPUT, FAILURE = "s3://bucket/out/1.out", "s3://bucket/fail/1-error.out"
RESPONSE = encode_response({"Y": np.array([1.5], dtype="f4")})


@dataclass
class Endpoint:
    """An asynchronous endpoint with scripted clients."""

    client: TritonClient
    transport: SageMakerTransport
    s3: Stubber
    runtime: Stubber

    def pending(self, failure_location: str | None = FAILURE) -> PendingInference:
        """Create an inference as a receiver of SNS notifications does."""
        return PendingInference(
            self.transport,
            output_location=OUTPUT,
            failure_location=failure_location,
            inference_id="i",
        )

    def add_object(self, location: str, body: bytes, content_type: str = "") -> None:
        """Let the next read of S3 return an object."""
        bucket, _, key = location.removeprefix("s3://").partition("/")
        stream = StreamingBody(io.BytesIO(body), len(body))
        response = {"Body": stream} | ({"ContentType": content_type} if content_type else {})
        self.s3.add_response("get_object", response, {"Bucket": bucket, "Key": key})

    def add_error(self, location: str, code: str = "NoSuchKey", status: int = 404) -> None:
        """Let the next read of S3 fail."""
        bucket, _, key = location.removeprefix("s3://").partition("/")
        arguments = {"Bucket": bucket, "Key": key}
        self.s3.add_client_error(
            "get_object", code, f"says {code}", http_status_code=status, expected_params=arguments
        )


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    """An endpoint whose scripted responses are all used by the test."""
    session = boto3.Session("akid", "secret", region_name="us-east-1")
    client = TritonClient.for_endpoint("demo", session=session)
    assert isinstance(client.transport, SageMakerTransport)
    s3 = Stubber(client.transport.client("s3"))
    runtime = Stubber(client.transport.client("sagemaker-runtime"))
    with s3, runtime:
        yield Endpoint(client, client.transport, s3, runtime)
        s3.assert_no_pending_responses()
        runtime.assert_no_pending_responses()


@pytest.fixture
def naps(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Replace the clock: sleeping advances it at once. The list has the pauses."""
    pauses: list[float] = []
    monkeypatch.setattr(time, "monotonic", lambda: 100.0 + sum(pauses))
    monkeypatch.setattr(time, "sleep", pauses.append)
    return pauses


def test_request_is_stored_and_started(endpoint: Endpoint) -> None:
    """The request is an object in the input location, and its URI starts the inference."""
    stored: dict[str, Any] = {}
    endpoint.transport.client("s3").meta.events.register(
        "provide-client-params.s3.PutObject", lambda params, **_: stored.update(params)
    )
    endpoint.s3.add_response(
        "put_object", {}, {"Bucket": "bucket", "Key": ANY, "Body": ANY, "ContentType": ANY}
    )
    options = {"InferenceId": "i", "InvocationTimeoutSeconds": 900}
    expected = {"EndpointName": "demo", "InputLocation": ANY, "ContentType": ANY, **options}
    started = {"InferenceId": "i", "OutputLocation": OUTPUT, "FailureLocation": FAILURE}
    endpoint.runtime.add_response("invoke_endpoint_async", started, expected)
    location = "s3://bucket/in/"
    inference = endpoint.client.infer_async(
        INPUTS, ["Y"], input_location=location, options=options, id="7"
    )
    assert (inference.output_location, inference.failure_location) == (OUTPUT, FAILURE)
    assert inference.inference_id == "i"
    prefix, _, name = stored["Key"].rpartition("/")
    assert (prefix, len(name), stored["Bucket"]) == ("in", 32, "bucket")
    request = decode_request(stored["Body"], stored["ContentType"])
    assert (request.inputs["X"].tolist(), request.id) == ([0, 1, 2], "7")
    assert request.outputs[0]["name"] == "Y"


def test_every_request_has_its_own_key(endpoint: Endpoint) -> None:
    """Two requests never share an object; the location of failures and the id are optional."""
    keys: list[str] = []
    endpoint.transport.client("s3").meta.events.register(
        "provide-client-params.s3.PutObject", lambda params, **_: keys.append(params["Key"])
    )
    for _ in range(2):
        endpoint.s3.add_response("put_object", {})
        endpoint.runtime.add_response("invoke_endpoint_async", {"OutputLocation": OUTPUT})
        inference = endpoint.client.infer_async(INPUTS, input_location="s3://bucket/a/b")
        assert (inference.failure_location, inference.inference_id) == (None, None)
    assert len(set(keys)) == 2
    assert all(key.startswith("a/b/") for key in keys)


def test_inputs_are_checked_before_the_request_is_stored(endpoint: Endpoint) -> None:
    """With model_config wrong inputs are rejected; datatypes declare bit patterns as in infer."""

    @dataclass
    class Input:
        name: str = "X"
        data_type: str = "TYPE_BF16"
        dims: tuple[int, ...] = (1,)

    @dataclass
    class Config:
        input: tuple[Input, ...] = (Input(),)
        max_batch_size: int = 0

    client = TritonClient(endpoint.transport, model_config=Config())
    bits = {"X": np.zeros(1, "u2")}
    with pytest.raises(RequestEncodingError, match="must be TYPE_BF16, got TYPE_UINT16"):
        client.infer_async(bits, input_location="s3://bucket/in/")
    with pytest.raises(InvalidValueError, match="S3 URI"):
        client.infer_async(bits, input_location="bucket", datatypes={"X": "BF16"})


def test_result_that_arrives_later_is_returned_at_the_next_poll(
    endpoint: Endpoint, naps: list[float]
) -> None:
    """A result that arrives after the first poll is returned at the next one, after one pause."""
    endpoint.add_error(OUTPUT)
    endpoint.add_error(FAILURE)
    endpoint.add_object(OUTPUT, RESPONSE.body, RESPONSE.content_type)
    assert endpoint.pending().result()["Y"].tolist() == [1.5]
    assert naps == [2.0]


def test_waiting_ends_at_the_deadline(endpoint: Endpoint, naps: list[float]) -> None:
    """Pauses have the given length, the last one is shortened,
    and the deadline is polled once more.
    """
    for _ in range(4):
        endpoint.add_error(OUTPUT)
    with pytest.raises(
        InvocationError, match=r"no result after 2\.5 s, .*out/1\.out does not exist; call"
    ):
        endpoint.pending(None).result(timeout_seconds=2.5, poll_interval_seconds=1)
    assert naps == [1, 1, 0.5]


def test_default_timeout_is_an_hour(endpoint: Endpoint, naps: list[float]) -> None:
    """Without arguments a result is waited for during 3600 s."""
    for _ in range(2):
        endpoint.add_error(OUTPUT)
    with pytest.raises(InvocationError, match=r"no result after 3600\.0 s"):
        endpoint.pending(None).result(poll_interval_seconds=1e9)
    assert naps == [3600.0]


def test_location_of_failures_is_optional(endpoint: Endpoint) -> None:
    """An inference without a location of failures reads only the result."""
    endpoint.add_error(OUTPUT)
    inference = PendingInference(endpoint.transport, output_location=OUTPUT)
    assert inference.poll() is None
    assert (inference.failure_location, inference.inference_id) == (None, None)


def test_failure_is_raised_with_its_message(endpoint: Endpoint) -> None:
    """The object at the failure location is the message, and the error names the location."""
    endpoint.add_error(OUTPUT)
    endpoint.add_object(FAILURE, b'{"error":"model fell over"}')
    expected = (
        rf"the asynchronous inference failed \(see {FAILURE}\), "
        "got AsyncInferenceFailure: model fell"
    )
    with pytest.raises(InvocationError, match=expected) as caught:
        endpoint.pending().poll()
    assert caught.value.model_message == "model fell over"


@pytest.mark.parametrize("content_type", ["", "binary/octet-stream", "application/json"])
def test_result_is_decoded_without_its_content_type(endpoint: Endpoint, content_type: str) -> None:
    """A result is decoded from its bytes if S3 has another content type;
    a binary one is believed.
    """
    in_json = decode_request(b'{"inputs":[]}', "application/json")
    outputs = {'}{"': np.array([b'}"'], dtype=object), "Y": np.array([1.5], "f4")}
    binary = encode_response(outputs)
    endpoint.add_object(OUTPUT, binary.body, content_type)
    endpoint.add_object(OUTPUT, encode_response(outputs, request=in_json).body, content_type)
    endpoint.add_object(OUTPUT, binary.body, binary.content_type.upper())
    for _ in range(3):
        result = endpoint.pending().poll()
        assert result is not None
        assert [array.tolist() for array in result.values()] == [[b'}"'], [1.5]]


def test_denied_access_is_waited_for_and_then_reported(endpoint: Endpoint) -> None:
    """S3's 403 may mean that there is no result yet;
    after the timeout the error says what to grant.
    """
    endpoint.add_error(OUTPUT, "AccessDenied", 403)
    endpoint.add_error(FAILURE, "AccessDenied", 403)
    pending = endpoint.pending()
    with pytest.raises(InvocationError) as caught:
        pending.result(timeout_seconds=0)
    assert str(caught.value).startswith(
        "endpoint demo: no result after 0 s, got status 403 "
        f"for {OUTPUT} (says AccessDenied); grant s3:Get"
    )
    assert "Object on it, and s3:ListBucket on its bucket" in str(caught.value)
    assert (caught.value.status, caught.value.model_message) == (403, "says AccessDenied")
    endpoint.add_error(OUTPUT)
    endpoint.add_error(FAILURE, "AccessDenied", 403)
    with pytest.raises(InvocationError, match="does not exist"):
        pending.result(timeout_seconds=0)


@pytest.mark.parametrize(("code", "status"), [("NoSuchBucket", 404), ("InvalidAccessKeyId", 403)])
def test_other_errors_of_s3_are_raised_at_once(endpoint: Endpoint, code: str, status: int) -> None:
    """A missing bucket and invalid credentials do not change by waiting."""
    endpoint.add_error(OUTPUT, code, status)
    with pytest.raises(InvocationError, match=f"got status {status}: says {code}"):
        endpoint.pending().result()
