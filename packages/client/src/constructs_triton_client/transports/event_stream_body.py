"""The body of a response stream of SageMaker, as botocore reads it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from constructs_triton_client.transports.bounded_reader import BoundedReader
from constructs_triton_core.errors import InvocationError

__all__ = ["EventStreamBody", "UnreadBytes"]

_SIZE_BYTES = 4


class EventStreamBody:
    """Takes the place of urllib3's response, whose ``stream`` waits for 64 KiB unless the body is
    chunked.

    Args:
        response: urllib3's response.
        reader: Reads it.
    """

    def __init__(self, response: Any, reader: BoundedReader) -> None:
        self._response = response
        self._reader = reader

    def stream(self) -> Iterator[bytes]:
        """Yield the parts as they arrive.

        Raises:
            InvocationError: the body is too long, or ends within a message, which botocore ignores.
        """
        unread = UnreadBytes()
        for part in self._reader.iterate_parts(self._response):
            yield part
            unread.follow(part)
        if unread:
            raise InvocationError(
                f"{self._reader.where}: the stream ended within a message; send the request again"
            )

    def close(self) -> None:
        """Close the connection, unless the body was read to its end."""
        self._response.close()


class UnreadBytes:
    """How much of the current message has not arrived;
    a message begins with its size in four bytes.
    """

    def __init__(self) -> None:
        self._size = b""
        self._left = 0

    def __bool__(self) -> bool:
        return bool(self._size or self._left)

    def follow(self, part: bytes) -> None:
        """Follow the messages in the next part."""
        at = 0
        while at < len(part):
            if self._left:
                step = min(self._left, len(part) - at)
                self._left -= step
            else:
                step = _SIZE_BYTES - len(self._size)
                self._size += part[at : at + step]
                if len(self._size) == _SIZE_BYTES:
                    self._left = max(0, int.from_bytes(self._size, "big") - _SIZE_BYTES)
                    self._size = b""
            at += step
