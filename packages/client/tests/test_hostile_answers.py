"""Answers of broken and hostile servers end in errors of the client,
by every method and transport.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hostile_answers import (
    BODIES,
    ENDLESS,
    ENDLESS_BODIES,
    ERRORS,
    FRAMES,
    HEADS,
    Answer,
    answer,
    event_stream,
    frame,
)
from loopback_server import RawServer, run_raw_server, sagemaker_transport

from constructs_triton_client import HttpTransport, PendingInference, TritonClient
from constructs_triton_client.transports import bounded_connections
from constructs_triton_core.errors import ConstructsTritonError, InvocationError

INPUTS = {"X": np.arange(3, dtype="f4")}
INFER = ("infer over HTTP", "infer over SageMaker")
STREAM = ("infer_stream over HTTP", "infer_stream over SageMaker")
# botocore ignores events of a kind that it does not know, as the encoding demands.
IGNORED = {
    "an event without a type",
    "an initial response",
    "an unknown event",
    "an unknown kind of message",
    "no headers",
}
EVENT = b'data: {"a":1}\n\n'

Calls = dict[str, Callable[[], object]]


@pytest.fixture(scope="module")
def server() -> Iterator[RawServer]:
    """A server whose answers are any bytes."""
    with run_raw_server() as server:
        yield server


def all_calls(url: str, maximum: int) -> Calls:
    """Return every method that reads an answer, over every transport; S3 is the same server."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL_S3", url)
        remote = sagemaker_transport(url, maximum_response_bytes=maximum)
        remote.client("s3")
    plain = HttpTransport(url, read_timeout_seconds=10, maximum_response_bytes=maximum)
    http, boto = TritonClient(plain), TritonClient(remote)
    pending = PendingInference(
        remote, output_location="s3://b/1.out", failure_location="s3://b/2.out"
    )
    return {
        "infer over HTTP": lambda: http.infer(INPUTS),
        "infer_stream over HTTP": lambda: list(http.infer_stream({"a": 1})),
        "infer over SageMaker": lambda: boto.infer(INPUTS),
        "infer_stream over SageMaker": lambda: list(boto.infer_stream({"a": 1})),
        "infer_async": lambda: boto.infer_async(INPUTS, input_location="s3://b/in/"),
        "poll of infer_async": pending.poll,
        "read_index": lambda: remote.read_index("s3://b/index.json"),
    }


@pytest.fixture(scope="module")
def calls(server: RawServer) -> Calls:
    """Calls that read up to 1 MiB."""
    return all_calls(server.url, 2**20)


@pytest.fixture(scope="module")
def short_calls(server: RawServer) -> Calls:
    """Calls that read up to 64 KiB, so that the tests of endless answers are fast."""
    return all_calls(server.url, 2**16)


@pytest.fixture(scope="module")
def streaming(server: RawServer) -> TritonClient:
    """A client over SageMaker."""
    return TritonClient(sagemaker_transport(server.url))


@pytest.fixture
def low_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lower the bounds of headers and errors, likewise."""
    monkeypatch.setattr(bounded_connections, "MAXIMUM_HEAD_BYTES", 2**16)
    monkeypatch.setattr(bounded_connections, "MAXIMUM_ERROR_BYTES", 2**16)


def errors(
    server: RawServer, calls: Calls, given: Answer
) -> dict[str, ConstructsTritonError | None]:
    """Return the error of each call; any other exception fails the test."""
    found: dict[str, ConstructsTritonError | None] = {}
    server.answer = given
    for name, call in calls.items():
        found[name] = _error(call)
        server.wait()
        assert len(str(found[name]).encode()) < 10_000
    return found


def _error(call: Callable[[], object]) -> ConstructsTritonError | None:
    try:
        call()
    except ConstructsTritonError as error:
        # Without its cause, which refers to the connection, so that this is closed now.
        error.__cause__ = error.__context__ = None
        return error.with_traceback(None)
    return None


@pytest.mark.parametrize("name", HEADS)
def test_status_lines_headers_and_lengths(server: RawServer, calls: Calls, name: str) -> None:
    """A response that is not HTTP, or with lengths that are wrong,
    raises an error of the client.
    """
    found = errors(server, calls, lambda: [HEADS[name]])
    assert all(found[name] for name in INFER)


@pytest.mark.parametrize("name", BODIES)
def test_bodies(
    server: RawServer, calls: Calls, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A body that is not a response or an event raises an error,
    also as the payload of a message.
    """
    monkeypatch.setattr("constructs_triton_client.server_sent_events.MAXIMUM_EVENT_BYTES", 2**16)
    body, content_type = BODIES[name]
    found = errors(server, calls, lambda: [answer(body, content_type)])
    assert all(found[name] for name in (*INFER, "poll of infer_async"))
    assert type(found["infer over HTTP"]) is type(found["infer over SageMaker"])
    framed = event_stream(
        b"".join(frame(body[at : at + 2**20]) for at in range(0, len(body), 2**20))
    )
    over_plain = found["infer_stream over HTTP"]
    assert type(errors(server, calls, lambda: [framed])["infer_stream over SageMaker"]) is type(
        over_plain
    )


@pytest.mark.parametrize("name", FRAMES)
def test_messages_of_an_event_stream(
    server: RawServer, calls: Calls, streaming: TritonClient, name: str
) -> None:
    """A broken message or an exception within a stream raises an error,
    after the events before it.
    """
    frames = frame(EVENT) + FRAMES[name] + frame(EVENT)
    errors(server, calls, lambda: [event_stream(frames)])
    server.answer = lambda: [event_stream(frames)]
    events = streaming.infer_stream({"a": 1})
    assert next(events) == {"a": 1}
    if name in IGNORED:
        assert list(events) == [{"a": 1}]
    else:
        with pytest.raises(ConstructsTritonError):
            list(events)
    server.wait()


@pytest.mark.parametrize("name", ERRORS)
def test_bodies_of_errors(server: RawServer, calls: Calls, name: str) -> None:
    """An error whose body is broken is still an error of the client,
    over plain HTTP with its status.
    """
    body, status = ERRORS[name]
    found = errors(server, calls, lambda: [answer(body, "application/json", status)])
    assert all(found[name] for name in found if name != "poll of infer_async")
    for method in ("infer over HTTP", "infer_stream over HTTP"):
        error = found[method]
        assert isinstance(error, InvocationError)
        assert error.status == int(status[:3])


@pytest.mark.usefixtures("low_bounds")
@pytest.mark.parametrize("name", ENDLESS)
def test_heads_and_errors_without_an_end(server: RawServer, short_calls: Calls, name: str) -> None:
    """A flood of interim responses, headers or error text stops at its bound."""
    assert all(errors(server, short_calls, ENDLESS[name]).values())


@pytest.mark.usefixtures("low_bounds")
@pytest.mark.parametrize("name", ENDLESS_BODIES)
def test_bodies_without_an_end(server: RawServer, short_calls: Calls, name: str) -> None:
    """A body that never ends stops at the maximum size,
    also within a chunk size and after the last chunk.
    """
    found = errors(server, short_calls, ENDLESS_BODIES[name])
    assert all(found[name] for name in (*INFER, *STREAM))
