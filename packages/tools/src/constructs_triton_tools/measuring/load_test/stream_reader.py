"""Reads the events of a response from its parts,
with SageMaker's frame or as the container sends them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from constructs_triton_client.generated_events import GenerateEvent
from constructs_triton_client.generation import GenerationReader
from constructs_triton_client.transports.event_stream_body import UnreadBytes
from constructs_triton_core.errors import InvocationError, ResponseDecodingError

_EVENT_STREAM = "application/vnd.amazon.eventstream"


class StreamReader:
    """Reads the events of one response from parts that are fed, so that nothing waits in a thread.

    Args:
        content_type: Content type of the response. That of InvokeEndpointWithResponseStream has a
            frame.
    """

    def __init__(self, content_type: str) -> None:
        self._frame = _Frame() if content_type == _EVENT_STREAM else None
        self._reader = GenerationReader()

    def feed(self, part: bytes) -> Iterator[GenerateEvent]:
        """Yield the events that end in this part.

        Raises:
            InvocationError: the stream reports an error of the model or of SageMaker.
            ResponseDecodingError: the stream is malformed.
        """
        for payload in (part,) if self._frame is None else self._frame.feed(part):
            yield from self._reader.feed(payload)

    def finish(self) -> Iterator[GenerateEvent]:
        """Yield the event that ends with the stream; errors as ``feed``,
        and for a stream without events.
        """
        if self._frame is not None:
            self._frame.finish()
        yield from self._reader.finish()
        if not self._reader.count:
            raise InvocationError(
                "event stream: has no events; check that the model sends a response"
            )


class _Frame:
    """The messages of InvokeEndpointWithResponseStream, decoded by botocore."""

    def __init__(self) -> None:
        from botocore.eventstream import EventStreamBuffer

        self._buffer = EventStreamBuffer()
        self._unread = UnreadBytes()

    def feed(self, part: bytes) -> Iterator[bytes]:
        """Yield the payloads that end in this part."""
        from botocore.eventstream import ParserError

        self._unread.follow(part)
        self._buffer.add_data(part)
        try:
            for message in self._buffer:
                headers: Any = message.headers
                if headers.get(":message-type") != "event":
                    name = headers.get(":exception-type") or headers.get(":error-code")
                    said = message.payload.decode("utf-8", "replace")
                    raise InvocationError(
                        f"event stream: {name}: {said:.300}; see the endpoint's log"
                    )
                yield message.payload
        except ParserError as error:
            raise ResponseDecodingError(
                f"event stream: a message is malformed ({error}); "
                "check that the address is SageMaker's API"
            ) from None

    def finish(self) -> None:
        """Check that the stream did not end within a message."""
        if self._unread:
            raise InvocationError("event stream: ended within a message; send the request again")
