"""The requests of a load test are those of boto3."""

from __future__ import annotations

import asyncio
import sys
import tracemalloc
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import boto3
import pytest
from aiohttp import web
from botocore.credentials import Credentials
from fake_container import in_loop, running_server
from null_server import NullServer, run_null_server

from constructs_triton_client import HttpTransport, Invocation, SageMakerTransport
from constructs_triton_core.errors import InvalidValueError, MissingDependencyError
from constructs_triton_tools.local.gateway.relay import payload_part
from constructs_triton_tools.measuring.load_test import prepared_requests
from constructs_triton_tools.measuring.load_test.open_loop import NoteEvent
from constructs_triton_tools.measuring.load_test.prepared_requests import (
    HttpSender,
    PreparedRequest,
    Signer,
    SigningScope,
    prepare,
)
from constructs_triton_tools.measuring.load_test.step import Limits, StepSettings
from constructs_triton_tools.measuring.load_test.step_runner import StepRunner
from constructs_triton_tools.measuring.load_test.stream_figures import StreamLimits

OPTIONS = {"TargetModel": "cats and dogs.tar.gz", "InferenceComponentName": "pets"}
INVOCATION = Invocation(b'{"inputs": []}', "application/json", OPTIONS)
CREDENTIALS = ("AKIDEXAMPLE", "secret", "token")


@pytest.fixture
def server() -> Iterator[NullServer]:
    with run_null_server() as server:
        yield server


def session() -> boto3.Session:
    return boto3.Session(*CREDENTIALS, region_name="eu-west-1")


def send(request: PreparedRequest) -> tuple[int, str]:
    """The status and the error of one request."""

    async def once() -> tuple[int, str]:
        async with HttpSender(None, is_local=True) as sender:
            return await sender.send(request)

    return asyncio.run(once())


def stream(request: PreparedRequest, note: NoteEvent = lambda *_: None) -> tuple[int, str]:
    """The status and the error of one request whose response is a stream."""

    async def once() -> tuple[int, str]:
        async with HttpSender(None, is_local=True) as sender:
            return await sender.stream(request, note)

    return asyncio.run(once())


