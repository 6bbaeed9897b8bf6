"""The transport over plain HTTP: real urllib3 against a scripted server on loopback."""

from __future__ import annotations

import operator
import socket
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from loopback_server import Answer, Server, binary_answer, run_server, sagemaker_transport

from constructs_triton_client import HttpTransport, Invocation, TritonClient
from constructs_triton_client.transports.bounded_reader import MAXIMUM_RESPONSE_BYTES
from constructs_triton_client.transports.http_transport import READ_TIMEOUT_SECONDS
from constructs_triton_core.errors import (
    InvalidValueError,
    InvocationError,
    MissingDependencyError,
    ModelOutOfMemoryError,
)

INPUTS = {"X": np.arange(3, dtype="f4")}
EVENTS = b'data: {"a":1}\r\n\r\ndata: {"a":2}\n\n'
REQUEST = Invocation(b"body", "text/plain")


@pytest.fixture
def server() -> Iterator[Server]:
    """A scripted server, stopped after the test."""
    with run_server() as server:
        yield server


def test_requests_use_the_paths_of_sagemaker(server: Server) -> None:
    """A request goes to /invocations, and one with a target model to that model's
    path with the header.
    """
    server.answers = [binary_answer()]
    client = TritonClient(HttpTransport(server.url + "/"))
    assert client.infer(INPUTS)["Y"].tolist() == [1.5]
    client.infer(INPUTS, TargetModel="a b/c.tar.gz")
    paths = [exchange.path for exchange in server.exchanges]
    assert paths == ["/invocations", "/models/a%20b%2Fc.tar.gz/invoke"]
    assert server.exchanges[1].headers["X-Amzn-SageMaker-Target-Model"] == "a b/c.tar.gz"
    assert "X-Amzn-SageMaker-Target-Model" not in server.exchanges[0].headers


def test_reply_has_body_content_type_and_headers(server: Server) -> None:
    """The reply is the response as received, and the request is sent unchanged."""
    server.answers = [Answer(200, b"reply", {"Content-Type": "text/x", "X-Extra": "1"})]
    reply = HttpTransport(server.url).invoke(REQUEST)
    assert (reply.body, reply.content_type, reply.metadata["Headers"]["X-Extra"]) == (
        b"reply",
        "text/x",
        "1",
    )
    (exchange,) = server.exchanges
    assert (exchange.body, exchange.headers["Content-Type"]) == (b"body", "text/plain")
    server.answers = [Answer(200, b"reply")]
    assert HttpTransport(server.url).invoke(REQUEST).content_type == ""


@pytest.mark.parametrize(
    ("option", "header"),
    [
        ("Accept", "Accept"),
        ("CustomAttributes", "X-Amzn-SageMaker-Custom-Attributes"),
        ("InferenceId", "X-Amzn-SageMaker-Inference-Id"),
        ("SessionId", "X-Amzn-SageMaker-Session-Id"),
        ("TargetModel", "X-Amzn-SageMaker-Target-Model"),
        ("TargetVariant", "X-Amzn-SageMaker-Target-Variant"),
    ],
)
def test_options_become_headers(server: Server, option: str, header: str) -> None:
    """Each parameter of InvokeEndpoint that reaches a container is sent as its header."""
    server.answers = [Answer()]
    HttpTransport(server.url).invoke(Invocation(b"", "text/plain", {option: "value"}))
    assert server.exchanges[0].headers[header] == "value"


def test_options_that_reach_no_container_are_rejected() -> None:
    """A container never receives EnableExplanations, so using it is an error."""
    with pytest.raises(
        InvalidValueError, match="EnableExplanations: is not sent over plain HTTP; remove"
    ):
        TritonClient(HttpTransport("http://127.0.0.1:9")).infer(INPUTS, EnableExplanations="x")


@pytest.mark.parametrize("url", ["localhost:8080", "ftp://x", ""])
def test_url_without_scheme_is_rejected(url: str) -> None:
    """The error shows how to write the address."""
    with pytest.raises(
        InvalidValueError, match=r"^url: must start with http://.* write it as http://host"
    ):
        HttpTransport(url)
    assert HttpTransport("https://host").url == "https://host"


@pytest.mark.parametrize(
    "path", ["/invocations", "/endpoints/demo/invocations/", "/endpoints/demo"]
)
def test_url_with_the_path_of_a_call_is_rejected(path: str) -> None:
    """Transports add the path, so the error shows the address without it."""
    address, fix = "http://127.0.0.1:8080", "must not have the path of a call, got .*; write it as"
    with pytest.raises(InvalidValueError, match=f"^endpoint_url: {fix} {address}$"):
        TritonClient.for_endpoint("demo", endpoint_url=f"{address}{path}")
    if path == "/endpoints/demo":  # a path of `local up` that answers as a container does
        assert HttpTransport(f"{address}{path}").url == f"{address}{path}"
    else:
        with pytest.raises(
            InvalidValueError, match=f"^url: {fix} {address}{path[: path.rfind('/inv')]}$"
        ):
            HttpTransport(f"{address}{path}")
    assert HttpTransport("https://host/endpoints/e/openai/v1/chat/completions").url.endswith(
        "completions"
    )


