"""``constructs-triton invoke``: tensors from files or from the command line, answers as a table or JSON."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from constructs_triton.datatypes import DATATYPES, by_datatype
from constructs_triton.errors import InvalidValueError, MissingDependencyError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from constructs_triton.client import InferenceResult, TritonClient

_SHOWN_ELEMENTS = 6
_DATATYPE_NAMES = ", ".join(row.datatype for row in DATATYPES)
_EPILOG = """\
inputs:
  IMAGE=@dog.jpg      the file's bytes, one BYTES element of shape [1], with --batch [1, 1]
  ids=@ids.npy        a NumPy array, its dtype and shape as saved
  x=1.0,2.0:FP32      values of a datatype, shape [2], with --batch [1, 2]
  x=[[1,2],[3,4]]:INT64   a nested JSON list, its shape
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of the command."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _EPILOG
    parser.add_argument("endpoint", metavar="NAME", help="name of the endpoint, or http:// of a container")
    parser.add_argument(
        "--input",
        action="append",
        required=True,
        metavar="NAME=VALUE",
        dest="inputs",
        help="an input tensor, see below; once for each",
    )
    parser.add_argument("--output", action="append", metavar="NAME", dest="outputs", help="ask for it only")
    parser.add_argument("--batch", action="store_true", help="put a batch axis of 1 before every input")
    parser.add_argument("--target-model", metavar="MODEL", help="model of a multi-model endpoint")
    parser.add_argument("--index", metavar="S3_URI", help="index.json that maps model names to archives")
    parser.add_argument("--endpoint-url", metavar="URL", help="address of the runtime API, for a local run")
    parser.add_argument("--region", metavar="REGION", help="AWS Region, as boto3 finds it unless given")
    parser.add_argument("--json", action="store_true", dest="as_json", help="print JSON, not a table")


def run(arguments: argparse.Namespace) -> int:
    """Send one request and print what came back."""
    inputs = dict(read_input(text, with_batch=arguments.batch) for text in arguments.inputs)
    datatypes = {name: "BF16" for name, (_, datatype) in inputs.items() if datatype == "BF16"}
    arrays = {name: array for name, (array, _) in inputs.items()}
    result = _connect(arguments).infer(arrays, arguments.outputs, datatypes=datatypes)
    print(json.dumps(describe(result), indent=2)) if arguments.as_json else _print_table(result)
    return 0


def _connect(arguments: argparse.Namespace) -> TritonClient:
    from constructs_triton.client import HttpTransport, TritonClient  # noqa: PLC0415 - --help needs none

    if arguments.endpoint.startswith(("http://", "https://")):
        return TritonClient(HttpTransport(arguments.endpoint), target_model=arguments.target_model)
    return TritonClient.for_endpoint(
        arguments.endpoint,
        endpoint_url=arguments.endpoint_url,
        region_name=arguments.region,
        target_model=arguments.target_model,
        index=arguments.index,
    )


def read_input(text: str, *, with_batch: bool) -> tuple[str, tuple[NDArray[Any], str | None]]:
    """Name, array and, where it was written, datatype of ``NAME=@file`` or ``NAME=values:DATATYPE``."""
    name, separator, value = text.partition("=")
    if not name or not separator or not value:
        raise InvalidValueError(f"--input: must read NAME=VALUE, got {text!r}; see --help")
    path, datatype = f"--input {name}", None
    if value.startswith("@"):
        array = _read_file(path, Path(value[1:]))
    else:
        array, datatype = _read_inline(path, value)
    return name, (array[None] if with_batch else array, datatype)


def _read_file(path: str, file: Path) -> NDArray[Any]:
    import numpy as np  # noqa: PLC0415 - --help needs none

    try:
        if file.suffix == ".npy":
            array: NDArray[Any] = np.load(file, allow_pickle=False)
            return array
        array = np.empty(1, dtype=object)
        array[0] = file.read_bytes()
    except (OSError, ValueError, EOFError) as error:
        raise InvalidValueError(f"{path}: {file} cannot be read, got {error}; name a readable file") from None
    return array


