"""Tensors whose elements are in the JSON itself, as a flat or nested list.

Source: KServe v2 "Tensor Data". Triton does not accept FP16 and BF16 in JSON.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from constructs_triton_client.wire.byte_strings import list_byte_strings
from constructs_triton_client.wire.dtypes import dtype_of
from constructs_triton_client.wire.json_text import build_decoding_error
from constructs_triton_core.datatypes import Datatype
from constructs_triton_core.errors import RequestEncodingError

__all__ = ["list_values", "read_values"]

_ONLY_BINARY = {"FP16", "BF16"}


def list_values(path: str, array: NDArray[Any], datatype: Datatype) -> list[Any]:
    """List the elements of ``array`` as JSON values.

    Raises:
        RequestEncodingError: the datatype or an element cannot be written in JSON.
    """
    if datatype.datatype in _ONLY_BINARY:
        raise RequestEncodingError(
            f"{path}: Triton accepts {datatype.datatype} in binary only; remove binary=False"
        )
    if datatype.datatype == "BYTES":
        return _list_strings(path, array)
    if array.dtype.kind == "f" and not (finite := np.isfinite(array.ravel())).all():
        element = int(np.argmin(finite))
        raise RequestEncodingError(
            f"{path} element {element}: a number in JSON must be finite, got "
            f"{array.ravel()[element]}; remove binary=False"
        )
    values: list[Any] = array.ravel().tolist()
    return values


def _list_strings(path: str, array: NDArray[Any]) -> list[str]:
    """Return the strings of an array as JSON can contain them."""
    strings = []
    for index, value in enumerate(list_byte_strings(path, array)):
        try:
            strings.append(value.decode())
        except UnicodeDecodeError:
            raise RequestEncodingError(
                f"{path} element {index}: a string in JSON must be valid UTF-8, got "
                f"{value[:20]!r}; remove binary=False"
            ) from None
    return strings


def read_values(
    path: str, data: object, datatype: Datatype, shape: Sequence[int], count: int
) -> NDArray[Any]:
    """Read ``data``, a flat or nested list in the JSON, into a flat array of ``count`` elements.

    Raises:
        ResponseDecodingError: the number of elements is not ``count``, nested lists do not follow
            ``shape``, or an element has the wrong type or is out of range.
    """
    values = _flatten(path, data, shape)
    if len(values) != count:
        raise build_decoding_error(
            path, f"shape {list(shape)} has {count} elements", f"{len(values)} values"
        )
    if datatype.datatype == "BF16":
        raise build_decoding_error(path, "BF16 must be in binary, not in JSON")
    if datatype.datatype == "BYTES":
        return _read_strings(path, values)
    kind = np.dtype(datatype.dtype).kind
    if kind == "f":
        return _read_floats(path, values, datatype)
    if kind == "b":
        _require_types(path, values, {bool}, "true or false")
        return np.array(values, dtype=np.bool_)
    return _read_integers(path, values, datatype)


def _flatten(path: str, data: object, shape: Sequence[int]) -> list[Any]:
    """Return the values of nested lists, which must follow the shape."""
    if not isinstance(data, list):
        raise build_decoding_error(path, "data must be a list", type(data).__name__)
    values = data
    depth = 1
    while values and all(type(value) is list for value in values):
        if depth >= len(shape) or set(map(len, values)) != {shape[depth]}:
            raise build_decoding_error(
                path,
                f"nested data must follow shape {list(shape)}",
                f"lists within lists {depth} deep",
            )
        values = list(chain.from_iterable(values))
        depth += 1
    return values


def _read_strings(path: str, values: list[Any]) -> NDArray[np.object_]:
    """Return an array of byte strings from the strings of JSON."""
    _require_types(path, values, {str}, "a string")
    array = np.empty(len(values), dtype=np.object_)
    try:
        array[:] = list(map(str.encode, values))
    except UnicodeEncodeError as error:
        raise build_decoding_error(
            path, "a string must be valid Unicode", repr(error.object[:40])
        ) from None
    return array


def _read_integers(path: str, values: list[Any], datatype: Datatype) -> NDArray[Any]:
    """Return an array from integers, which must fit the datatype."""
    _require_types(path, values, {int}, "an integer")
    dtype = np.dtype(datatype.dtype)
    lowest = np.iinfo(dtype).min
    highest = np.iinfo(dtype).max
    if values and (min(values) < lowest or max(values) > highest):
        index = next(i for i, value in enumerate(values) if not lowest <= value <= highest)
        what = f"{datatype.datatype} must be between {lowest} and {highest}"
        raise build_decoding_error(f"{path} element {index}", what, f"{values[index]!s:.40}")
    return np.array(values, dtype=dtype)


def _read_floats(path: str, values: list[Any], datatype: Datatype) -> NDArray[Any]:
    """Return an array from numbers, which must fit the datatype."""
    _require_types(path, values, {int, float}, "a number")
    try:
        with np.errstate(over="ignore"):
            array = np.array(values, dtype=np.float64).astype(dtype_of(datatype))
    except OverflowError:
        raise build_decoding_error(
            path, f"a number must fit {datatype.datatype}", "an integer beyond FP64"
        ) from None
    if not (finite := np.isfinite(array)).all():
        index = int(np.argmin(finite))
        what = f"a number must fit {datatype.datatype}"
        raise build_decoding_error(f"{path} element {index}", what, f"{values[index]!r:.40}")
    return array


def _require_types(path: str, values: list[Any], allowed: set[type], what: str) -> None:
    """Raise ``ResponseDecodingError`` at the first value of another type."""
    if set(map(type, values)) <= allowed:
        return
    index = next(i for i, value in enumerate(values) if type(value) not in allowed)
    raise build_decoding_error(
        f"{path} element {index}", f"must be {what}", f"{type(values[index]).__name__}"
    )