@pytest.mark.parametrize("is_stream", [False, True])
@pytest.mark.parametrize(
    ("status", "error", "what"),
    [
        (507, ModelOutOfMemoryError, "the model failed"),
        (500, InvocationError, "the model failed"),
        (499, InvocationError, "the request was rejected"),
        (302, InvocationError, "the request was rejected"),
        (201, InvocationError, "the request was rejected"),
    ],
)
def test_failure_has_status_and_message(
    server: Server, status: int, error: type[InvocationError], what: str, is_stream: bool
) -> None:
    """Any status but 200 is an error with the status and the message of the container."""
    server.answers = [Answer(status, b'{"error":"no space left"}', {"Location": "/elsewhere"})]
    transport = HttpTransport(server.url)
    with pytest.raises(InvocationError) as caught:
        list(transport.stream(REQUEST)) if is_stream else transport.invoke(REQUEST)
    assert type(caught.value) is error
    assert (caught.value.status, caught.value.model_message) == (status, "no space left")
    assert f"endpoint {server.url}: {what}, got status {status}: no space left; " in str(
        caught.value
    )
    assert len(server.exchanges) == 1


def test_streams_yield_events(server: Server) -> None:
    """The events of a generating container are read over plain HTTP."""
    server.answers = [Answer(200, EVENTS, {"Content-Type": "text/event-stream"})]
    events = TritonClient(HttpTransport(server.url)).infer_stream({"text_input": "x"})
    assert list(events) == [{"a": 1}, {"a": 2}]


def test_announced_length_is_checked_before_reading(server: Server) -> None:
    """A Content-Length of 10 GB raises an error before the body is read."""
    headers = {"Content-Type": "application/json", "Connection": "close"}
    server.answers = [Answer(200, b"x", headers, 10 * 10**9)]
    with pytest.raises(
        InvocationError, match=f"at most {1024**3} bytes, got 10000000000; raise maximum_re"
    ):
        TritonClient(HttpTransport(server.url)).infer(INPUTS)


def test_response_that_is_too_long_is_closed(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A response that is not read to its end is closed, so that its connection is not left open."""
    transport = HttpTransport(server.url, maximum_response_bytes=4)
    pool: Any = transport._connect()
    opened: list[Any] = []
    request = pool.request

    def record(*arguments: Any, **options: Any) -> Any:
        opened.append(request(*arguments, **options))
        return opened[-1]

    monkeypatch.setattr(pool, "request", record)
    server.answers = [Answer(200, b"12345")]
    with pytest.raises(InvocationError, match="got 5"):
        transport.invoke(REQUEST)
    assert opened[0].closed


def test_a_child_process_has_its_own_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers that fork their workers create the client before."""
    http, sagemaker = HttpTransport("http://127.0.0.1:9"), sagemaker_transport("http://127.0.0.1:9")

    def connections() -> list[Any]:
        return [http._connect(), sagemaker.client("sagemaker-runtime")]

    parent = connections()
    assert all(map(operator.is_, connections(), parent))
    monkeypatch.setattr("os.getpid", lambda: -1)
    assert all(map(operator.is_not, connections(), parent))


def test_connection_is_reused(server: Server) -> None:
    """Several requests use one connection."""
    server.answers = [binary_answer()]
    transport = HttpTransport(server.url)
    for _ in range(3):
        transport.invoke(REQUEST)
    pool: Any = transport._connect().connection_from_url(server.url)
    assert pool.num_connections == 1
    assert (pool.num_requests, pool.pool.maxsize) == (3, 50)


def test_silent_server_times_out() -> None:
    """A server that accepts the connection and sends nothing raises an error
    after the read timeout.
    """
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        started = time.monotonic()
        with pytest.raises(InvocationError, match=r"ReadTimeoutError.*use infer_async") as caught:
            HttpTransport(url, read_timeout_seconds=0.2).invoke(REQUEST)
    assert 0.15 < time.monotonic() - started < 5
    assert caught.value.status is None


def test_timeouts_are_those_of_sagemaker() -> None:
    """Reads wait 70 s by default, because a container may take 60 s,
    and connecting takes at most 5 s.
    """
    timeout = HttpTransport("http://127.0.0.1:9")._connect().connection_pool_kw["timeout"]
    assert (timeout.connect_timeout, timeout.read_timeout) == (5.0, READ_TIMEOUT_SECONDS)
    assert (READ_TIMEOUT_SECONDS, MAXIMUM_RESPONSE_BYTES) == (70.0, 1024**3)


def test_closed_port_is_an_invocation_error() -> None:
    """A port without a server raises an error that says what to check."""
    with pytest.raises(
        InvocationError, match=r"the request failed.*that a server listens there"
    ) as caught:
        TritonClient(HttpTransport("http://127.0.0.1:9")).infer(INPUTS)
    assert "refused" in (caught.value.model_message or "")


def test_missing_urllib3_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without urllib3 the error is the command that installs it."""
    monkeypatch.setitem(sys.modules, "urllib3", None)
    with pytest.raises(
        MissingDependencyError, match=r"pip install 'constructs-triton-client\[http\]'"
    ):
        HttpTransport("http://127.0.0.1:9").invoke(REQUEST)
