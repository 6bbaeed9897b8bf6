"""BYTES tensors: each element is a 4-byte little-endian length, followed by that many bytes.

For speed, the lengths of a whole tensor are written together, and elements of equal length, such as
hashes and fixed-width codes, are split in one step. Source: KServe v2 binary tensor data extension.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from constructs_triton_client.wire.json_text import build_decoding_error
from constructs_triton_core.errors import RequestEncodingError, ResponseDecodingError

PREFIX_SIZE = 4
_MAXIMUM_LENGTH = 2**32 - 1
_LENGTH = struct.Struct("<I")
_read_length = _LENGTH.unpack_from


def encode_byte_strings(path: str, array: NDArray[Any]) -> bytes:
    """Encode a BYTES tensor of ``bytes`` or ``str`` elements, in row-major order.

    ``path`` is the tensor's name in error messages.
    """
    values = list_byte_strings(path, array)
    lengths = list(map(len, values))
    if lengths and max(lengths) > _MAXIMUM_LENGTH:
        raise RequestEncodingError(
            f"{path}: an element may have at most {_MAXIMUM_LENGTH} bytes, "
            f"got {max(lengths)}; split it"
        )
    # Elements of dtype V4 become bytes objects: the fastest way to create all the prefixes.
    prefixes = np.array(lengths, dtype="<u4").view("V4").tolist()
    parts = [b""] * (2 * len(values))
    parts[::2] = prefixes
    parts[1::2] = values
    return b"".join(parts)


def list_byte_strings(path: str, array: NDArray[Any]) -> list[bytes]:
    """List the elements of a BYTES tensor as ``bytes`` in row-major order;
    ``str`` is encoded as UTF-8.
    """
    values: list[Any] = array.ravel(order="C").tolist()
    types = set(map(type, values))
    if types <= {bytes}:
        return values
    try:
        if types == {str}:
            return list(map(str.encode, values))
        return [_as_bytes(path, index, value) for index, value in enumerate(values)]
    except UnicodeEncodeError as error:
        raise RequestEncodingError(
            f"{path}: a string must be valid Unicode, got {error.object[:40]!r}; pass it as bytes"
        ) from None


def _as_bytes(path: str, index: int, value: object) -> bytes:
    """Return an element of a BYTES array as bytes."""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if isinstance(value, str):
        return value.encode()
    raise RequestEncodingError(
        f"{path} element {index}: a BYTES element must be bytes or str, got "
        f"{type(value).__name__}; convert it to str or bytes, or, if the model expects numbers, "
        "use an array of numbers"
    )


def decode_byte_strings(
    path: str, region: memoryview, count: int, first_byte: int
) -> NDArray[np.object_]:
    """Decode a BYTES tensor into a flat array of ``count`` ``bytes`` objects.

    ``region`` contains exactly the bytes of this tensor. ``first_byte`` is its position in the
    body, for error messages.
    """
    if count * PREFIX_SIZE > len(region):
        raise _size_error(
            path, first_byte, f"{count} elements need at least {count * PREFIX_SIZE} bytes", region
        )
    data = bytes(region)
    values = _split_equal(data, count) or _split(data, count)
    if values is None:
        raise _locate_error(path, data, count, first_byte)
    array = np.empty(count, dtype=np.object_)
    array[:] = values
    return array


def _split_equal(data: bytes, count: int) -> Sequence[bytes] | None:
    """Split elements that all have the same length; return ``None`` if they do not."""
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
    """Return the values of which each follows its length; ``None`` if the data has another form."""
    stream = io.BytesIO(data)
    unpack = _LENGTH.unpack
    read = stream.read
    try:
        values = [read(*unpack(read(PREFIX_SIZE))) for _ in range(count)]
    except struct.error:
        return None
    if stream.tell() != len(data):
        return None
    if not values:
        return values

    # A value before the last one that has not its whole length would end the data.
    last_length = len(values[-1])
    (stated,) = _read_length(data, len(data) - last_length - PREFIX_SIZE)
    return values if stated == last_length else None


def _locate_error(path: str, data: bytes, count: int, first_byte: int) -> ResponseDecodingError:
    """Decode once more, slowly, to find which element is wrong."""
    offset = 0
    for index in range(count):
        if offset + PREFIX_SIZE > len(data):
            return _size_error(
                path,
                first_byte + offset,
                f"element {index} of {count} has no complete length",
                data[offset:],
            )
        (length,) = _read_length(data, offset)
        offset += PREFIX_SIZE
        if offset + length > len(data):
            return _size_error(
                path,
                first_byte + offset,
                f"element {index} has a length of {length} bytes",
                data[offset:],
            )
        offset += length
    return _size_error(
        path, first_byte + offset, f"bytes are left over after {count} elements", data[offset:]
    )


def _size_error(path: str, byte: int, what: str, rest: bytes | memoryview) -> ResponseDecodingError:
    return build_decoding_error(f"{path} at byte {byte}", what, f"{len(rest)} bytes")
