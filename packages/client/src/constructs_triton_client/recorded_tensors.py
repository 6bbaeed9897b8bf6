"""The tensors of recorded requests, in a file."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from constructs_triton_client.bounded_files import ArrayFolder, read_file
from constructs_triton_client.wire.dtypes import dtype_of
from constructs_triton_client.wire.json_values import read_values
from constructs_triton_core.datatypes import DATATYPES, Datatype, by_datatype
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.untrusted.written_files import new_folder, written_whole

#: An array with more elements, or one that JSON cannot hold, is written to a file of its own.
_INLINE_ELEMENTS = 100
#: NumPy's limit before version 2.
_MOST_DIMENSIONS = 32
_DIGEST_DIGITS = 16
_ARRAY_NAME = re.compile(r"\.[0-9a-f]{16}\.npy$")


@dataclass(frozen=True, slots=True)
class RecordedTensor:
    """An array and its datatype.

    Args:
        array: The values. A BF16 array has the dtype ``ml_dtypes.bfloat16``, or ``uint16`` without
            that package.
        datatype: KServe v2 datatype, such as ``"FP32"``.
    """

    array: NDArray[Any]
    datatype: str


def read_string(value: Any) -> str:
    """Return a string of the document."""
    if not isinstance(value, str):
        raise TypeError(f"{value!r:.40} in place of a string")
    return value


def read_tensor(where: str, value: Mapping[str, Any], arrays: ArrayFolder) -> RecordedTensor:
    """Return the tensor of an entry, whose values are in ``data``, ``base64`` or ``file``."""
    where = f"{where} tensor {value['name']}"
    datatype = known_datatype(value["datatype"], where)
    if "file" in value:
        array = _load(where, read_string(value["file"]), datatype, arrays)
    elif "base64" in value:
        array = _decode(where, value["base64"], datatype, _shape(value["shape"], where))
    else:
        shape = _shape(value["shape"], where)
        array = read_values(where, value["data"], datatype, shape, math.prod(shape)).reshape(shape)
    return RecordedTensor(array.astype(dtype_of(datatype), copy=False), datatype.datatype)


def _decode(where: str, values: Any, datatype: Datatype, shape: list[int]) -> NDArray[Any]:
    """Return the array of BYTES elements that are not UTF-8, such as images."""
    elements: list[bytes] | None
    try:
        elements = [base64.b64decode(read_string(text), validate=True) for text in values]
    except ValueError:
        elements = None
    if elements is None or datatype.datatype != "BYTES" or len(elements) != math.prod(shape):
        raise InvalidValueError(
            f"{where}: base64 must be a list with a base64 string for each element of a tensor of "
            f"BYTES, here of shape {shape!s:.40}; "
            "record it again with `constructs-triton invoke --record`"
        )
    array = np.empty(len(elements), dtype=object)
    array[:] = elements
    return array.reshape(shape)


def _load(where: str, file: str, datatype: Datatype, arrays: ArrayFolder) -> NDArray[Any]:
    """Return the array of a file; that of a BF16 tensor has bit patterns."""
    try:
        array = arrays.read(file)
        if array.dtype.kind not in ("SU" if datatype.datatype == "BYTES" else "biuf"):
            raise ValueError(f"{array.dtype} values are no {datatype.datatype} values")
    except (OSError, ValueError) as error:
        raise InvalidValueError(
            f"{where}: {file} cannot be read ({error}); keep the .npy files beside the JSON file"
        ) from None
    is_bit_pattern = datatype.datatype == "BF16" and array.dtype == np.uint16
    return array.view(dtype_of(datatype)) if is_bit_pattern else array


def _shape(value: Any, where: str) -> list[int]:
    """Return a checked shape of a recorded tensor."""
    is_list = isinstance(value, list) and len(value) <= _MOST_DIMENSIONS
    if is_list and all(type(size) is int and size >= 0 for size in value):
        return list(value)
    raise InvalidValueError(
        f"{where}: shape must be a list of at most {_MOST_DIMENSIONS} sizes, got {value!r:.40}; "
        "record it again with `constructs-triton invoke --record`"
    )


def known_datatype(datatype: str, where: str) -> Datatype:
    """Return a datatype by its name."""
    found = by_datatype(read_string(datatype))
    if found is None:
        names = ", ".join(known.datatype for known in DATATYPES)
        raise InvalidValueError(
            f"{where}: there is no datatype {datatype!r:.40}; use one of {names}"
        )
    return found


def write_tensor(path: Path, file_name: str, name: str, tensor: RecordedTensor) -> dict[str, Any]:
    """Return the entry of a tensor, and write a large array into a file."""
    array = tensor.array
    entry: dict[str, Any] = {"name": name, "datatype": tensor.datatype, "shape": list(array.shape)}
    if tensor.datatype == "BYTES":
        return {**entry, **_written_bytes(array)}
    is_exact = tensor.datatype not in ("FP16", "BF16") and bool(np.isfinite(array).all())
    if array.size <= _INLINE_ELEMENTS and is_exact:
        return {**entry, "data": array.ravel().tolist()}
    # NumPy has no bfloat16, so its bit patterns are written.
    saved = array.view(np.uint16) if tensor.datatype == "BF16" else array
    folder = new_folder(_array_folder(path))
    # An old recording keeps its arrays until the new one is complete, so no two share a name.
    file = folder / f"{file_name.replace('/', '_')}.{_digest(saved)}.npy"
    with written_whole(file) as output:
        np.save(output, saved, allow_pickle=False)
    return {**entry, "file": str(file.relative_to(path.parent))}


def _digest(array: NDArray[Any]) -> str:
    digest = hashlib.sha256(f"{array.dtype.str} {array.shape}".encode())
    digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()[:_DIGEST_DIGITS]


def remove_other_arrays(path: Path) -> None:
    """Delete the arrays beside a file of recorded requests that the file does not name.

    Only files that have the digest of their content in their name are deleted.
    """
    folder = _array_folder(path)
    if folder.is_symlink():
        return
    with suppress(OSError):
        text = read_file(path).decode("utf-8", "replace") if path.exists() else ""
        for file in folder.iterdir():
            if _ARRAY_NAME.search(file.name) and json.dumps(file.name)[1:-1] not in text:
                file.unlink()
        folder.rmdir()  # if it is empty now


def _array_folder(path: Path) -> Path:
    return path.parent / f"{path.stem}_arrays"


def _written_bytes(array: NDArray[Any]) -> dict[str, list[str]]:
    """Return the elements as strings, or in base64 if one of them is not UTF-8,
    as an image is not.
    """
    elements = [
        element.encode() if isinstance(element, str) else bytes(element)
        for element in array.ravel()
    ]
    try:
        return {"data": [element.decode() for element in elements]}
    except UnicodeDecodeError:
        return {"base64": [base64.b64encode(element).decode() for element in elements]}
