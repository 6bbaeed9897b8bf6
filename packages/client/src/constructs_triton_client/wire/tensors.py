"""One tensor of a request or response: its entry in the JSON, and its bytes after the JSON."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from constructs_triton_client.wire.byte_strings import decode_byte_strings, encode_byte_strings
from constructs_triton_client.wire.dtypes import Buffer, datatype_of, dtype_of
from constructs_triton_client.wire.json_text import build_decoding_error
from constructs_triton_client.wire.json_values import list_values, read_values
from constructs_triton_core.datatypes import FILE_HINT, Datatype, by_datatype
from constructs_triton_core.errors import RequestEncodingError, ResponseDecodingError

_MAXIMUM_DIMENSION = 2**63 - 1
# NumPy 2 has at most 64 axes. The product of millions of dimensions takes hours.
_MAXIMUM_AXES = 64
_ARGUMENTS: dict[type, str] = dict.fromkeys((str, bytes), "([VALUE], dtype=object)")
# Of open files, pathlib's paths and PIL's images.
_FILES = ("read", "read_bytes", "getexif")
_NUMPY_SHAPE = "shape must be one that NumPy supports"


def resolve_datatype(path: str, array: NDArray[Any], stated: str | None = None) -> Datatype:
    """Return the datatype of ``array``; ``stated`` can only declare a ``uint16`` array as BF16."""
    if not isinstance(array, np.ndarray):
        raise _not_an_array(path, array)
    if isinstance(array, np.ma.MaskedArray):
        raise RequestEncodingError(
            f"{path}: must have a value for each element, got a masked array; "
            "send array.filled(VALUE)"
        )
    found = datatype_of(array)
    if found is not None and stated in (None, found.datatype):
        return found
    if stated == "BF16" and found is not None and found.datatype == "UINT16":
        return by_datatype("BF16") or found
    if found is not None and stated is not None:
        raise RequestEncodingError(
            f"{path}: datatype {stated} does not match dtype {array.dtype} ({found.datatype}); "
            "remove it, or for BF16 convert the array with astype(ml_dtypes.bfloat16)"
        )
    raise RequestEncodingError(
        f"{path}: Triton has no datatype for dtype {array.dtype}; convert the array with astype"
    )


def _not_an_array(path: str, value: object) -> RequestEncodingError:
    """Return the error about an input that is another object, such as a list or an open file."""
    is_file = any(hasattr(value, name) for name in _FILES)
    file_hint = f"{FILE_HINT}; for pixels, " if is_file else ""
    arguments = _ARGUMENTS.get(type(value), " with a dtype")
    return RequestEncodingError(
        f"{path}: must be a NumPy array, got {type(value).__name__}; "
        f"{file_hint}use numpy.asarray{arguments}, "
        "and the model's number of dimensions: [[VALUE]] if it has a batch axis"
    )


def encode_tensor(
    path: str, name: str, array: NDArray[Any], datatype: Datatype, *, binary: bool
) -> tuple[dict[str, Any], Buffer | None]:
    """Encode a tensor: its entry in the JSON and, in binary,
    its bytes (without a copy where possible).
    """
    if not binary:
        entry = describe_tensor(name, array.shape, datatype.datatype)
        return entry | {"data": list_values(path, array, datatype)}, None
    payload, size = encode_payload(path, array, datatype)
    return describe_tensor(name, array.shape, datatype.datatype, size), payload


def describe_tensor(
    name: str, shape: tuple[int, ...], datatype: str, binary_data_size: int | None = None
) -> dict[str, Any]:
    """Return the JSON entry of a tensor, without its values."""
    entry: dict[str, Any] = {"name": name, "shape": shape, "datatype": datatype}
    if binary_data_size is not None:
        entry["parameters"] = {"binary_data_size": binary_data_size}
    return entry


def encode_payload(path: str, array: NDArray[Any], datatype: Datatype) -> tuple[Buffer, int]:
    """Return the tensor's bytes and their number."""
    if datatype.item_size is None:
        strings = encode_byte_strings(path, array)
        return strings, len(strings)
    return view_bytes(array), array.nbytes


def view_bytes(array: NDArray[Any]) -> memoryview:
    """Return the array's bytes in row-major, little-endian order;
    copies only if they are not already so.
    """
    if not array.flags.c_contiguous or not array.dtype.isnative:
        array = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    # An array of a dtype that NumPy does not define, such as bfloat16, has no buffer of its own
    # type.
    return array.data if array.dtype.isbuiltin == 1 else array.reshape(-1).view(np.uint8).data


