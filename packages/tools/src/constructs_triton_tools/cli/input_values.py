"""The values of ``--input``: ``NAME=@file`` and ``NAME=values:DATATYPE``."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from constructs_triton_client.bounded_files import MAX_ARRAY_BYTES, read_array, read_file
from constructs_triton_client.wire.dtypes import dtype_of
from constructs_triton_client.wire.json_values import read_values
from constructs_triton_core.bounded_json import parse_bounded_json
from constructs_triton_core.datatypes import DATATYPES, by_datatype
from constructs_triton_core.errors import InvalidValueError, ResponseDecodingError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_DATATYPE_NAMES = ", ".join(row.datatype for row in DATATYPES)
# NAME=values:DATATYPE:DIMS, as perf_analyzer and other tools write shapes.
_DIMS = re.compile(r"(.*):([A-Za-z0-9]+):[\[\]0-9,x ]+", re.DOTALL)
_FORMS = {
    "FP32": re.compile(r"[-+0-9.eE,\[\]\s]+"),
    "BOOL": re.compile(r"(?:true|false|[,\[\]\s])+"),
}


def read_input(text: str, *, with_batch: bool) -> tuple[str, tuple[NDArray[Any], str | None]]:
    """Read ``NAME=@file`` or ``NAME=values:DATATYPE`` into a name, an array and the datatype, if
    written.

    Raises:
        InvalidValueError: the text has another form, or the file or the values cannot be read.
    """
    name, separator, value = text.partition("=")
    if not name or not separator or not value:
        raise InvalidValueError(
            f"--input: must have the form NAME=VALUE, got {text!r}; "
            "see `constructs-triton invoke --help`"
        )
    datatype = None
    if value.startswith("@"):
        array = _read_file(name, Path(value[1:]))
    else:
        array, datatype = _read_inline(name, value)
    return name, (array[None] if with_batch else array, datatype)


def _read_file(name: str, file: Path) -> NDArray[Any]:
    try:
        if file.suffix == ".npy":
            return read_array(file)
        array: NDArray[Any] = np.empty(1, dtype=object)
        array[0] = read_file(file, MAX_ARRAY_BYTES)
    except (OSError, ValueError, EOFError) as error:
        hint = (
            _file_hint(name, str(file).rpartition(":")[0])
            or "write @ and the path of a readable file"
        )
        raise InvalidValueError(
            f"--input {name}: {file} cannot be read ({error}); {hint}"
        ) from None
    return array


def _file_hint(name: str, value: str) -> str | None:
    """Return how to send a file, if the value is the name of one, with or without a datatype."""
    found = next((file for file in (value, value.rpartition(":")[0]) if _is_file(file)), None)
    if found is None:
        return None
    hint = f"{found} is a file, so write --input {shlex.quote(f'{name}=@{found}')}"
    if found.endswith(".npy"):
        return hint
    return (
        f"{hint} for a BYTES input; "
        f"for others save an array with numpy.save and write {name}=@FILE.npy"
    )


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except OSError:  # no file can have this name, for instance one of over 255 bytes
        return False


def _read_inline(name: str, value: str) -> tuple[NDArray[Any], str]:
    text, _, datatype_name = value.rpartition(":")
    datatype = by_datatype(datatype_name.upper())
    if datatype is None:
        raise InvalidValueError(
            f"--input {name}: must end in a colon and a datatype, got {value!r}; "
            f"{_file_hint(name, value) or _datatype_hint(name, value)}"
        )
    if datatype.datatype == "BYTES":
        return _read_strings(text), "BYTES"
    return _read_numbers(name, text, datatype.datatype), datatype.datatype


def _datatype_hint(name: str, value: str) -> str:
    dims = _DIMS.fullmatch(value)
    if dims is not None and by_datatype(dims[2].upper()) is not None:
        without = shlex.quote(f"{name}={dims[1]}:{dims[2].upper()}")
        return (
            f"remove the dims: write --input {without}; "
            "nested lists such as [[1,2],[3,4]] have a shape"
        )
    return f"write for example --input {_example(name, value)}; the datatypes are {_DATATYPE_NAMES}"


def _example(name: str, value: str) -> str:
    """Return the input with a datatype that fits its values, quoted for the shell."""
    text, separator, _ = value.rpartition(":")
    values = text if separator else value
    datatype = next((name for name, form in _FORMS.items() if form.fullmatch(values)), "BYTES")
    return shlex.quote(f"{name}={values}:{datatype}")


def _read_strings(text: str) -> NDArray[Any]:
    try:
        values = parse_bounded_json(text)
    except ValueError:
        values = None
    return np.array(values if isinstance(values, list) else text.split(","), dtype=object)


def _read_numbers(name: str, text: str, datatype_name: str) -> NDArray[Any]:
    datatype = by_datatype(datatype_name)
    assert datatype is not None
    try:
        values = parse_bounded_json(
            (text if text.startswith("[") else f"[{text}]").encode("utf-8", "replace")
        )
        shape = list(np.shape(values))
        if datatype.datatype == "BF16":
            return np.array(values, dtype=np.float32).astype(dtype_of(datatype))
        return read_values(f"--input {name}", values, datatype, shape, int(np.prod(shape))).reshape(
            shape
        )
    except (ValueError, ResponseDecodingError) as error:
        # What a response's reader advises after its reason is for bodies, not for an argument.
        reason = str(error).removeprefix(f"--input {name} ").partition(";")[0]
        hint = _file_hint(name, text) or _values_hint(datatype_name)
        raise InvalidValueError(
            f"--input {name}: must be {datatype_name} values, got {text[:80]!r} ({reason}); {hint}"
        ) from None


def _values_hint(datatype_name: str) -> str:
    if datatype_name == "BOOL":
        return "write true,false"
    if "INT" in datatype_name:
        return "write 1,2 or [[1],[2]], or another datatype, such as FP32"
    return "write 1,2 or [[1],[2]]"
