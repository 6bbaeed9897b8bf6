"""Requests and responses of models that generate: Triton's generate extension,
streams of vLLM and LMI.
"""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any

import numpy as np

from constructs_triton_client.errors import fix_of
from constructs_triton_client.generated_events import GenerateEvent
from constructs_triton_client.observed_calls import ObservedCall, Observer, observing
from constructs_triton_client.server_sent_events import EventReader
from constructs_triton_client.transports.transport import Invocation, Transport
from constructs_triton_client.waking import when_awake
from constructs_triton_client.wire import EncodedRequest
from constructs_triton_core.errors import (
    InvocationError,
    RequestEncodingError,
    ResponseDecodingError,
)

__all__ = [
    "GenerationReader",
    "encode_generation",
    "objects_in",
    "read_generation",
    "stream_events",
]

_DONE = "[DONE]"  # ends the stream of OpenAI's form
_LOG = "see the endpoint's log"
_FAILED = "error"  # finish_reason of LMI after an error


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
            "pass a dict of strings, finite numbers, lists or arrays"
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
    """Yield the events of a response; errors as those of ``GenerationReader``."""
    reader = GenerationReader()
    for part in parts:
        yield from reader.feed(part)
    yield from reader.finish()


class GenerationReader:
    """Reads the events of one response from parts that are fed one after the other.

    An error has status 200 once the stream has begun. Triton's errors have no ``model_name``, while
    a response may have an output named ``error``.

    Raises:
        InvocationError: an event reports an error of the model, or the response is incomplete.
        ResponseDecodingError: the stream is malformed, as for ``EventReader``, or an event is no
            JSON object.
    """

    def __init__(self) -> None:
        self.count = 0
        self._reader = EventReader()
        self._is_open = (
            False  # of OpenAI's form only: a finish_reason, or the last line, must follow
        )

    def feed(self, part: bytes) -> Iterator[GenerateEvent]:
        """Yield the events that end in this part."""
        return self._read(self._reader.feed(part))

    def finish(self) -> Iterator[GenerateEvent]:
        """Yield the event that ends with the stream; there are no further parts."""
        yield from self._read(self._reader.finish())
        if self._is_open:
            raise InvocationError(
                "event stream: the response is incomplete; "
                "see the endpoint's log, and send the request again"
            )

    def _read(self, events: Iterable[str]) -> Iterator[GenerateEvent]:
        """Yield each event of a stream until its end."""
        for data in events:
            if data == _DONE:
                self._is_open = False
                continue
            event = _parse(self.count, data)
            if "model_name" not in event:
                self._check(event)
            self.count += 1
            yield GenerateEvent(event)

    def _check(self, event: dict[str, Any]) -> None:
        """Raise ``InvocationError`` for an event that is an error or a whole response.

        Otherwise remember whether the event is the last one of the text.
        """
        choices = objects_in(event, "choices")
        entries = [*choices, *objects_in(event, "details")]
        reasons = [entry.get("finish_reason") for entry in entries]
        error = event.get("error")
        if error is not None or _FAILED in reasons:
            said = _said(error)
            raise InvocationError(
                f"event {self.count}: the model failed, got {said:.500}; {fix_of(said) or _LOG}",
                model_message=said,
            )

        is_whole_chat = any("message" in choice for choice in choices)
        is_whole_text = "generated_text" in event and "token" not in event
        if is_whole_chat or is_whole_text:
            raise InvocationError(
                f'event {self.count}: is a whole response; add "stream": true to the request'
            )
        if choices:
            self._is_open = not any(reasons)


def objects_in(fields: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the JSON objects of a field: its items, or the field itself."""
    value = fields.get(name)
    return [
        choice
        for choice in (value if isinstance(value, list) else [value])
        if isinstance(choice, dict)
    ]


def _parse(index: int, data: str) -> dict[str, Any]:
    """Return the object that an event contains."""
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


def _said(error: Any) -> str:
    """Return what a model says of its failure, in an object with a message or as another value."""
    if isinstance(error, dict):
        return str(error.get("message", error))
    return str(error or _FAILED)