@dataclass(slots=True)
class TensorReader:
    """Reads the tensors of one body in order.

    ``offset`` is the byte of ``body`` where the next binary tensor starts. ``role`` is "output" for
    a response and "input" for a request, for error messages.
    """

    body: memoryview
    offset: int
    role: str = "output"

    def read(self, entry: object, index: int) -> tuple[str, Datatype, NDArray[Any]]:
        """Return name, datatype and array of a tensor;
        one of numbers is a read-only view of the body.
        """
        if not isinstance(entry, dict):
            raise _entry_error(f"{self.role} {index}", "must be a JSON object", entry)
        name = entry.get("name")
        if not isinstance(name, str) or not name:
            raise _entry_error(f"{self.role} {index}", "name must be a non-empty string", name)
        path = f'{self.role} "{name}"'
        datatype = _read_datatype(path, entry.get("datatype"))
        shape, count = _read_shape(path, entry.get("shape"))
        size = _read_size(path, entry.get("parameters"))
        if size is None:
            flat = read_values(path, entry.get("data"), datatype, shape, count)
        else:
            flat = self._read_binary(path, datatype, count, size)
        return name, datatype, _reshape(path, flat, shape)

    def read_all(self, entries: list[Any]) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
        """Return the arrays and the datatypes of all tensors by name;
        no byte of the body may be left.
        """
        arrays: dict[str, NDArray[Any]] = {}
        datatypes: dict[str, str] = {}
        for index, entry in enumerate(entries):
            name, datatype, array = self.read(entry, index)
            if name in arrays:
                raise build_decoding_error(f'{self.role} "{name}"', "occurs more than once")
            arrays[name] = array
            datatypes[name] = datatype.datatype
        if (rest := len(self.body) - self.offset) > 0:
            what = f"the last bytes belong to no {self.role}"
            raise build_decoding_error(f"body at byte {self.offset}", what, f"{rest} bytes")
        return arrays, datatypes

    def _read_binary(self, path: str, datatype: Datatype, count: int, size: int) -> NDArray[Any]:
        """Return the array in the next ``size`` bytes of the body."""
        start = self.offset
        rest = len(self.body) - self.offset
        if size > rest:
            what = f"binary_data_size is {size} bytes"
            raise build_decoding_error(f"{path} at byte {start}", what, f"{rest} bytes in the body")
        if datatype.item_size is not None and size != count * datatype.item_size:
            what = f"{count} elements of {datatype.datatype} are {count * datatype.item_size} bytes"
            raise build_decoding_error(f"{path} at byte {start}", what, f"binary_data_size {size}")
        self.offset += size
        region = self.body[start : self.offset]
        if datatype.item_size is None:
            return decode_byte_strings(path, region, count, start)
        return _view_array(region, datatype)


def _view_array(region: memoryview, datatype: Datatype) -> NDArray[Any]:
    """Return an array that shares the memory of the body."""
    array: NDArray[Any] = np.frombuffer(region, dtype=dtype_of(datatype))
    if datatype.datatype == "BOOL" and array.view(np.uint8).max(initial=0) > 1:
        # NumPy assumes that the byte of a boolean is 0 or 1; with other bytes its results are
        # wrong.
        array = array.view(np.uint8) != 0
    array.flags.writeable = False
    return array


def _read_datatype(path: str, value: object) -> Datatype:
    datatype = by_datatype(value) if isinstance(value, str) else None
    if datatype is None:
        raise _entry_error(path, "datatype must be one of KServe v2", value)
    return datatype


def _read_shape(path: str, value: object) -> tuple[list[int], int]:
    """Return a shape, and how many elements it has."""
    if not isinstance(value, list) or not all(
        type(size) is int and 0 <= size <= _MAXIMUM_DIMENSION for size in value
    ):
        raise _entry_error(path, "shape must be a list of integers of 0 or more", value)
    if len(value) > _MAXIMUM_AXES:
        raise _entry_error(path, _NUMPY_SHAPE, value)
    return value, math.prod(value)


def _read_size(path: str, parameters: object) -> int | None:
    """Return ``binary_data_size``; ``None`` if the data is in JSON."""
    if parameters is None:
        return None
    if not isinstance(parameters, dict):
        raise _entry_error(path, "parameters must be a JSON object", parameters)
    size = parameters.get("binary_data_size")
    if size is not None and (type(size) is not int or size < 0):
        raise _entry_error(path, "binary_data_size must be an integer of 0 or more", size)
    return size


def _reshape(path: str, flat: NDArray[Any], shape: list[int]) -> NDArray[Any]:
    try:
        return flat.reshape(shape)
    except (ValueError, OverflowError):  # NumPy allows fewer axes, or only smaller ones
        raise _entry_error(path, _NUMPY_SHAPE, shape) from None


def _entry_error(path: str, what: str, got: object) -> ResponseDecodingError:
    return build_decoding_error(path, what, f"{got!r:.80}")
