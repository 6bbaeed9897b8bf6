"""Writes the integers of protobuf's wire format, without the reader of model files."""

from __future__ import annotations


def encode_varint(value: int) -> bytes:
    """Return a non-negative integer as a varint."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*encoded, value))
