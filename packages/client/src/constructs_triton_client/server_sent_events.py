"""Reads server-sent events from bytes that may be cut anywhere.

Source: WHATWG HTML, "Server-sent events", the part that Triton's generate_stream uses: an event is
one or more ``data:`` lines, ended by an empty line. A cut may fall within a line end or within a
UTF-8 character. With inference type ``generate`` Triton sends one JSON object without this frame,
which is one event here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from constructs_triton_core.errors import ResponseDecodingError

__all__ = ["EventReader"]

MAXIMUM_EVENT_BYTES = 64 * 1024 * 1024
# What may arrive between two events: comments, empty lines and parts. A part costs time, however
# small it is.
MAXIMUM_BYTES_BETWEEN_EVENTS = 2 * MAXIMUM_EVENT_BYTES
_BYTES_OF_A_PART = 256
_FIELDS = {b"", b"data", b"event", b"id", b"retry"}
_LINE_END = re.compile(rb"\r\n|\n|\r")


class EventReader:
    """Reads the data of events from parts that are fed one after the other.

    Raises:
        ResponseDecodingError: an event is cut off, is not UTF-8, is larger than
            ``MAXIMUM_EVENT_BYTES``, or does not come; or a line is no part of an event.
    """

    def __init__(self) -> None:
        self._lines = _Lines()
        self._data = bytearray()  # each line ends with a newline
        self._size = self._count = 0
        self._left = MAXIMUM_BYTES_BETWEEN_EVENTS

    def feed(self, part: bytes) -> Iterator[str]:
        """Yield the events that end in this part."""
        self._left -= len(part) + _BYTES_OF_A_PART
        if self._left < 0:
            raise ResponseDecodingError(
                "event stream: has too many comments and empty parts without an event; "
                "check that the endpoint runs a model that generates events"
            )
        for line in self._lines.feed(part):
            yield from self._read(line)

    def finish(self) -> Iterator[str]:
        """Yield the event that ends with the stream; there are no further parts."""
        for line in self._lines.rest():
            yield from self._read(line)
        if self._data:
            last = bytes(self._data[:-1]).rpartition(b"\n")[2]
            raise ResponseDecodingError(
                f"event stream: the last event is incomplete, got {last[:40]!r}; "
                "the stream was cut off, so send the request again"
            )

    def _read(self, line: bytes) -> Iterator[str]:
        """Take one line, and yield the event that it completes, if any."""
        if line.startswith(b"data:"):
            text = line[5:].removeprefix(b" ")
            self._size += len(text)
            self._count += 1
            _check_size(max(self._size, self._count))
            self._data += text
            self._data += b"\n"
        elif not line and self._data:
            yield _decode(self._data[:-1])
            self._data.clear()
            self._size = self._count = 0
            self._left = MAXIMUM_BYTES_BETWEEN_EVENTS
        elif line.startswith(b"{") and not self._data:
            yield _decode(line)
            self._left = MAXIMUM_BYTES_BETWEEN_EVENTS
        elif line.partition(b":")[0] not in _FIELDS:
            raise ResponseDecodingError(
                f"event stream: a line must begin with data:, got {line[:40]!r}; "
                "check that the endpoint runs with inference_type generate_stream"
            )


class _Lines:
    """Cuts parts into lines.

    Each byte is searched once, however small the parts of a long line are.
    """

    def __init__(self) -> None:
        self._line = bytearray()
        self._ended_with_return = False

    def feed(self, part: bytes) -> Iterator[bytes]:
        """Yield the lines that end in this part."""
        # The second half of "\r\n" may be in another part than the first.
        start = 1 if self._ended_with_return and part.startswith(b"\n") else 0
        self._ended_with_return = part.endswith(b"\r") or (self._ended_with_return and not part)
        for end in _LINE_END.finditer(part, start):
            if self._line:
                self._line += part[start : end.start()]
                yield bytes(self._line)
                self._line.clear()
            else:
                yield part[start : end.start()]
            start = end.end()
        self._line += part[start:]
        _check_size(len(self._line))

    def rest(self) -> Iterator[bytes]:
        """Yield the last line, if nothing ends it."""
        if self._line:
            yield bytes(self._line)


def _check_size(size: int) -> None:
    if size > MAXIMUM_EVENT_BYTES:
        raise ResponseDecodingError(
            f"event stream: an event may have at most {MAXIMUM_EVENT_BYTES} bytes, got {size} or "
            "more; check that the endpoint runs a model that generates events"
        )


def _decode(data: bytes | bytearray) -> str:
    """Return the text of an event."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ResponseDecodingError(
            f"event stream: an event must be valid UTF-8, got 0x{data[error.start]:02x} at its "
            f"byte {error.start}; the stream is corrupt, so send the request again"
        ) from None
