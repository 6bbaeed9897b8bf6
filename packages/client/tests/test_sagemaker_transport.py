"""The SageMaker transport: real boto3 against a scripted server on loopback."""

from __future__ import annotations

import base64
import io
import json
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any
from urllib.parse import parse_qs

import boto3
import botocore
import numpy as np
import pytest
from botocore.response import StreamingBody
from botocore.stub import Stubber
from hostile_answers import frame
from loopback_server import SESSION, Answer, Server, binary_answer, run_server

from constructs_triton_client import Invocation, SageMakerTransport, TritonClient, default_config
from constructs_triton_client.wire import decode_request
from constructs_triton_core.errors import (
    EndpointThrottledError,
    InvalidValueError,
    InvocationError,
    MissingDependencyError,
    ModelNotReadyError,
    ModelOutOfMemoryError,
)

INPUTS = {"X": np.arange(3, dtype="f4")}


@pytest.fixture
def server() -> Iterator[Server]:
    """A scripted server, stopped after the test."""
    with run_server() as server:
        yield server


def failure(code: str, status: int, **members: Any) -> Answer:
    """Return an error response of SageMaker."""
    return Answer(
        status,
        json.dumps({"Message": "no", **members}).encode(),
        {"x-amzn-errortype": code, "Content-Type": "application/json", "x-amzn-RequestId": "r-9"},
    )


OUT_OF_MEMORY = '{"error":"out of memory"}'


def model_failure(status: int, message: str) -> Answer:
    """Return the response of SageMaker about an error of the container."""
    return failure("ModelError", 424, OriginalStatusCode=status, OriginalMessage=message)


def for_sagemaker(url: str, **options: Any) -> TritonClient:
    return TritonClient.for_endpoint("demo", session=SESSION, endpoint_url=url, **options)


def test_request_has_the_body_and_options(server: Server) -> None:
    """InvokeEndpoint receives the body, content type and options, and its response is decoded."""
    server.answers = [binary_answer()]
    result = for_sagemaker(server.url, target_model="a.tar.gz").infer(
        INPUTS, ["Y"], InferenceId="i-1"
    )
    assert result["Y"].tolist() == [1.5]
    assert result.metadata["RequestId"] == "r-1"
    assert result.metadata["RetryAttempts"] == 0
    assert not result.metadata.keys() & {"Body", "ContentType", "ResponseMetadata"}
    assert result.latency_seconds is not None
    assert 0 < result.latency_seconds < 60
    (exchange,) = server.exchanges
    assert exchange.path == "/endpoints/demo/invocations"
    assert exchange.headers["X-Amzn-SageMaker-Target-Model"] == "a.tar.gz"
    assert exchange.headers["X-Amzn-SageMaker-Inference-Id"] == "i-1"
    sent = decode_request(exchange.body, exchange.headers["Content-Type"])
    assert sent.inputs["X"].tolist() == [0, 1, 2]


