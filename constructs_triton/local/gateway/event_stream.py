"""Frames of ``application/vnd.amazon.eventstream``, in which a response stream arrives.

Source: AWS documentation, event stream encoding; checked against botocore's decoder.
"""

from __future__ import annotations

import struct
import zlib

__all__ = ["payload_part"]

_STRING_TYPE = 7


def payload_part(payload: bytes) -> bytes:
    """One ``PayloadPart`` event."""
    headers = b"".join(
        _header(name, value)
        for name, value in (
            (":message-type", "event"),
            (":event-type", "PayloadPart"),
            (":content-type", "application/octet-stream"),
        )
    )
    # Two lengths and their checksum, headers, payload, and a checksum over everything before it.
    prelude = struct.pack(">II", 12 + len(headers) + len(payload) + 4, len(headers))
    message = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + payload
    return message + struct.pack(">I", zlib.crc32(message))


def _header(name: str, value: str) -> bytes:
    text = value.encode()
    return struct.pack(">B", len(name)) + name.encode() + struct.pack(">BH", _STRING_TYPE, len(text)) + text
