"""Tensors whose elements stand in the JSON itself, as a flat or nested list.

Source: KServe v2 "Tensor Data". Triton takes no FP16 and no BF16 this way: JSON has no such numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from constructs_triton.datatypes import Datatype
from constructs_triton.errors import RequestEncodingError, ResponseDecodingError
from constructs_triton.wire.byte_strings import list_byte_strings
from constructs_triton.wire.dtypes import dtype_of

__all__ = ["list_values", "read_values"]

_ONLY_BINARY = {"FP16", "BF16"}


def list_values(path: str, array: NDArray[Any], datatype: Datatype) -> list[Any]:
    """The elements as JSON takes them; raises ``RequestEncodingError`` for those it cannot take."""
    if datatype.datatype in _ONLY_BINARY:
        raise RequestEncodingError(
            f"{path}: triton takes {datatype.datatype} in binary only, got binary=False; send it in binary"
        )
    if datatype.datatype == "BYTES":
        return _list_texts(path, array)
    if array.dtype.kind == "f" and not (finite := np.isfinite(array.ravel())).all():
        element = int(np.argmin(finite))
        raise RequestEncodingError(
            f"{path} element {element}: JSON has no such number, got {array.ravel()[element]}; "
            "send it in binary"
        )
    values: list[Any] = array.ravel().tolist()
    return values


def _list_texts(path: str, array: NDArray[Any]) -> list[str]:
    texts = []
    for index, value in enumerate(list_byte_strings(path, array)):
        try:
            texts.append(value.decode())
        except UnicodeDecodeError:
            raise RequestEncodingError(
                f"{path} element {index}: JSON takes only valid UTF-8, got {value[:20]!r}; send it in binary"
            ) from None
    return texts


def read_values(
    path: str, data: object, datatype: Datatype, shape: Sequence[int], count: int
) -> NDArray[Any]:
    """The flat array of ``count`` elements that ``data``, from the JSON of a response, lists.

    Raises ``ResponseDecodingError`` for elements of another type, out of range, or not ``count`` of them.
    """
    values = _flatten(path, data, shape)
    if len(values) != count:
        raise _fault(path, f"shape {list(shape)} has {count} elements", f"{len(values)} values")
    if datatype.datatype == "BF16":
        raise _fault(path, "BF16 comes in binary only", "JSON")
    if datatype.datatype == "BYTES":
        return _read_texts(path, values)
    kind = np.dtype(datatype.dtype).kind
    if kind == "f":
        return _read_floats(path, values, datatype)
    if kind == "b":
        _require_types(path, values, {bool}, "true or false")
        return np.array(values, dtype=np.bool_)
    return _read_integers(path, values, datatype)


def _flatten(path: str, data: object, shape: Sequence[int]) -> list[Any]:
    if not isinstance(data, list):
        raise _fault(path, "data must be a list", type(data).__name__)
    values, depth = data, 1
    while values and all(type(value) is list for value in values):
        if depth >= len(shape) or set(map(len, values)) != {shape[depth]}:
            raise _fault(
                path, f"nested data must follow shape {list(shape)}", f"lists within lists {depth} deep"
            )
        values, depth = list(chain.from_iterable(values)), depth + 1
    return values


def _read_texts(path: str, values: list[Any]) -> NDArray[np.object_]:
    _require_types(path, values, {str}, "a string")
    array = np.empty(len(values), dtype=np.object_)
    try:
        array[:] = list(map(str.encode, values))
    except UnicodeEncodeError as error:
        raise _fault(path, "a string must be valid Unicode", repr(error.object[:40])) from None
    return array


def _read_integers(path: str, values: list[Any], datatype: Datatype) -> NDArray[Any]:
    _require_types(path, values, {int}, "a whole number")
    dtype = np.dtype(datatype.dtype)
    limits = np.iinfo(dtype)
    if values and (min(values) < limits.min or max(values) > limits.max):
        worst = max(values, key=abs)
        raise _fault(path, f"{datatype.datatype} holds {limits.min} to {limits.max}", f"{worst:.20g}")
    return np.array(values, dtype=dtype)


def _read_floats(path: str, values: list[Any], datatype: Datatype) -> NDArray[Any]:
    _require_types(path, values, {int, float}, "a number")
    try:
        with np.errstate(over="ignore"):
            array = np.array(values, dtype=np.float64).astype(dtype_of(datatype))
    except OverflowError:
        raise _fault(path, f"a number must fit {datatype.datatype}", "a whole number beyond FP64") from None
    if not (finite := np.isfinite(array)).all():
        worst = values[int(np.argmin(finite))]
        raise _fault(path, f"a number must fit {datatype.datatype}", f"{worst!r:.40}")
    return array


def _require_types(path: str, values: list[Any], allowed: set[type], what: str) -> None:
    if set(map(type, values)) <= allowed:
        return
    index = next(i for i, value in enumerate(values) if type(value) not in allowed)
    raise _fault(f"{path} element {index}", f"must be {what}", f"{type(values[index]).__name__}")


def _fault(path: str, what: str, got: str) -> ResponseDecodingError:
    return ResponseDecodingError(f"{path}: {what}, got {got}; the response is corrupt")
