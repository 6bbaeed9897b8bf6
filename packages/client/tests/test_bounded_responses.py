"""What the transports read: the first event without delay, and never more than their bounds."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hostile_answers import CHUNKED, EVENT, OK, answer, event_stream, frame
from loopback_server import RawServer, run_raw_server, sagemaker_transport

from constructs_triton_client import HttpTransport, Invocation, TritonClient
from constructs_triton_client.transports import bounded_connections
from constructs_triton_client.transports.bounded_connections import (
    MAXIMUM_ERROR_BYTES,
    MAXIMUM_HEAD_BYTES,
    MAXIMUM_SECONDS,
)
from constructs_triton_client.transports.bounded_reader import MAXIMUM_RESPONSE_BYTES
from constructs_triton_client.transports.sagemaker_transport import SageMakerTransport
from constructs_triton_client.wire.json_text import MAXIMUM_JSON_BYTES
from constructs_triton_core.errors import InvalidValueError, InvocationError
from constructs_triton_core.model_index import MAXIMUM_INDEX_BYTES, ModelIndex

REQUEST = Invocation(b"", "text/plain")
TRANSPORTS = ["HTTP", "SageMaker"]


@pytest.fixture(scope="module")
def server() -> Iterator[RawServer]:
    """A server whose answers are any bytes."""
    with run_raw_server() as server:
        yield server


@pytest.fixture(scope="module")
def sagemaker(server: RawServer) -> SageMakerTransport:
    """A transport with the default bounds."""
    return sagemaker_transport(server.url)


@pytest.fixture(autouse=True)
def closed_connections(server: RawServer) -> Iterator[None]:
    """Wait for the end of each test's connections, so that no other test uses one."""
    yield
    server.wait()


def transport(kind: str, url: str, **options: Any) -> HttpTransport | SageMakerTransport:
    if kind == "HTTP":
        return HttpTransport(url, read_timeout_seconds=10, **options)
    return sagemaker_transport(url, **options)


@pytest.mark.parametrize("kind", TRANSPORTS)
@pytest.mark.parametrize("framing", ["no length", "length", "chunks"])
def test_first_event_does_not_wait_for_the_rest(server: RawServer, kind: str, framing: str) -> None:
    """The server sends the second event when the client has received the first."""
    received = threading.Event()
    first, second = (EVENT, EVENT) if kind == "HTTP" else (frame(EVENT), frame(EVENT))
    heads = {
        "no length": OK + b"\r\n",
        "length": OK + b"Content-Length: %d\r\n\r\n" % (len(first) * 2),
        "chunks": CHUNKED,
    }

    def parts() -> Iterator[bytes]:
        yield heads[framing]
        for part in (first, second):
            yield b"%x\r\n%s\r\n" % (len(part), part) if framing == "chunks" else part
            assert received.wait(10)
        yield b"0\r\n\r\n" if framing == "chunks" else b""

    server.answer = parts
    events = TritonClient(transport(kind, server.url)).infer_stream({"a": 1})
    assert next(events) == {"a": 1}
    received.set()
    assert list(events) == [{"a": 1}]


@pytest.mark.parametrize("kind", TRANSPORTS)
def test_first_event_of_an_endless_answer_is_yielded(server: RawServer, kind: str) -> None:
    """The events before an excess or a broken message are received; then comes the error."""
    event = EVENT if kind == "HTTP" else frame(EVENT)
    server.answer = lambda: [OK + b"\r\n" + event, bytes(2**17)]
    events = TritonClient(transport(kind, server.url, maximum_response_bytes=2**16)).infer_stream(
        {"a": 1}
    )
    assert next(events) == {"a": 1}
    with pytest.raises(InvocationError):
        list(events)


@pytest.mark.parametrize("kind", TRANSPORTS)
@pytest.mark.parametrize("is_chunked", [True, False])
def test_body_may_have_the_maximum_and_no_more(
    server: RawServer, kind: str, is_chunked: bool
) -> None:
    """A body and a stream of the maximum length are read, and one more byte is an error."""
    receiver = transport(kind, server.url, maximum_response_bytes=40)

    def respond(size: int) -> bytes:
        body = b"x" * size if kind == "HTTP" else frame(b"x" * size)[:size]
        return CHUNKED + b"1\r\nx\r\n" * size + b"0\r\n\r\n" if is_chunked else answer(body)

    server.answer = lambda: [respond(40)]
    assert len(receiver.invoke(REQUEST).body) == 40
    server.wait()
    server.answer = lambda: [respond(41)]
    with pytest.raises(
        InvocationError, match="at most 40 bytes, got 41; raise maximum_response_bytes of the"
    ):
        receiver.invoke(REQUEST)
    server.wait()
    if kind == "HTTP":
        with pytest.raises(InvocationError, match="at most 40 bytes, got 41"):
            list(receiver.stream(REQUEST))


def test_maximum_of_a_sagemaker_stream(server: RawServer) -> None:
    """The bytes of a stream count with their framing, and the stream may have the maximum."""
    frames = frame(b"x") * 10
    for maximum, error in (
        (len(frames), None),
        (len(frames) - 1, f"at most {len(frames) - 1} bytes"),
    ):
        server.answer = lambda: [event_stream(frames)]
        stream = transport("SageMaker", server.url, maximum_response_bytes=maximum).stream(REQUEST)
        if error is None:
            assert list(stream) == [b"x"] * 10
        else:
            with pytest.raises(InvocationError, match=error):
                list(stream)


