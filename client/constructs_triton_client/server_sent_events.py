"""Reads server-sent events from bytes that may be cut anywhere.

Source: WHATWG HTML, "Server-sent events", the part that Triton's generate_stream uses: an event is one or
more ``data:`` lines, ended by an empty line. A cut may fall within a line end or within a UTF-8 character.
With inference type ``generate`` Triton sends one JSON object without this frame, which is one event here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from constructs_triton_client.errors import ResponseDecodingError

__all__ = ["iterate_events"]

MAXIMUM_EVENT_BYTES = 64 * 1024 * 1024
# What may arrive between two events: comments, empty lines and parts. A part costs time, however small it is.
MAXIMUM_BYTES_BETWEEN_EVENTS = 2 * MAXIMUM_EVENT_BYTES
_BYTES_OF_A_PART = 256
_FIELDS = {b"", b"data", b"event", b"id", b"retry"}
_LINE_END = re.compile(rb"\r\n|\n|\r")


def iterate_events(parts: Iterable[bytes]) -> Iterator[str]:
    """Yield the data of each event as soon as the event is complete.

    Raises:
        ResponseDecodingError: an event is cut off, is not UTF-8, is larger than ``MAXIMUM_EVENT_BYTES``, or
            does not come; or a line is no part of an event.
    """
    wait = _Wait()
    data = bytearray()  # each line ends with a newline
    size = lines = 0
    for line in _iterate_lines(wait.count(parts)):
        if line.startswith(b"data:"):
            text = line[5:].removeprefix(b" ")
            size, lines = size + len(text), lines + 1
            _check_size(max(size, lines))
            data += text
            data += b"\n"
        elif not line and data:
            yield _decode(data[:-1])
            data.clear()
            size = lines = 0
            wait.begin()
        elif line.startswith(b"{") and not data:
            yield _decode(line)
            wait.begin()
        elif line.partition(b":")[0] not in _FIELDS:
            raise ResponseDecodingError(
                f"event stream: a line must begin with data:, got {line[:40]!r}; "
                "check that the endpoint runs with inference_type generate_stream"
            )
    if data:
        last = bytes(data[:-1]).rpartition(b"\n")[2]
        raise ResponseDecodingError(
            f"event stream: the last event is incomplete, got {last[:40]!r}; "
            "the stream was cut off, so send the request again"
        )


class _Wait:
    """The wait for the next event, measured by what arrives."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Begin to wait for another event."""
        self._left = MAXIMUM_BYTES_BETWEEN_EVENTS

    def count(self, parts: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the parts."""
        for part in parts:
            self._left -= len(part) + _BYTES_OF_A_PART
            if self._left < 0:
                raise ResponseDecodingError(
                    "event stream: has too many comments and empty parts without an event; "
                    "check that the endpoint runs a model that generates events"
                )
            yield part


def _iterate_lines(parts: Iterable[bytes]) -> Iterator[bytes]:
    # Each byte is searched once, however small the parts of a long line are.
    line = bytearray()
    ended_with_return = False
    for part in parts:
        start = 1 if ended_with_return and part.startswith(b"\n") else 0  # the second half of "\r\n"
        for end in _LINE_END.finditer(part, start):
            if line:
                line += part[start : end.start()]
                yield bytes(line)
                line.clear()
            else:
                yield part[start : end.start()]
            start = end.end()
        ended_with_return = part.endswith(b"\r") or (ended_with_return and not part)
        line += part[start:]
        _check_size(len(line))
    if line:
        yield bytes(line)


def _check_size(size: int) -> None:
    if size > MAXIMUM_EVENT_BYTES:
        raise ResponseDecodingError(
            f"event stream: an event may have at most {MAXIMUM_EVENT_BYTES} bytes, got {size} or more; "
            "check that the endpoint runs a model that generates events"
        )


def _decode(data: bytes | bytearray) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ResponseDecodingError(
            f"event stream: an event must be valid UTF-8, got 0x{data[error.start]:02x} at its byte "
            f"{error.start}; the stream is corrupt, so send the request again"
        ) from None
