"""Reads server-sent events from bytes that may be cut anywhere.

Source: WHATWG HTML, "Server-sent events", the part that Triton's generate_stream uses: an event is one or
more ``data:`` lines, ended by an empty line. A cut may fall within a line end or within a UTF-8 character.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from constructs_triton.errors import ResponseDecodingError

__all__ = ["iterate_events"]

MAXIMUM_EVENT_BYTES = 64 * 1024 * 1024
_LINE_END = re.compile(rb"\r\n|\n|\r")


def iterate_events(parts: Iterable[bytes]) -> Iterator[str]:
    """Yield the data of each event as soon as the event is complete.

    Raises:
        ResponseDecodingError: an event is cut off, is not UTF-8, or is larger than
            ``MAXIMUM_EVENT_BYTES``.
    """
    data: list[bytes] = []
    for line in _iterate_lines(parts):
        if line.startswith(b"data:"):
            data.append(line[5:].removeprefix(b" "))
            _check_size(sum(map(len, data)))
        elif not line and data:
            yield _decode(b"\n".join(data))
            data = []
    if data:
        raise ResponseDecodingError(
            f"event stream: the last event is incomplete, got {data[-1][:40]!r}; "
            "the stream was cut off, so send the request again"
        )


def _iterate_lines(parts: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for part in parts:
        rest += part
        start = 0
        for end in _LINE_END.finditer(rest):
            # A carriage return at the very end may be the first half of "\r\n".
            if end.group() == b"\r" and end.end() == len(rest):
                break
            yield rest[start : end.start()]
            start = end.end()
        rest = rest[start:]
        _check_size(len(rest))
    if rest:
        yield rest.removesuffix(b"\r")


def _check_size(size: int) -> None:
    if size > MAXIMUM_EVENT_BYTES:
        raise ResponseDecodingError(
            f"event stream: an event may have at most {MAXIMUM_EVENT_BYTES} bytes, got {size} or more; "
            "check that the endpoint runs a model that generates events"
        )


def _decode(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ResponseDecodingError(
            f"event stream: an event must be valid UTF-8, got 0x{data[error.start]:02x} at its byte "
            f"{error.start}; the stream is corrupt, so send the request again"
        ) from None
