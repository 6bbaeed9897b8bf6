"""One tensor: its entry in the JSON, and its bytes behind it. Requests and responses share it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from constructs_triton.datatypes import Datatype, by_datatype
from constructs_triton.errors import RequestEncodingError, ResponseDecodingError
from constructs_triton.wire.byte_strings import decode_byte_strings, encode_byte_strings
from constructs_triton.wire.dtypes import Buffer, datatype_of, dtype_of
from constructs_triton.wire.json_values import list_values, read_values

__all__ = [
    "TensorReader",
    "describe_tensor",
    "encode_payload",
    "encode_tensor",
    "resolve_datatype",
    "view_bytes",
]

_LARGEST = 2**63 - 1


def resolve_datatype(path: str, array: NDArray[Any], stated: str | None = None) -> Datatype:
    """The datatype of ``array``; ``stated`` may turn ``uint16`` bit patterns into BF16, and nothing else."""
    if not isinstance(array, np.ndarray):
        raise RequestEncodingError(
            f"{path}: must be a NumPy array, got {type(array).__name__}; "
            "wrap it in numpy.asarray with a dtype"
        )
    found = datatype_of(array)
    if found is not None and stated in (None, found.datatype):
        return found
    if stated == "BF16" and found is not None and found.datatype == "UINT16":
        return by_datatype("BF16") or found
    wanted = f" for datatype {stated}" if stated else ""
    raise RequestEncodingError(
        f"{path}: no datatype of triton fits{wanted}, got dtype {array.dtype}; convert it with astype"
    )


def encode_tensor(
    path: str, name: str, array: NDArray[Any], datatype: Datatype, *, binary: bool
) -> tuple[dict[str, Any], Buffer | None]:
    """The tensor's entry in the JSON and, in binary, its bytes: a view of ``array`` wherever that can be."""
    if not binary:
        entry = describe_tensor(name, array.shape, datatype.datatype)
        return entry | {"data": list_values(path, array, datatype)}, None
    payload, size = encode_payload(path, array, datatype)
    return describe_tensor(name, array.shape, datatype.datatype, size), payload


def describe_tensor(
    name: str, shape: tuple[int, ...], datatype: str, binary_data_size: int | None = None
) -> dict[str, Any]:
    """The entry of a tensor, without its values."""
    entry: dict[str, Any] = {"name": name, "shape": shape, "datatype": datatype}
    if binary_data_size is not None:
        entry["parameters"] = {"binary_data_size": binary_data_size}
    return entry


def encode_payload(path: str, array: NDArray[Any], datatype: Datatype) -> tuple[Buffer, int]:
    """The tensor's bytes behind the JSON, and how many they are."""
    if datatype.item_size is None:
        strings = encode_byte_strings(path, array)
        return strings, len(strings)
    return view_bytes(array), array.nbytes


def view_bytes(array: NDArray[Any]) -> memoryview:
    """The array's bytes as they go on the wire: row-major, little-endian, not copied if they already are."""
    if not array.flags.c_contiguous or not array.dtype.isnative:
        array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    # A dtype that is not NumPy's own, such as bfloat16, can only be shown as bytes.
    return array.data if array.dtype.isbuiltin == 1 else array.reshape(-1).view(np.uint8).data


@dataclass(slots=True)
class TensorReader:
    """Hands out the tensors of one body in order, keeping count of the bytes behind its JSON.

    ``kind`` is "output" for a response and "input" for a request, and names tensors in errors. ``offset``
    is the byte of ``body`` where the next binary tensor starts.
    """

    body: memoryview
    offset: int
    kind: str = "output"

    def read(self, entry: object, index: int) -> tuple[str, Datatype, NDArray[Any]]:
        """Name, datatype and array of a tensor; of fixed-size elements a read-only view of the body."""
        if not isinstance(entry, dict):
            raise _fault(f"{self.kind} {index}", "must be a JSON object", entry)
        name = entry.get("name")
        if not isinstance(name, str) or not name:
            raise _fault(f"{self.kind} {index}", "name must be a string", name)
        path = f'{self.kind} "{name}"'
        datatype = _read_datatype(path, entry.get("datatype"))
        shape, count = _read_shape(path, entry.get("shape"))
        size = _read_size(path, entry.get("parameters"))
        if size is None:
            flat = read_values(path, entry.get("data"), datatype, shape, count)
        else:
            flat = self._read_binary(path, datatype, count, size)
        return name, datatype, _reshape(path, flat, shape)

    def finish(self) -> None:
        """Refuse bytes that belong to no tensor."""
        if (rest := len(self.body) - self.offset) > 0:
            raise ResponseDecodingError(
                f"response body at byte {self.offset}: no {self.kind} claims the last bytes, got {rest}; "
                "the response is corrupt"
            )

    def _read_binary(self, path: str, datatype: Datatype, count: int, size: int) -> NDArray[Any]:
        start, rest = self.offset, len(self.body) - self.offset
        if size > rest:
            raise ResponseDecodingError(
                f"{path} at byte {start}: binary_data_size promises {size} bytes, got {rest} in the body; "
                "the response was cut off"
            )
        if datatype.item_size is not None and size != count * datatype.item_size:
            raise ResponseDecodingError(
                f"{path} at byte {start}: {count} elements of {datatype.datatype} take "
                f"{count * datatype.item_size} bytes, got binary_data_size {size}; the response is corrupt"
            )
        self.offset += size
        region = self.body[start : self.offset]
        if datatype.item_size is None:
            return decode_byte_strings(path, region, count, start)
        return _view_array(region, datatype)


def _view_array(region: memoryview, datatype: Datatype) -> NDArray[Any]:
    array: NDArray[Any] = np.frombuffer(region, dtype=dtype_of(datatype))
    if datatype.datatype == "BOOL" and array.view(np.uint8).max(initial=0) > 1:
        # NumPy takes a boolean's byte for 0 or 1, and computes nonsense with any other.
        array = array.view(np.uint8) != 0
    array.flags.writeable = False
    return array


def _read_datatype(path: str, value: object) -> Datatype:
    datatype = by_datatype(value) if isinstance(value, str) else None
    if datatype is None:
        raise _fault(path, "datatype must be one of KServe v2's", value)
    return datatype


def _read_shape(path: str, value: object) -> tuple[list[int], int]:
    if not isinstance(value, list) or not all(type(size) is int and 0 <= size <= _LARGEST for size in value):
        raise _fault(path, "shape must be a list of whole numbers, none negative", value)
    return value, math.prod(value)


def _read_size(path: str, parameters: object) -> int | None:
    if parameters is None:
        return None
    if not isinstance(parameters, dict):
        raise _fault(path, "parameters must be a JSON object", parameters)
    size = parameters.get("binary_data_size")
    if size is not None and (type(size) is not int or size < 0):
        raise _fault(path, "binary_data_size must be a whole number, not negative", size)
    return size


def _reshape(path: str, flat: NDArray[Any], shape: list[int]) -> NDArray[Any]:
    try:
        return flat.reshape(shape)
    except (ValueError, OverflowError):  # more axes, or with a zero among them larger ones, than NumPy has
        raise _fault(path, "shape must be one that NumPy can hold", shape) from None


def _fault(path: str, what: str, got: object) -> ResponseDecodingError:
    return ResponseDecodingError(f"{path}: {what}, got {got!r:.80}; the response is corrupt")
