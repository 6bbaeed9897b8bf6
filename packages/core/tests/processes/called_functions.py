"""What the bounded process of the tests calls."""

from __future__ import annotations

import os
import time
from collections.abc import Callable


def reverse(content: bytes) -> bytes:
    """Return the bytes in reverse order, and print, which must not damage the answer."""
    os.write(1, b"printed by the function")
    return content[::-1]


def act(content: bytes) -> bytes:
    """Do what the request names, or answer with the process's id."""
    match content:
        case b"loop":
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline:
                pass
        case b"allocate":
            return bytes(len([bytearray(1 << 20) for _ in range(1 << 12)]))
        case b"crash":
            os.abort()
        case b"raise":
            raise ValueError
        case b"sleep":
            time.sleep(60)
        case b"environment":
            return os.environ.get("AWS_SECRET_ACCESS_KEY", "").encode()
    return str(os.getpid()).encode()


def count(content: bytes, send: Callable[[bytes], None]) -> bytes:
    """Send as many numbers as the request says before the answer."""
    for number in range(int(content)):
        send(str(number).encode())
    return b"end"
