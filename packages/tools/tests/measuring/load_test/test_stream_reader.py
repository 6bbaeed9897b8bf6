"""Events of a response that arrives in parts, with SageMaker's frame and without it."""

from __future__ import annotations

import pytest

from constructs_triton_core.errors import InvocationError, ResponseDecodingError
from constructs_triton_tools.local.gateway.relay import model_stream_error, payload_part
from constructs_triton_tools.measuring.load_test.stream_reader import StreamReader

FRAMED = "application/vnd.amazon.eventstream"
EVENTS = "text/event-stream"
JSON = "application/json"
FIRST = b'data: {"text_output":"a","model_name":"m"}\n\n'
SECOND = b'data: {"n":[1,2],"model_name":"m"}\n\n'
BROKEN = b'data: {"error":"broke at 1"}\n\n'
GONE = model_stream_error("StreamBroken", "gone")


def read(content_type: str, parts: list[bytes]) -> list[dict[str, object]]:
    """The events of a response that arrives in these parts."""
    reader = StreamReader(content_type)
    events: list[dict[str, object]] = []
    for part in parts:
        events += [dict(event) for event in reader.feed(part)]
    events += [dict(event) for event in reader.finish()]
    return events


@pytest.mark.parametrize(
    ("content_type", "stream"),
    [
        (EVENTS, FIRST + SECOND),
        (FRAMED, payload_part(FIRST + SECOND[:9]) + payload_part(SECOND[9:])),
    ],
)
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_events_are_the_same_whatever_the_parts(
    content_type: str, stream: bytes, size: int
) -> None:
    """A frame, an event and a part may each be cut anywhere."""
    parts = [stream[at : at + size] for at in range(0, len(stream), size)]
    first, second = read(content_type, parts)
    assert first["text_output"] == "a"
    assert second["n"] == [1, 2]


def test_response_of_generate_is_one_event() -> None:
    """Inference type generate sends one JSON object, without a line end."""
    assert read(JSON, [b'{"text_output":"a",', b'"model_name":"m"}']) == [
        {"text_output": "a", "model_name": "m"}
    ]


FAILED = "event 1: the model failed, got broke at 1"
NO_EVENTS = "has no events; check that the model sends a response"


@pytest.mark.parametrize(
    ("content_type", "stream", "error", "message"),
    [
        (EVENTS, FIRST + BROKEN, InvocationError, FAILED),
        (FRAMED, payload_part(FIRST) + payload_part(BROKEN), InvocationError, FAILED),
        (FRAMED, payload_part(FIRST) + GONE, InvocationError, "ModelStreamError: .*gone"),
        (
            FRAMED,
            payload_part(FIRST) + payload_part(SECOND)[:-3],
            InvocationError,
            "ended within a message",
        ),
        (EVENTS, b"", InvocationError, NO_EVENTS),
        (FRAMED, b"", InvocationError, NO_EVENTS),
        (EVENTS, FIRST + SECOND[:-1], ResponseDecodingError, "the last event is incomplete"),
        (
            FRAMED,
            payload_part(FIRST)[:-1] + b"x",
            ResponseDecodingError,
            "stream: a message is malformed",
        ),
        (FRAMED, FIRST, ResponseDecodingError, "event stream: a message is malformed"),
    ],
)
def test_error_within_a_stream(
    content_type: str, stream: bytes, error: type[Exception], message: str
) -> None:
    """Errors of the model, of SageMaker and of the connection, no events,
    and bytes that are malformed.
    """
    with pytest.raises(error, match=message):
        read(content_type, [stream])
