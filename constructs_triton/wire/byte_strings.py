"""BYTES tensors: every element is a 4-byte little-endian length and then that many bytes.

Python cannot avoid touching each element, so what is left is to touch it once: lengths are packed for the
whole tensor at a time, and equal lengths, the case of hashes and fixed-width codes, are cut in one step.
Source: KServe v2 binary tensor data extension.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from constructs_triton.errors import RequestEncodingError, ResponseDecodingError

__all__ = ["decode_byte_strings", "encode_byte_strings", "list_byte_strings"]

PREFIX_SIZE = 4
_LONGEST = 2**32 - 1
_LENGTH = struct.Struct("<I")
_read_length = _LENGTH.unpack_from


def encode_byte_strings(path: str, array: NDArray[Any]) -> bytes:
    """The bytes of a BYTES tensor of ``bytes`` or ``str`` elements, in row-major order.

    ``path`` names the tensor in a ``RequestEncodingError``, which an element of another type raises.
    """
    values = list_byte_strings(path, array)
    lengths = list(map(len, values))
    if lengths and max(lengths) > _LONGEST:
        raise RequestEncodingError(
            f"{path}: an element may have at most {_LONGEST} bytes, got {max(lengths)}; split it"
        )
    # `V4` elements come back as bytes objects, which is the cheapest way to n prefixes.
    prefixes = np.array(lengths, dtype="<u4").view("V4").tolist()
    parts = [b""] * (2 * len(values))
    parts[::2] = prefixes
    parts[1::2] = values
    return b"".join(parts)


def list_byte_strings(path: str, array: NDArray[Any]) -> list[bytes]:
    """The elements of a BYTES tensor as ``bytes``, ``str`` in UTF-8, in row-major order."""
    values: list[Any] = array.ravel(order="C").tolist()
    kinds = set(map(type, values))
    if kinds <= {bytes}:
        return values
    try:
        if kinds == {str}:
            return list(map(str.encode, values))
        return [_as_bytes(path, index, value) for index, value in enumerate(values)]
    except UnicodeEncodeError as error:
        raise RequestEncodingError(
            f"{path}: a string must be valid Unicode, got {error.object[:40]!r}; pass it as bytes"
        ) from None


def _as_bytes(path: str, index: int, value: object) -> bytes:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if isinstance(value, str):
        return value.encode()
    raise RequestEncodingError(
        f"{path} element {index}: a BYTES element must be bytes or str, got {type(value).__name__}; "
        "encode it, or pass an array of numbers"
    )


def decode_byte_strings(path: str, region: memoryview, count: int, first_byte: int) -> NDArray[np.object_]:
    """A flat array of ``count`` ``bytes`` objects.

    ``region`` holds exactly this tensor's bytes, and ``first_byte`` is where it starts in the body: both
    are for the ``ResponseDecodingError`` that a length beyond the end, or a byte too many, raises.
    """
    if count * PREFIX_SIZE > len(region):
        raise _misfit(path, first_byte, f"{count} elements need at least {count * PREFIX_SIZE} bytes", region)
    data = bytes(region)
    values = _split_equal(data, count) or _split(data, count)
    if values is None:
        raise _locate_fault(path, data, count, first_byte)
    array = np.empty(count, dtype=np.object_)
    array[:] = values
    return array


def _split_equal(data: bytes, count: int) -> Sequence[bytes] | None:
    """The elements if all have the length of the first; ``None`` says only that this way does not fit."""
    stride, rest = divmod(len(data), count) if count else (0, 0)
    if rest or stride <= PREFIX_SIZE or _read_length(data)[0] != stride - PREFIX_SIZE:
        return None
    row = np.dtype([("length", "<u4"), ("value", f"V{stride - PREFIX_SIZE}")])
    rows = np.frombuffer(data, dtype=row)
    if not (rows["length"] == stride - PREFIX_SIZE).all():
        return None
    values: list[bytes] = rows["value"].tolist()
    return values


def _split(data: bytes, count: int) -> list[bytes] | None:
    read, unpack = io.BytesIO(data).read, _LENGTH.unpack
    try:
        values = [read(*unpack(read(PREFIX_SIZE))) for _ in range(count)]
    except struct.error:
        return None
    return values if _fill(values, data) else None


def _fill(values: list[bytes], data: bytes) -> bool:
    """Whether the values are all of the data, and the last, which alone can fall short, is whole."""
    if sum(map(len, values)) + PREFIX_SIZE * len(values) != len(data):
        return False
    return not values or _read_length(data, len(data) - len(values[-1]) - PREFIX_SIZE)[0] == len(values[-1])


def _locate_fault(path: str, data: bytes, count: int, first_byte: int) -> ResponseDecodingError:
    """Walk again, slowly, to say which element and byte are wrong."""
    offset = 0
    for index in range(count):
        if offset + PREFIX_SIZE > len(data):
            return _misfit(
                path, first_byte + offset, f"element {index} of {count} has no length", data[offset:]
            )
        (length,) = _read_length(data, offset)
        offset += PREFIX_SIZE
        if offset + length > len(data):
            return _misfit(
                path, first_byte + offset, f"element {index} promises {length} bytes", data[offset:]
            )
        offset += length
    return _misfit(path, first_byte + offset, f"{count} elements end before the tensor does", data[offset:])


def _misfit(path: str, byte: int, what: str, rest: bytes | memoryview) -> ResponseDecodingError:
    return ResponseDecodingError(
        f"{path} at byte {byte}: {what}, got {len(rest)} bytes; the response was cut off or is corrupt"
    )
