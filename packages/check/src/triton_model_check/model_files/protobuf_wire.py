"""Walks a protobuf message in a file without reading what the caller skips.

Weights are length-delimited fields: the walk seeks past them, so the memory and time of reading a
model do not depend on the size of its weights. Source:
https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from constructs_triton_core.untrusted.budget import OverBudgetError
from triton_model_check.untrusted.budget import Budget

__all__ = ["Field", "MessageFile", "MessageReader", "WireError", "signed"]

_BLOCK_BYTES = 64 * 1024
_BLOCK_AFTER_JUMP_BYTES = 4 * 1024  # more weights may follow, which are not read
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_LARGEST_VARINT_BYTES = 10
_LONG_VARINT = 0x80
_FIRST_TAG = 8
_STEPS, _BYTES_PER_STEP, _MOST_STEPS = 250_000, 50, 500_000
"""The fields and values that are read of one file: 250,000, and one more for each 50 bytes of the
file, up to 500,000. They take two seconds where each begins a tensor."""
_LONG_FIELD_STEPS = 2  # more than for a field that is read the short way
_TEXT_BYTES_PER_STEP = 64
_LARGEST_TEXT_BYTES = 64 << 10
_LARGEST_VALUE_BYTES = 16 << 20


class WireError(ValueError):
    """The bytes are not a protobuf message."""


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


_new = tuple.__new__  # what Field() calls


class MessageFile:
    """A file that holds one message; keeps one block of it in memory."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.size = os.fstat(file.fileno()).st_size
        self.block = b""
        self.block_start = 0
        steps = min(_STEPS + self.size // _BYTES_PER_STEP, _MOST_STEPS)
        self.budget = Budget(steps, "fields and values")

    def root(self) -> MessageReader:
        """Return the whole file as a message."""
        return MessageReader(self, 0, self.size)

    def read(self, start: int, length: int) -> bytes:
        """Return ``length`` bytes from ``start``.

        Raises:
            WireError: the file ends before.
            OverBudgetError: more than 16 MiB are requested.
        """
        if length > _LARGEST_VALUE_BYTES:
            raise OverBudgetError(f"a field has {length} bytes")
        offset = start - self.block_start
        if offset < 0 or offset + length > len(self.block):
            block = _BLOCK_BYTES if 0 <= offset <= len(self.block) else _BLOCK_AFTER_JUMP_BYTES
            self.block = os.pread(self._file.fileno(), max(length, block), start)
            self.block_start, offset = start, 0
        data = self.block[offset : offset + length]
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


class MessageReader:
    """A message in a range of a file; iterating gives its fields in order."""

    __slots__ = ("_file", "end", "start")

    def __init__(self, file: MessageFile, start: int, end: int) -> None:
        self._file = file
        self.start = start
        self.end = end

    def __iter__(self) -> Iterator[Field]:
        file, position, end = self._file, self.start, self.end
        spend = file.budget.spend
        while position < end:
            spend()
            field, offset = None, position - file.block_start
            if 0 <= offset < len(file.block) - 2:
                field = _short_field(file.block[offset : offset + 3], position, end)
            if field is None:
                field = self._field(position)
            position = field.after
            yield field

    def _field(self, first: int) -> Field:
        """Read the field that starts at an offset."""
        file = self._file
        file.budget.spend(_LONG_FIELD_STEPS)
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
        """Return a field as a string.

        Raises:
            OverBudgetError: it has more than 64 KiB.
        """
        length = field.end - field.start
        if length > _LARGEST_TEXT_BYTES:
            raise OverBudgetError(f"a name has {length} bytes")
        if length > _TEXT_BYTES_PER_STEP:
            self.keep(length // _TEXT_BYTES_PER_STEP)
        return self.raw(field).decode("utf-8", "replace")

    def raw(self, field: Field) -> bytes:
        """Return the bytes of a field."""
        if field.end < 0:
            raise WireError(f"field {field.number} must have bytes")
        block = self._file.block
        offset = field.start - self._file.block_start
        if 0 <= offset <= len(block) - field.end + field.start:
            return block[offset : offset + field.end - field.start]
        return self._file.read(field.start, field.end - field.start)

    def keep(self, values: int) -> None:
        """Count values that the caller keeps in memory.

        Raises:
            OverBudgetError: the file has too many.
        """
        self._file.budget.spend(values)


def _short_field(head: bytes, first: int, end: int) -> Field | None:
    """Return the field at ``first`` if its tag has one byte, and its integer or length one or two.

    Most fields do; this is the short way to read them.
    """
    tag, value, more = head
    start = first + 2
    if value >= _LONG_VARINT:
        if more >= _LONG_VARINT:
            return None
        value, start = value & 0x7F | more << 7, first + 3
    if tag & 7 == _BYTES and _FIRST_TAG <= tag < _LONG_VARINT:
        after = start + value
        return _new(Field, (tag >> 3, 0, start, after, first, after)) if after <= end else None
    if tag & 7 == _VARINT and _FIRST_TAG <= tag < _LONG_VARINT and start <= end:
        return _new(Field, (tag >> 3, value, -1, -1, first, start))
    return None


def signed(value: int) -> int:
    """Return a varint as the signed 64-bit integer that it encodes."""
    return value - (1 << 64) if value >= 1 << 63 else value
