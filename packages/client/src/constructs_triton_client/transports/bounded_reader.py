"""Reads a response up to a number of bytes, whole or as it arrives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from constructs_triton_core.errors import InvocationError

MAXIMUM_RESPONSE_BYTES = 1024**3
# Larger reads take memory from the operating system each time, which is slower.
_READ_BYTES = 64 * 1024
# An announced body is read in one piece if possible; the memory for it is reserved before the bytes
# arrive.
_LARGEST_READ_BYTES = 64 * 1024**2


@dataclass(frozen=True, slots=True)
class BoundedReader:
    """Reads the bodies of one endpoint's responses; error messages begin with ``where``."""

    where: str
    maximum_bytes: int = MAXIMUM_RESPONSE_BYTES

    def check(self, size: int) -> None:
        """Check the size of a body, announced or read;
        raises ``InvocationError`` if the body is too long.
        """
        if size > self.maximum_bytes:
            raise self.too_long(f"got {size}")

    def too_long(self, got: str) -> InvocationError:
        """Return the error of a body that is too long."""
        return InvocationError(
            f"{self.where}: a response may have at most {self.maximum_bytes} bytes, {got}; "
            "raise maximum_response_bytes of the transport"
        )

    def read_whole(self, read: Callable[[int], bytes], length: int | None) -> bytes:
        """Read a body to its end, in memory of about its size however small its chunks are.

        ``read`` returns up to a number of bytes, and none at the end. A body whose announced
        ``length`` is too long is not read.
        """
        self.check(length or 0)
        amount = min(length or _READ_BYTES, _LARGEST_READ_BYTES)
        total = 0
        pieces = []
        while piece := read(amount):
            total += len(piece)
            self.check(total)
            pieces.append(piece)
            if total == length:
                break
        return b"".join(pieces)

    def iterate_parts(self, response: Any) -> Iterator[bytes]:
        """Yield the parts of urllib3's ``response`` as soon as they arrive,
        also if it is not chunked.
        """
        # Chunks arrive complete. urllib3 before 2.2 has no read1.
        is_complete = getattr(response, "chunked", False) or not hasattr(response, "read1")
        read = (
            response.stream if is_complete else lambda size: iter(lambda: response.read1(size), b"")
        )
        total = 0
        for part in read(_READ_BYTES):
            total += len(part)
            self.check(total)
            yield part
        if left := getattr(response, "length_remaining", None):
            raise InvocationError(
                f"{self.where}: the stream ended {left} bytes early; send the request again"
            )
