"""Triton's generate extension: one flat JSON object as request, events of flat JSON as response."""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Iterable, Mapping
from itertools import chain
from typing import Any

import numpy as np

from constructs_triton_client.generated_events import GenerateEvent
from constructs_triton_client.invocation_errors import NOT_STREAMING, NOT_STREAMING_HINT
from constructs_triton_client.observed_calls import ObservedCall, Observer, observing
from constructs_triton_client.server_sent_events import iterate_events
from constructs_triton_client.transports.transport import Invocation, Transport
from constructs_triton_client.waking import when_awake
from constructs_triton_client.wire import EncodedRequest
from constructs_triton_core.errors import InvocationError, RequestEncodingError, ResponseDecodingError

__all__ = ["encode_generation", "read_event", "read_generation", "stream_events"]

# What Triton answers, with status 200, if inference type generate meets a model with 0 or several responses.
_SEVERAL = "generate expects model to produce exactly 1 response"


def encode_generation(fields: Mapping[str, Any]) -> EncodedRequest:
    """Encode a generate request; arrays become lists, and ``bytes`` are decoded as UTF-8.

    Raises:
        RequestEncodingError: a field has no JSON form.
    """
    try:
        text = json.dumps(dict(fields), default=_to_json, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise RequestEncodingError(
            f"generate request: a field cannot be written as JSON, got {error}; "
            "pass strings, finite numbers, lists or arrays"
        ) from None
    return EncodedRequest(text.encode("ascii"), None)


def _to_json(value: object) -> object:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, bytes):
        return value.decode("utf-8")
    raise TypeError(f"{type(value).__name__} {value!r:.40}")


def stream_events(
    transport: Transport,
    invocation: Invocation,
    wake_timeout: float,
    observe: Observer | None,
    call: ObservedCall,
) -> Generator[GenerateEvent]:
    """Yield the events of a request; only their beginning waits for a first copy of a component."""

    def begin() -> Generator[GenerateEvent]:
        parts = iter(transport.stream(invocation))
        return read_generation(chain([next(parts, b"")], parts))

    with observing(observe, call) as started:
        for event in when_awake(begin, wake_timeout, call):
            call.first_event_seconds = call.first_event_seconds or time.perf_counter() - started
            yield event


def read_generation(parts: Iterable[bytes]) -> Generator[GenerateEvent]:
    """Yield the events of a response; errors as those of ``read_event`` and ``iterate_events``."""
    for index, data in enumerate(iterate_events(parts)):
        yield read_event(index, data)


def read_event(index: int, data: str) -> GenerateEvent:
    """Read an event of a response; ``index`` is its number, for messages.

    An error has status 200 once the stream has begun. Triton's errors have no ``model_name``, while a
    response may have an output named ``error``.

    Raises:
        InvocationError: the event reports an error of the model.
        ResponseDecodingError: the event is not a JSON object.
    """
    event = _parse(index, data)
    if "error" in event and "model_name" not in event:
        said = str(event["error"])
        raise InvocationError(
            f"event {index}: the model failed, got {said:.500}; {_hint(said)}", model_message=said
        )
    return GenerateEvent(event)


def _parse(index: int, data: str) -> dict[str, Any]:
    try:
        event = json.loads(data)
    except (ValueError, RecursionError):
        event = None
    if not isinstance(event, dict):
        raise ResponseDecodingError(
            f"event {index}: must be a JSON object, got {data[:80]!r}; "
            "set inference_type to generate_stream on the endpoint"
        )
    return event


def _hint(said: str) -> str:
    if NOT_STREAMING in said:
        return NOT_STREAMING_HINT
    if _SEVERAL in said:
        return "set inference_type to generate_stream on the endpoint"
    return "see the endpoint's log"