@pytest.mark.parametrize("cut", [1, 3, 4, 20, 60])
def test_stream_that_ends_within_a_message(
    server: RawServer, sagemaker: SageMakerTransport, cut: int
) -> None:
    """botocore ignores a message that is not complete; the client raises an error,
    wherever it is cut.
    """
    whole = frame(b": comment\n\n")
    body = whole + whole[:cut]
    server.answer = lambda: [
        CHUNKED + b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
    ]
    stream = sagemaker.stream(REQUEST)
    assert next(stream) == b": comment\n\n"
    with pytest.raises(
        InvocationError, match="demo: the stream ended within a message; send the request"
    ):
        list(stream)


def test_stream_that_ends_before_its_length(
    server: RawServer, sagemaker: SageMakerTransport
) -> None:
    """A stream that is shorter than its Content-Length is an error,
    also where botocore accepts it.
    """
    server.answer = lambda: [OK + b"Content-Length: 1000\r\n\r\n" + frame(EVENT)]
    with pytest.raises(InvocationError, match=f"ended {1000 - len(frame(EVENT))} bytes early"):
        list(sagemaker.stream(REQUEST))


@pytest.mark.parametrize("kind", TRANSPORTS)
def test_a_response_has_a_longest_duration(
    server: RawServer, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A response that drips stops after the maximum number of seconds from its first byte."""
    monkeypatch.setattr(bounded_connections, "MAXIMUM_SECONDS", 0.0)
    sent = threading.Event()

    def drip() -> Iterator[bytes]:
        yield OK
        assert not sent.wait(0.05)
        yield b"Content-Length: 2\r\n\r\n{}"

    server.answer = drip
    with pytest.raises(
        InvocationError, match="may take at most 0 s from its first byte; send a smaller"
    ):
        transport(kind, server.url).invoke(REQUEST)


@pytest.mark.parametrize("kind", TRANSPORTS)
def test_request_after_a_hostile_answer_succeeds(server: RawServer, kind: str) -> None:
    """A broken connection is not used again."""
    receiver = transport(kind, server.url)
    for body in (
        CHUNKED + b"-1\r\n",
        OK + b"Content-Length: 9\r\n\r\nx",
        b"HTTP/1.1 500 E\r\n\r\n\xff",
    ):
        server.answer = lambda body=body: [body]  # type: ignore[misc]  # mypy cannot infer its type
        with pytest.raises(InvocationError):
            receiver.invoke(REQUEST)
        server.wait()
        server.answer = lambda: [answer(b"{}")]
        assert receiver.invoke(REQUEST).body == b"{}"
        server.wait()


def test_bodies_are_bounded_whatever_botocore_looks_like(
    server: RawServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where connections cannot be bounded, the bodies of responses and streams still are."""
    create = SageMakerTransport._create_client

    def create_other(self: SageMakerTransport, session: Any, service: str) -> Any:
        client = create(self, session, service)
        client._endpoint.http_session = _OtherSession(client._endpoint.http_session)
        return client

    monkeypatch.setattr(SageMakerTransport, "_create_client", create_other)
    receiver = transport("SageMaker", server.url, maximum_response_bytes=40)
    server.answer = lambda: [OK + b"\r\n" + frame(b"x" * 9) * 100]
    for read in (receiver.invoke, lambda request: list(receiver.stream(request))):
        with pytest.raises(InvocationError, match="at most 40 bytes, got "):
            read(REQUEST)


class _OtherSession:
    """A session of botocore without the attributes of this version."""

    def __init__(self, session: Any) -> None:
        self.send = session.send


def test_connections_of_botocore_are_found(sagemaker: SageMakerTransport) -> None:
    """The installed version of botocore has the attributes through which its
    connections are bounded.
    """
    client = sagemaker.client("sagemaker-runtime")
    pools = client._endpoint.http_session._manager.pool_classes_by_scheme
    names = {pool.ConnectionCls.response_class.__name__ for pool in pools.values()}
    assert (set(pools), names) == ({"http", "https"}, {"BoundedResponse"})


def test_large_index_is_an_error() -> None:
    """An index of more than 64 MiB is not parsed."""
    with pytest.raises(
        InvalidValueError, match=f"index.json: may have at most {64 * 2**20} bytes; check"
    ):
        ModelIndex.from_json(bytes(MAXIMUM_INDEX_BYTES + 1))


def test_bounds_are_those_of_the_documentation() -> None:
    """SECURITY.md states these numbers."""
    assert (MAXIMUM_RESPONSE_BYTES, MAXIMUM_HEAD_BYTES, MAXIMUM_ERROR_BYTES) == (
        2**30,
        2**20,
        2**20,
    )
    assert (MAXIMUM_SECONDS, MAXIMUM_JSON_BYTES, MAXIMUM_INDEX_BYTES) == (3600, 2**26, 2**26)


MEMORY = """
import resource
from hostile_answers import ENDLESS, ENDLESS_BODIES, HEADS
from loopback_server import run_raw_server
from test_hostile_answers import all_calls, answer, errors
with run_raw_server() as server:
    calls = all_calls(server.url, 2**23)
    errors(server, calls, lambda: [answer(b"{}")])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    names = ["a body", "a chunk size", "a chunk of size -1", "a chunk of 16 EiB"]
    bodies = [ENDLESS_BODIES[name] for name in names]
    for given in [*bodies, ENDLESS["an error"], ENDLESS["a status line"]]:
        errors(server, calls, given)
    errors(server, calls, lambda: [HEADS["a length of 100 TB"]])
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_memory_stays_below_the_bound() -> None:
    """Answers without an end need at most twice the memory of the maximum: read, and joined."""
    run = subprocess.run(
        [sys.executable, "-c", MEMORY],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(run.stdout) < 2 * 2**23 // 1024
