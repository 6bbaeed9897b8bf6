"""Server-sent events out of bytes that arrive cut anywhere.

Source: WHATWG HTML, "Server-sent events", as far as Triton's generate_stream uses it: events are ``data:``
lines ended by an empty line. A cut may fall within a line end or within a UTF-8 character.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from constructs_triton.errors import ResponseDecodingError

__all__ = ["iterate_events"]

MAXIMUM_EVENT_BYTES = 64 * 1024 * 1024
_LINE_END = re.compile(rb"\r\n|\n|\r")


def iterate_events(parts: Iterable[bytes]) -> Iterator[str]:
    """The data of each event, once it is complete.

    Raises ``ResponseDecodingError`` for an event that is cut off, is no UTF-8, or exceeds
    ``MAXIMUM_EVENT_BYTES``.
    """
    data: list[bytes] = []
    for line in _iterate_lines(parts):
        if line.startswith(b"data:"):
            data.append(line[5:].removeprefix(b" "))
        elif not line and data:
            yield _decode(b"\n".join(data))
            data = []
    if data:
        raise ResponseDecodingError(
            f"event stream: must end with a complete event, got {data[-1][:40]!r}; the stream was cut off"
        )


def _iterate_lines(parts: Iterable[bytes]) -> Iterator[bytes]:
    rest = b""
    for part in parts:
        rest += part
        start = 0
        for end in _LINE_END.finditer(rest):
            # A carriage return at the very end may be half of a line end whose other half is to come.
            if end.group() == b"\r" and end.end() == len(rest):
                break
            yield rest[start : end.start()]
            start = end.end()
        rest = rest[start:]
        if len(rest) > MAXIMUM_EVENT_BYTES:
            raise ResponseDecodingError(
                f"event stream: a line may have {MAXIMUM_EVENT_BYTES} bytes, got more; the stream is corrupt"
            )
    if rest:
        yield rest.removesuffix(b"\r")
        yield from [b""] if rest.endswith(b"\r") else []


def _decode(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ResponseDecodingError(
            f"event stream: an event must be valid UTF-8, got 0x{data[error.start]:02x} at its byte "
            f"{error.start}; the stream is corrupt"
        ) from None