def test_signature_is_that_of_boto3(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the same time and for the same request,
    boto3 and the load test write the same signature.
    """
    monkeypatch.setattr(
        "botocore.auth.get_current_datetime", lambda: datetime(2026, 1, 5, 8, tzinfo=UTC)
    )
    sent: list[Any] = []

    def capture(request: Any, **_: Any) -> None:
        sent.append(request.headers)

    boto3_session = session()
    client = boto3_session.client("sagemaker-runtime")
    client.meta.events.register(
        "before-send.sagemaker-runtime.InvokeEndpoint", capture, unique_id="a"
    )
    transport = SageMakerTransport("pets", session=boto3_session)
    transport.client("sagemaker-runtime").meta.events.register_first(
        "before-send.sagemaker-runtime.InvokeEndpoint", capture
    )

    request = prepare(transport, INVOCATION)
    runtime = "https://runtime.sagemaker.eu-west-1.amazonaws.com"
    assert request.url == f"{runtime}/endpoints/pets/invocations"
    assert request.scope == SigningScope("eu-west-1", "sagemaker")

    signed = Signer(Credentials(*CREDENTIALS)).sign(request)
    authorization = signed["Authorization"]
    assert authorization == sent[0]["Authorization"].decode()
    assert "x-amzn-sagemaker-inference-component;x-amzn-sagemaker-target-model" in authorization
    assert signed["X-Amz-Security-Token"] == "token"


def test_request_arrives_as_that_of_boto3(server: NullServer) -> None:
    """Path, body and headers are the same, but for the headers about attempts and the program."""
    transport = SageMakerTransport("pets", endpoint_url=server.url)
    transport.invoke(INVOCATION)
    request = prepare(transport, INVOCATION)
    assert len(server.received) == 1
    assert request.scope is None
    assert send(request) == (200, "")

    (path, headers, body), (own_path, own_headers, own_body) = server.received
    assert own_path == path
    assert own_body == body
    assert compared(own_headers) == compared(headers)


def compared(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers without those about attempts and the program."""
    ignored = {
        "user-agent",
        "accept-encoding",
        "accept",
        "host",
        "amz-sdk-invocation-id",
        "amz-sdk-request",
    }
    lower = {name.lower(): value for name, value in headers.items()}
    return {name: value for name, value in lower.items() if name not in ignored}


def test_stream_arrives_as_that_of_boto3(server: NullServer) -> None:
    """InvokeEndpointWithResponseStream has another path, and no TargetModel."""
    server.content_type = "application/vnd.amazon.eventstream"
    server.answer = payload_part(b'data: {"model_name":"m"}\n\n')
    transport = SageMakerTransport("story", endpoint_url=server.url)
    invocation = Invocation(b"{}", "application/json", {"InferenceComponentName": "pets"})
    list(transport.stream(invocation))
    request = prepare(transport, invocation, is_stream=True)
    noted: list[tuple[int | None, int | None]] = []
    assert stream(request, lambda _, *numbers: noted.append(numbers)) == (200, "")
    assert noted == [(None, None)]

    (path, headers, body), (own_path, own_headers, own_body) = server.received
    assert path == "/endpoints/story/invocations-response-stream"
    assert own_path == path
    assert own_body == body
    for name in ("X-Amzn-SageMaker-Inference-Component", "Content-Type"):
        assert own_headers[name] == headers[name]

    aws = prepare(SageMakerTransport("story", session=session()), invocation, is_stream=True)
    assert aws.url == f"https://runtime.sagemaker.eu-west-1.amazonaws.com{path}"
    assert aws.scope == SigningScope("eu-west-1", "sagemaker")


def test_a_server_that_fails_has_a_status_and_a_message(server: NullServer) -> None:
    """A refusal has its body in the message, also of a stream;
    without a connection the status is 0.
    """
    server.status = lambda _: 424
    for ask in (send, stream):
        request = prepare(HttpTransport(server.url), Invocation(b"x", "text/plain"))
        assert ask(request) == (424, '424 {"message": "no"}')
        status, message = ask(PreparedRequest("http://127.0.0.1:1/invocations", {}, b"x"))
        assert (status, message[:20]) == (0, "ClientConnectorError")


def test_request_to_a_container_has_its_path(server: NullServer) -> None:
    """A container gets the target model in the path and as a header, and no signature."""
    request = prepare(
        HttpTransport(server.url), Invocation(b"x", "text/plain", {"TargetModel": "a b"}), weight=2
    )
    assert request.weight == 2
    send(request)
    path, headers, body = server.received[0]
    assert (path, headers["X-Amzn-SageMaker-Target-Model"], body) == (
        "/models/a%20b/invoke",
        "a b",
        b"x",
    )


@pytest.mark.parametrize("processes", [1, 2])
def test_runner_measures_in_one_process_or_several(server: NullServer, processes: int) -> None:
    """The planned number of requests arrives, whatever the number of processes."""
    request = prepare(HttpTransport(server.url), Invocation(b"x", "text/plain"))
    runner = StepRunner([request], Limits(latency_ms=60_000), processes=processes)
    settings = StepSettings(seconds=1, warm_up_seconds=0, constant=True)
    result = runner.measure(20, settings)
    assert result.good == len(server.received)
    # Whether the last request of each process, due as the step ends, is sent depends on rounding.
    assert 20 - processes <= result.good <= 20
    assert result.cpu > 0


def test_progress_is_shown_during_a_step(server: NullServer) -> None:
    """Twice a second, with the rate and what was answered so far."""
    shown: list[tuple[float, int]] = []
    request = prepare(HttpTransport(server.url), Invocation(b"x", "text/plain"))
    runner = StepRunner(
        [request],
        Limits(latency_ms=60_000),
        show=lambda rate, _, live: shown.append((rate, live.sent)),
    )
    runner.measure(20, StepSettings(seconds=1.5, warm_up_seconds=0))
    assert shown
    assert shown[-1][0] == 20


LIMITS = Limits(latency_ms=5)
ANY = PreparedRequest("", {}, b"")


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: StepRunner([], LIMITS), r"requests: must contain at least one request"),
        (
            lambda: StepRunner([ANY], LIMITS, processes=0),
            r"processes: must be from 1 to 256, got 0",
        ),
        (lambda: Limits(latency_ms=0), r"latency_ms: must be above 0"),
        (
            lambda: Limits(latency_ms=5, percentile=0.95),
            r"percentile: must be from 50 to 99, got 0\.95",
        ),
        (lambda: StepSettings(seconds=0), r"seconds: must be from 1 to 3600"),
        (lambda: StepSettings(warm_up_seconds=-1), r"warm_up_seconds: must be from 0"),
        (lambda: StepSettings(max_in_flight=0), r"max_in_flight: must be from 1"),
        (lambda: StepSettings(most_requests=0), r"most_requests: must be .*, got 0; raise it to 1"),
        (
            lambda: StepSettings(grace_seconds=-1),
            r"grace_seconds: must be .*, got -1; raise it to 0",
        ),
        (lambda: StreamLimits(first_token_ms=0), r"first_token_ms: must be above 0, got 0"),
        (lambda: StreamLimits(between_tokens_ms=0), r"between_tokens_ms: must be above 0, got 0"),
        (lambda: StreamLimits(latency_ms=0), r"latency_ms: must be above 0, got 0"),
        (
            lambda: prepare(HttpTransport("http://a"), INVOCATION, weight=0),
            r"weight: must be above 0",
        ),
    ],
)
def test_invalid_values_are_refused(build: Any, message: str) -> None:
    """The message has the name, the range and the value."""
    with pytest.raises(InvalidValueError, match=message):
        build()


