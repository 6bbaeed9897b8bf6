"""Walks a protobuf message in a file without reading what the caller skips.

Weights are length-delimited fields: the walk seeks past them, so the memory and time of reading a model do
not depend on the size of its weights. Source: https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

__all__ = ["Field", "MessageFile", "MessageReader", "TooLargeError", "WireError", "encode_varint", "signed"]

_BLOCK_BYTES = 64 * 1024
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LARGEST_VARINT_BYTES = 10
_LONG_VARINT = 0x80
_FIRST_TAG = 8
MAXIMUM_FIELDS = 20_000_000
"""Fields that are read of one file: a bound on the time that a hostile file takes."""
LARGEST_VALUE_BYTES = 16 << 20
"""Bytes of one field that are read: a bound on the memory that a hostile file takes."""


class WireError(ValueError):
    """The bytes are not a protobuf message."""


class TooLargeError(ValueError):
    """The message may be correct, but it is too large to be read."""


class Field(NamedTuple):
    """One field: its number, its integer, and the range of its bytes in the file.

    ``first`` is where its tag begins and ``after`` where the next field begins.
    """

    number: int
    value: int
    start: int
    end: int
    first: int
    after: int

    @property
    def is_bytes(self) -> bool:
        """Whether the field is length-delimited: a string, bytes, a packed list or a message."""
        return self.end >= 0


class MessageFile:
    """A file that holds one message; keeps one block of it in memory."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.size = os.fstat(file.fileno()).st_size
        self._block = b""
        self._block_start = 0
        self._fields_left = MAXIMUM_FIELDS

    def root(self) -> MessageReader:
        """Return the whole file as a message."""
        return MessageReader(self, 0, self.size)

    def read(self, start: int, length: int) -> bytes:
        """Return ``length`` bytes from ``start``.

        Raises:
            WireError: the file ends before.
            TooLargeError: more than 16 MiB are requested.
        """
        if length > LARGEST_VALUE_BYTES:
            raise TooLargeError(f"a field has {length} bytes")
        offset = start - self._block_start
        if offset < 0 or offset + length > len(self._block):
            self._block = os.pread(self._file.fileno(), max(length, _BLOCK_BYTES), start)
            self._block_start, offset = start, 0
        data = self._block[offset : offset + length]
        if len(data) < length:
            raise WireError("the file ends in the middle of a field")
        return data

    def varint(self, start: int, end: int) -> tuple[int, int]:
        """Return an unsigned integer and the position after it.

        Raises:
            WireError: the integer does not end before ``end`` or is longer than 10 bytes.
        """
        data = self.read(start, max(0, min(_LARGEST_VARINT_BYTES, end - start)))
        value = 0
        for index, byte in enumerate(data):
            value |= (byte & 0x7F) << (7 * index)
            if byte < 0x80:
                return value & 0xFFFF_FFFF_FFFF_FFFF, start + index + 1
        raise WireError("an integer does not end")

    def short_field(self, first: int, end: int) -> Field | None:
        """Return the field at ``first`` if its tag and its integer or length have one byte each.

        Most fields do; this is the short way to read them.
        """
        offset = first - self._block_start
        if offset < 0 or offset + 2 > len(self._block) or first + 2 > end:
            return None
        tag, value = self._block[offset], self._block[offset + 1]
        if not _FIRST_TAG <= tag < _LONG_VARINT or value >= _LONG_VARINT:
            return None
        number, wire_type = tag >> 3, tag & 7
        if wire_type == _VARINT:
            return Field(number, value, -1, -1, first, first + 2)
        after = first + 2 + value
        return (
            Field(number, 0, first + 2, after, first, after) if wire_type == _BYTES and after <= end else None
        )

    def count_field(self) -> None:
        """Count a field that was read.

        Raises:
            TooLargeError: the file has more than 20 million fields.
        """
        self._fields_left -= 1
        if self._fields_left < 0:
            raise TooLargeError(f"it has more than {MAXIMUM_FIELDS} fields")


class MessageReader:
    """A message in a range of a file; iterating gives its fields in order."""

    def __init__(self, file: MessageFile, start: int, end: int) -> None:
        self._file = file
        self.start = start
        self.end = end

    def __iter__(self) -> Iterator[Field]:
        file, position = self._file, self.start
        while position < self.end:
            file.count_field()
            field = file.short_field(position, self.end) or self._field(position)
            position = field.after
            yield field

    def _field(self, first: int) -> Field:
        file = self._file
        tag, position = file.varint(first, self.end)
        number, wire_type = tag >> 3, tag & 7
        if number == 0 or number >= 1 << 29:
            raise WireError(f"no field has the number {number}")
        if wire_type == _VARINT:
            value, position = file.varint(position, self.end)
            return Field(number, value, -1, -1, first, position)
        if wire_type == _BYTES:
            length, position = file.varint(position, self.end)
            return self._range(number, first, position, length)
        if wire_type in (_FIXED64, _FIXED32):
            length = 8 if wire_type == _FIXED64 else 4
            after = self._range(number, first, position, length).after
            value = int.from_bytes(file.read(position, length), "little")
            return Field(number, value, -1, -1, first, after)
        raise WireError(f"no field has the wire type {wire_type}")

    def _range(self, number: int, first: int, start: int, length: int) -> Field:
        end = start + length
        if end > self.end:
            raise WireError("a field is longer than what contains it")
        return Field(number, 0, start, end, first, end)

    def content(self) -> bytes:
        """Return all bytes of the message."""
        return self._file.read(self.start, self.end - self.start)

    def encoded(self, field: Field) -> bytes:
        """Return a field as it is in the file, with its tag."""
        return self._file.read(field.first, field.after - field.first)

    def message(self, field: Field) -> MessageReader:
        """Return a field as the message that it holds."""
        if not field.is_bytes:
            raise WireError(f"field {field.number} must be a message")
        return MessageReader(self._file, field.start, field.end)

    def text(self, field: Field) -> str:
        """Return a field as a string."""
        return self.raw(field).decode("utf-8", "replace")

    def raw(self, field: Field) -> bytes:
        """Return the bytes of a field."""
        if not field.is_bytes:
            raise WireError(f"field {field.number} must have bytes")
        return self._file.read(field.start, field.end - field.start)


def signed(value: int) -> int:
    """Return a varint as the signed 64-bit integer that it encodes."""
    return value - (1 << 64) if value >= 1 << 63 else value


def encode_varint(value: int) -> bytes:
    """Return a non-negative integer as a varint."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*encoded, value))