def _read_inline(path: str, value: str) -> tuple[NDArray[Any], str]:
    text, _, datatype_name = value.rpartition(":")
    datatype = by_datatype(datatype_name.upper())
    if datatype is None:
        raise InvalidValueError(
            f"{path}: must end in a datatype after a colon, got {value!r}; one of {_DATATYPE_NAMES}"
        )
    if datatype.datatype == "BYTES":
        return _read_texts(text), "BYTES"
    return _read_numbers(path, text, datatype.datatype), datatype.datatype


def _read_texts(text: str) -> NDArray[Any]:
    import numpy as np  # noqa: PLC0415 - --help needs none

    try:
        values = json.loads(text)
    except ValueError:
        values = None
    return np.array(values if isinstance(values, list) else text.split(","), dtype=object)


def _read_numbers(path: str, text: str, datatype_name: str) -> NDArray[Any]:
    import numpy as np  # noqa: PLC0415 - --help needs none

    from constructs_triton.errors import ResponseDecodingError  # noqa: PLC0415
    from constructs_triton.wire.dtypes import dtype_of  # noqa: PLC0415
    from constructs_triton.wire.json_values import read_values  # noqa: PLC0415

    datatype = by_datatype(datatype_name)
    assert datatype is not None
    try:
        values = json.loads(text if text.startswith("[") else f"[{text}]")
        shape = list(np.shape(values))
        if datatype.datatype == "BF16":
            return np.array(values, dtype=np.float32).astype(dtype_of(datatype))
        return read_values(path, values, datatype, shape, int(np.prod(shape))).reshape(shape)
    except (ValueError, ResponseDecodingError) as error:
        raise InvalidValueError(
            f"{path}: must be {datatype_name} values, got {text[:80]!r} ({error}); write 1,2 or [[1],[2]]"
        ) from None


def describe(result: InferenceResult) -> dict[str, Any]:
    """A result as JSON-ready values; bytes that are no UTF-8 show their escapes."""
    outputs = [
        {
            "name": name,
            "datatype": result.datatypes[name],
            "shape": list(array.shape),
            "data": _to_values(array),
        }
        for name, array in result.items()
    ]
    return {
        "model_name": result.model_name,
        "model_version": result.model_version,
        "latency_seconds": result.latency_seconds,
        "outputs": outputs,
    }


def _to_values(array: NDArray[Any]) -> Any:
    if array.dtype.kind == "O":
        texts = [value.decode("utf-8", errors="backslashreplace") for value in array.ravel()]
        return _nest(texts, array.shape)
    if array.dtype.kind in "fV":
        # JSON has no NaN and no infinity; their names say what came.
        numbers = array.ravel().astype("f8").tolist()
        return _nest([x if abs(x) < float("inf") else str(x) for x in numbers], array.shape)
    return array.tolist()


def _nest(values: list[Any], shape: tuple[int, ...]) -> Any:
    import numpy as np  # noqa: PLC0415 - --help needs none

    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array.reshape(shape).tolist()


def _print_table(result: InferenceResult) -> None:
    try:
        from rich.console import Console  # noqa: PLC0415 - JSON needs none
        from rich.table import Table  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415
    except ImportError:
        raise MissingDependencyError(
            "rich: is not installed, got ImportError; use --json, or pip install rich"
        ) from None

    milliseconds = f", {result.latency_seconds * 1e3:.1f} ms" if result.latency_seconds is not None else ""
    table = Table(title=f"{result.model_name} version {result.model_version}{milliseconds}")
    for column in ("output", "datatype", "shape", "values"):
        table.add_column(column, overflow="fold")
    for entry in describe(result)["outputs"]:
        values = [Text(str(entry[key])) for key in ("name", "datatype", "shape")]
        table.add_row(*values, Text(_shorten(result[entry["name"]])))
    Console().print(table)


def _shorten(array: NDArray[Any]) -> str:
    flat = array.ravel()[:_SHOWN_ELEMENTS]
    values = ", ".join(
        f"{value:.6g}" if isinstance(value, float) else str(value) for value in _to_values(flat)
    )
    return f"{values}, ... ({array.size} in all)" if array.size > _SHOWN_ELEMENTS else values