def test_missing_aiohttp_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message has the command that installs it."""
    monkeypatch.setitem(sys.modules, "aiohttp", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'constructs-triton\[load\]'"):
        StepRunner([ANY], LIMITS)


def test_missing_credentials_are_reported_before_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """Signed requests need credentials, and the message says how to get them."""
    monkeypatch.setattr(boto3.Session, "get_credentials", lambda _: None)
    signed = PreparedRequest("https://x", {}, b"", SigningScope("eu-west-1", "sagemaker"))
    with pytest.raises(
        InvalidValueError, match=r"AWS: no credentials were found; run `aws configure`"
    ):
        StepRunner([signed], LIMITS)


@in_loop
async def test_response_is_not_kept() -> None:
    """A load test needs the status of a response, and the beginning of an error."""

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=500)
        await response.prepare(request)
        await response.write(b"no such model")
        for _ in range(64):
            await response.write(b" " * 2**20)
        return response

    tracemalloc.start()
    async with running_server(answer) as port, HttpSender(None, is_local=True) as sender:
        request = PreparedRequest(f"http://127.0.0.1:{port}/invocations", {}, b"{}")
        answered = await sender.send(request)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert answered == (500, "500 no such model")
    assert peak < 32 * 2**20


@in_loop
async def test_netrc_is_not_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Credentials of ~/.netrc are neither sent to an endpoint nor an error beside a signature."""
    (tmp_path / "netrc").write_text("default login me password secret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    seen: list[str | None] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(request.headers.get("Authorization"))
        return web.Response()

    async with running_server(answer) as port, HttpSender(None, is_local=False) as sender:
        for headers in ({}, {"Authorization": "AWS4-HMAC-SHA256 x"}):
            request = PreparedRequest(f"http://127.0.0.1:{port}/invocations", headers, b"{}")
            assert await sender.send(request) == (200, "")
    assert seen == [None, "AWS4-HMAC-SHA256 x"]


@in_loop
async def test_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """The proxy gets the whole address and its own credentials; exceptions are honoured."""
    seen: list[tuple[str, str | None]] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append((request.raw_path, request.headers.get("Proxy-Authorization")))
        return web.Response()

    monkeypatch.setattr(prepared_requests, "_proxy", prepared_requests._proxy.__wrapped__)
    async with running_server(answer) as port, HttpSender(None, is_local=False) as sender:
        monkeypatch.setenv("http_proxy", f"http://me:secret@127.0.0.1:{port}")
        monkeypatch.setenv("no_proxy", "127.0.0.1")
        for host in ("endpoint.invalid", f"127.0.0.1:{port}"):
            request = PreparedRequest(f"http://{host}/invocations", {}, b"{}")
            assert await sender.send(request) == (200, "")
    basic = "Basic bWU6c2VjcmV0"
    assert seen == [("http://endpoint.invalid/invocations", basic), ("/invocations", None)]


@in_loop
async def test_stream_has_a_longest_duration(monkeypatch: pytest.MonkeyPatch) -> None:
    """SageMaker ends a stream after 480 s; one that goes on is a failed request after 490 s."""
    assert prepared_requests._STREAM_SECONDS == 490
    monkeypatch.setattr(prepared_requests, "_STREAM_SECONDS", 0.5)

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        while True:
            await response.write(b": still here\n")
            await asyncio.sleep(0.05)

    async with running_server(answer) as port, HttpSender(None, is_local=True) as sender:
        request = PreparedRequest(f"http://127.0.0.1:{port}/invocations", {}, b"{}")
        status, message = await sender.stream(request, lambda *_: None)
    assert (status, "Timeout" in message) == (200, True)
