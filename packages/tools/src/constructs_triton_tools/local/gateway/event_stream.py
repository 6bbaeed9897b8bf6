"""Frames of ``application/vnd.amazon.eventstream``, in which a response stream arrives.

Source: AWS documentation, event stream encoding; checked against botocore's decoder.
"""

from __future__ import annotations

import json
import struct
import zlib

_STRING_TYPE = 7


def payload_part(payload: bytes) -> bytes:
    """Encode one ``PayloadPart`` event."""
    headers = {
        ":message-type": "event",
        ":event-type": "PayloadPart",
        ":content-type": "application/octet-stream",
    }
    return _frame(headers, payload)


def model_stream_error(code: str, message: str) -> bytes:
    """Encode the ``ModelStreamError`` exception, which ends a stream.

    ``code`` is ``ModelInvocationTimeExceeded`` or ``StreamBroken`` (botocore's service model).
    """
    headers = {
        ":message-type": "exception",
        ":exception-type": "ModelStreamError",
        ":content-type": "application/json",
    }
    return _frame(headers, json.dumps({"Message": message, "ErrorCode": code}).encode())


def _frame(headers: dict[str, str], payload: bytes) -> bytes:
    encoded = b"".join(_header(name, value) for name, value in headers.items())
    # Two lengths and their checksum, headers, payload, and a checksum over everything before it.
    prelude = struct.pack(">II", 12 + len(encoded) + len(payload) + 4, len(encoded))
    message = prelude + struct.pack(">I", zlib.crc32(prelude)) + encoded + payload
    return message + struct.pack(">I", zlib.crc32(message))


def _header(name: str, value: str) -> bytes:
    text = value.encode()
    return struct.pack(">B", len(name)) + name.encode() + struct.pack(">BH", _STRING_TYPE, len(text)) + text