def test_loopback_needs_neither_region_nor_credentials(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests to loopback are not signed, and work without AWS configuration."""
    for name in ("AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    server.answers = [binary_answer()]
    for url in (server.url, server.url.replace("127.0.0.1", "localhost")):
        TritonClient.for_endpoint("demo", endpoint_url=url).infer(INPUTS)
        assert "Authorization" not in server.exchanges[-1].headers


def test_requests_beyond_loopback_are_signed() -> None:
    """With an address of another machine the client signs requests and keeps the given Region."""
    transport = SageMakerTransport("demo", session=SESSION, endpoint_url="http://10.0.0.1:8080")
    client = transport.client("sagemaker-runtime")
    assert (client.meta.endpoint_url, client.meta.region_name) == (
        "http://10.0.0.1:8080",
        "eu-central-1",
    )
    assert client.meta.config.signature_version == "v4"


@pytest.mark.parametrize(
    ("session_region", "region_name", "expected"),
    [
        (None, None, "us-east-1"),
        ("eu-west-1", None, "eu-west-1"),
        ("eu-west-1", "eu-north-1", "eu-north-1"),
    ],
)
def test_region_on_loopback(
    monkeypatch: pytest.MonkeyPatch,
    session_region: str | None,
    region_name: str | None,
    expected: str,
) -> None:
    """The Region is region_name, else the session's, else one that a local server ignores."""
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    session = boto3.Session("akid", "secret", region_name=session_region)
    transport = SageMakerTransport(
        "demo", session=session, endpoint_url="http://[::1]:8080", region_name=region_name
    )
    client = transport.client("sagemaker-runtime")
    assert client.meta.region_name == expected
    assert client.meta.config.signature_version is botocore.UNSIGNED
    assert client is transport.client("sagemaker-runtime")


@pytest.mark.parametrize(
    ("endpoint_url", "s3_address", "expected"),
    [
        ("https://vpce-1.example.com", None, "https://s3.eu-north-1.amazonaws.com"),
        ("http://127.0.0.1:8080", None, "http://127.0.0.1:8080"),
        ("http://127.0.0.1:8080", "http://127.0.0.1:9000", "http://127.0.0.1:9000"),
    ],
)
def test_s3_has_its_own_address_beyond_loopback(
    monkeypatch: pytest.MonkeyPatch, endpoint_url: str, s3_address: str | None, expected: str
) -> None:
    """A local run serves S3 too, unless the environment has the address of another S3."""
    if s3_address is not None:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", s3_address)
    options: dict[str, Any] = {"endpoint_url": endpoint_url, "region_name": "eu-north-1"}
    transport = SageMakerTransport("demo", session=SESSION, **options)
    s3 = transport.client("s3")
    assert (s3.meta.endpoint_url, s3.meta.region_name) == (expected, "eu-north-1")


def test_config_replaces_the_default() -> None:
    """A given botocore configuration is used instead of the default one."""
    given: Any = default_config(read_timeout_seconds=1, max_attempts=2)
    client = SageMakerTransport("demo", session=SESSION, config=given).client("sagemaker-runtime")
    assert client.meta.config.read_timeout == 1
    assert client.meta.config.retries["total_max_attempts"] == 2
    assert SageMakerTransport("demo", session=SESSION).client("s3").meta.config.read_timeout == 70


def test_missing_region_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a Region a client can be created, and the error of its first
    call says how to set one.
    """
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    client = TritonClient.for_endpoint("demo")
    with pytest.raises(InvocationError, match=r"NoRegionError.*set region_name"):
        client.infer(INPUTS)


def test_missing_profile_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """An AWS_PROFILE that does not exist is an error of this package that names the variable."""
    monkeypatch.setenv("AWS_PROFILE", "absent")
    with pytest.raises(
        InvocationError, match=r"ProfileNotFound.*\(absent\).*set AWS_PROFILE to a profile"
    ):
        TritonClient.for_endpoint("demo").infer(INPUTS)


def test_url_without_scheme_is_rejected() -> None:
    """botocore would raise an error only at the first call, and not one of this package."""
    with pytest.raises(InvalidValueError, match=r"endpoint_url: must start with http://"):
        TritonClient.for_endpoint("demo", endpoint_url="127.0.0.1:8080")


def test_model_that_is_not_ready_is_retried(server: Server) -> None:
    """botocore retries ModelNotReadyException until the model is ready."""
    server.answers = [failure("ModelNotReadyException", 429), binary_answer()]
    assert for_sagemaker(server.url).infer(INPUTS).metadata["RetryAttempts"] == 1


@pytest.mark.parametrize(
    ("answer", "error", "status", "said"),
    [
        (
            failure("ModelNotReadyException", 429),
            ModelNotReadyError,
            429,
            "request was rejected: no",
        ),
        (
            failure("ThrottlingException", 400),
            EndpointThrottledError,
            400,
            "request was rejected: no",
        ),
        (
            model_failure(507, OUT_OF_MEMORY),
            ModelOutOfMemoryError,
            507,
            "model failed: out of memory",
        ),
        (
            model_failure(400, "wrong shape"),
            InvocationError,
            400,
            "request was rejected: wrong shape",
        ),
        (model_failure(500, "segfault"), InvocationError, 500, "model failed: segfault"),
    ],
)
def test_errors_have_their_class(
    server: Server, answer: Answer, error: type, status: int, said: str
) -> None:
    """Not ready, throttled, out of memory and wrong requests differ in class,
    status and message.
    """
    server.answers = [answer]
    what, message = said.split(": ")
    client = for_sagemaker(server.url, config=default_config(max_attempts=1))
    with pytest.raises(InvocationError) as caught:
        client.infer(INPUTS)
    assert type(caught.value) is error
    assert (caught.value.status, caught.value.request_id) == (status, "r-9")
    assert caught.value.model_message == message
    assert str(caught.value).startswith(
        f"endpoint demo: the {what}, got status {status}: {message}"
    )


def test_unknown_option_is_rejected_before_sending(server: Server) -> None:
    """An option that is not a parameter of InvokeEndpoint is an error of this package."""
    with pytest.raises(
        InvalidValueError,
        match=r"^endpoint demo: an option is unknown .*Colour.*use the parameters of boto3",
    ):
        for_sagemaker(server.url).infer(INPUTS, Colour="red")
    assert server.exchanges == []


def test_closed_port_is_an_invocation_error() -> None:
    """A port without a server raises an error that says what to check."""
    client = for_sagemaker("http://127.0.0.1:9", config=default_config(max_attempts=1))
    with pytest.raises(
        InvocationError, match=r"the request failed.*that a server listens there"
    ) as caught:
        client.infer(INPUTS)
    assert caught.value.status is None


EVENTS = 'data: {"text_output":"grüß"}\r\n\r\ndata: {"text_output":" dich"}\n\n'.encode()


def test_stream_is_read_whatever_its_cuts(server: Server) -> None:
    """The events are the same wherever SageMaker cuts the parts of boto3's event stream."""
    client = for_sagemaker(server.url)
    for cut in range(1, len(EVENTS)):
        frames = frame(EVENTS[:cut]) + frame(EVENTS[cut:])
        server.answers = [
            Answer(200, frames, {"Content-Type": "application/vnd.amazon.eventstream"})
        ]
        answers = list(client.infer_stream({"text_input": "hello", "stream": True}))
        assert [answer["text_output"] for answer in answers] == ["grüß", " dich"]
    assert json.loads(server.exchanges[0].body) == {"text_input": "hello", "stream": True}
    assert server.exchanges[0].path == "/endpoints/demo/invocations-response-stream"


def test_stream_that_ends_with_an_error(server: Server) -> None:
    """A ModelStreamError in the stream is raised after the events before it."""
    frames = frame(EVENTS) + frame(b'{"Message":"gone"}', "ModelStreamError", "exception")
    server.answers = [Answer(200, frames, {"Content-Type": "application/vnd.amazon.eventstream"})]
    answers = for_sagemaker(server.url).infer_stream({"text_input": "hello"})
    assert [next(answers)["text_output"], next(answers)["text_output"]] == ["grüß", " dich"]
    message = "endpoint demo: the model failed, got ModelStreamError: gone; see the"
    with pytest.raises(InvocationError, match=message):
        next(answers)


def test_session_must_be_one_of_boto3() -> None:
    """A client of boto3 in its place would fail at the first call."""
    session: Any = boto3.Session().client("sagemaker-runtime", region_name="eu-west-1")
    with pytest.raises(
        InvalidValueError, match=r"session: must be a boto3.Session, got SageMakerRuntime; "
    ):
        TritonClient.for_endpoint("demo", session=session)


def test_threads_share_one_client_of_boto3(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sessions of boto3 are not safe to use from several threads, and each client takes 0.1 s."""
    created = []

    def create(*arguments: Any, _original: Any = boto3.Session.client, **options: Any) -> Any:
        created.append(arguments)
        return _original(*arguments, **options)

    monkeypatch.setattr(boto3.Session, "client", create)
    transport = SageMakerTransport("demo", endpoint_url="http://127.0.0.1:9")
    together = Barrier(4)

    def prepare(_: int) -> None:
        together.wait()
        transport.prepare()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(prepare, range(4)))
    assert len(created) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_attempts": 0}, "max_attempts: must be at least 1, got 0; raise it to 1"),
        (
            {"read_timeout_seconds": "25"},
            'read_timeout_seconds: must be a number, got "25"; write it without',
        ),
        (
            {"read_timeout_seconds": 0},
            "read_timeout_seconds: must be at least 0.001 seconds, got 0",
        ),
    ],
)
def test_numbers_of_the_configuration_are_checked(options: dict[str, Any], message: str) -> None:
    """botocore checks them later, with an error of its own."""
    with pytest.raises(InvalidValueError, match=f"^{message}"):
        default_config(**options)


def test_default_configuration() -> None:
    """Reads wait 70 s, because a container may take 60 s,
    and there are 4 attempts in legacy mode.
    """
    config: Any = default_config()  # the stubs of botocore do not list its options
    assert config.read_timeout == 70
    assert config.connect_timeout == 5
    assert config.max_pool_connections == 50
    assert config.retries == {"mode": "legacy", "total_max_attempts": 4}


def test_missing_boto3_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without boto3 the error is the command that installs it."""
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(
        MissingDependencyError, match=r"pip install 'constructs-triton-client\[aws\]'"
    ):
        SageMakerTransport("demo").invoke(Invocation(b"", "text/plain"))


def test_metadata_without_a_request_id() -> None:
    """A response without metadata has no request id and no retries."""
    transport = SageMakerTransport("demo", session=SESSION)
    with Stubber(transport.client("sagemaker-runtime")) as stubber:
        body = StreamingBody(io.BytesIO(b"reply"), 5)
        stubber.add_response("invoke_endpoint", {"Body": body, "InvokedProductionVariant": "A"})
        reply = transport.invoke(Invocation(b"", "text/plain"))
    expected = {"InvokedProductionVariant": "A", "RequestId": None, "RetryAttempts": 0}
    assert dict(reply.metadata) == expected


def test_response_without_content_type(server: Server) -> None:
    """A response without a content type has an empty one."""
    server.answers = [Answer(200, b"reply")]
    transport = for_sagemaker(server.url).transport
    reply = transport.invoke(Invocation(b"", "text/plain"))
    assert (reply.body, reply.content_type) == (b"reply", "")


def test_bearer_token_is_a_signed_request() -> None:
    """Its form is that of AWS's package; the secret key is not in it."""
    session = boto3.Session("AKIDEXAMPLE", "secret-key", "token/+=", region_name="eu-west-1")
    token = SageMakerTransport("chat", session=session).bearer_token(3600)
    prefix, _, encoded = token.rpartition("-")
    address, _, query = base64.b64decode(encoded, validate=True).decode().partition("?")
    fields = {name: value for name, (value,) in parse_qs(query, strict_parsing=True).items()}
    assert (prefix, address) == ("sagemaker-api-key", "sagemaker.amazonaws.com/")
    assert [*fields] == ["Action", *(f"X-Amz-{name}" for name in SIGNED), "Version"]
    assert fields["Action"] == "CallWithBearerToken"
    assert fields["X-Amz-Credential"].split("/")[::2] == [
        "AKIDEXAMPLE",
        "eu-west-1",
        "aws4_request",
    ]
    assert (fields["X-Amz-Expires"], fields["X-Amz-Security-Token"]) == ("3600", "token/+=")
    assert "secret-key" not in str(fields)


SIGNED = (
    "Algorithm",
    "Credential",
    "Date",
    "Expires",
    "SignedHeaders",
    "Security-Token",
    "Signature",
)


@pytest.mark.parametrize("seconds", [0, 43_201])
def test_bearer_token_is_valid_for_at_most_12_hours(seconds: int) -> None:
    """SageMaker accepts no longer ones."""
    with pytest.raises(
        InvalidValueError, match=f"valid_seconds: must be from 1 to 43200, got {seconds}; write"
    ):
        SageMakerTransport("chat", session=SESSION).bearer_token(seconds)


def test_bearer_token_needs_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names what to do, as for a request."""
    monkeypatch.setattr(boto3.Session, "get_credentials", lambda _: None)
    with pytest.raises(
        InvocationError, match=r"chat.*NoCredentialsError.*; log in to AWS, or pass a session"
    ):
        SageMakerTransport("chat", region_name="eu-west-1").bearer_token()
