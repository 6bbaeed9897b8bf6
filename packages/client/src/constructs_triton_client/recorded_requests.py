"""Requests with the responses that are expected, in a file.

The file is JSON; large arrays are ``.npy`` files in a folder beside it::

    {
      "version": 1,
      "requests": [
        {
          "name": "seven",
          "inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1.0, 2.0]}],
          "outputs": [
            {"name": "y", "datatype": "FP32", "shape": [1], "data": [7.0],
             "absolute_tolerance": 1e-06, "relative_tolerance": 0.0001}
          ]
        }
      ]
    }

A tensor has ``data``, or ``file``, the path of a ``.npy`` file below the folder of the JSON file. A
BYTES tensor that is not UTF-8, such as an image, has ``base64``, a list of base64 strings.
``target_model`` is the model of a multi-model endpoint.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from constructs_triton_client.bounded_files import ArrayFolder, read_file
from constructs_triton_client.recorded_tensors import (
    RecordedTensor,
    known_datatype,
    read_string,
    read_tensor,
    remove_other_arrays,
    write_tensor,
)
from constructs_triton_client.wire import encode_request
from constructs_triton_client.wire.responses import InferenceResult
from constructs_triton_client.wire.tensors import encode_payload, resolve_datatype
from constructs_triton_core.bounded_json import parse_bounded_json
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.untrusted.written_files import write_whole

__all__ = ["ExpectedOutput", "RecordedRequest", "RecordedRequests", "RecordedTensor"]

_VERSION = 1
#: Absolute and relative tolerance of new recordings. Other data types must be equal.
_TOLERANCES = {
    "FP64": (1e-6, 1e-4),
    "FP32": (1e-6, 1e-4),
    "FP16": (1e-3, 1e-2),
    "BF16": (1e-2, 2e-2),
}


@dataclass(frozen=True, slots=True)
class ExpectedOutput:
    """An output that a response must have.

    A value may differ by at most ``absolute_tolerance`` plus ``relative_tolerance`` times the
    expected value.

    Args:
        tensor: The expected values.
        absolute_tolerance: Allowed difference, in the unit of the values.
        relative_tolerance: Allowed difference as a fraction of the expected value.
    """

    tensor: RecordedTensor
    absolute_tolerance: float = 0.0
    relative_tolerance: float = 0.0


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """One request and the outputs that are expected.

    Args:
        name: Name of the request in messages, and in the names of its ``.npy`` files.
        inputs: Input tensors by name.
        outputs: Expected outputs by name; only these are requested.
        target_model: Model or archive of a multi-model endpoint; ``None`` on other endpoints.
    """

    name: str
    inputs: Mapping[str, RecordedTensor]
    outputs: Mapping[str, ExpectedOutput]
    target_model: str | None = None

    @classmethod
    def of(
        cls,
        name: str,
        inputs: Mapping[str, NDArray[Any]],
        result: InferenceResult,
        *,
        datatypes: Mapping[str, str] | None = None,
        target_model: str | None = None,
    ) -> RecordedRequest:
        """Record the inputs of a request and its result.

        New recordings tolerate absolute and relative differences of 1e-6 and 1e-4 (FP64, FP32),
        1e-3 and 1e-2 (FP16), or 1e-2 and 2e-2 (BF16). Other outputs must be equal.

        Args:
            inputs: Input arrays by name, as they were sent.
            result: The result, whose outputs become the expected ones.
            datatypes: Datatypes that were given to ``infer``. Default: those of the arrays.
        """
        given = datatypes or {}
        recorded = {}
        for key, array in inputs.items():
            datatype = given.get(key) or resolve_datatype(key, array).datatype
            recorded[key] = RecordedTensor(array, datatype)

        outputs = {}
        for key, array in result.items():
            datatype = result.datatypes[key]
            absolute, relative = _TOLERANCES.get(datatype, (0.0, 0.0))
            outputs[key] = ExpectedOutput(RecordedTensor(array, datatype), absolute, relative)
        return cls(name, recorded, outputs, target_model)

    def compile(self) -> dict[str, Any]:
        """Return the request and the expected outputs as bytes on the wire,
        in values that JSON can hold.
        """
        arrays = {name: tensor.array for name, tensor in self.inputs.items()}
        datatypes = {
            name: "BF16" for name, tensor in self.inputs.items() if tensor.datatype == "BF16"
        }
        request = encode_request(arrays, outputs=list(self.outputs), datatypes=datatypes)
        return {
            "name": self.name,
            "target_model": self.target_model,
            "content_type": request.content_type,
            "body": base64.b64encode(request.body).decode(),
            "expected": [_compiled(name, output) for name, output in self.outputs.items()],
        }


@dataclass(frozen=True, slots=True)
class RecordedRequests:
    """The requests of a file, in their order.

    Args:
        requests: The requests.
    """

    requests: Sequence[RecordedRequest] = field(default=())

    def __post_init__(self) -> None:
        given: object = self.requests
        if isinstance(given, str) or not isinstance(given, Sequence):
            raise InvalidValueError(
                f"requests: must be RecordedRequest objects, got {type(given).__name__}; write "
                "RecordedRequests.from_file(path) for a file, or pass a list"
            )

    @classmethod
    def from_file(cls, path: Path | str) -> RecordedRequests:
        """Read the file and its arrays.

        Args:
            path: Path of the JSON file; its ``.npy`` files are below its folder.

        Raises:
            InvalidValueError: the file cannot be read, a request in it is malformed, or its arrays
                have more than 1 GiB together.
        """
        path = Path(path)
        try:
            document = parse_bounded_json(read_file(path))
        except (OSError, ValueError) as error:
            raise InvalidValueError(
                f"{path}: cannot be read ({error}); "
                "record requests with `constructs-triton invoke --record`"
            ) from None
        if not isinstance(document, dict) or document.get("version") != _VERSION:
            raise InvalidValueError(
                f'{path}: must be {{"version": {_VERSION}, "requests": [...]}}; record requests '
                "with `constructs-triton invoke --record`"
            )
        requests = document.get("requests")
        if not isinstance(requests, list) or not requests:
            raise InvalidValueError(
                f"{path}: must have at least one request; record one with `--record`"
            )
        arrays = ArrayFolder(path.parent)
        return cls(
            [
                _request(f"{path}: request", number, request, arrays)
                for number, request in enumerate(requests)
            ]
        )

    def save(self, path: Path | str) -> None:
        """Write the file, and a ``.npy`` file for each large array, to the folder
        ``<name>_arrays``.

        Args:
            path: Path of the JSON file, which is replaced.

        Raises:
            OSError: a file cannot be written, or a link has its name.
        """
        path = Path(path)
        try:
            requests = [_document(path, request) for request in self.requests]
            text = json.dumps({"version": _VERSION, "requests": requests}, indent=1)
            write_whole(path, text + "\n")
        finally:
            # After an error, those are deleted that the old file does not name.
            remove_other_arrays(path)

    def compile(self) -> dict[str, Any]:
        """Return all requests as bytes on the wire, in values that JSON can hold."""
        return {"version": _VERSION, "requests": [request.compile() for request in self.requests]}


def _compiled(name: str, output: ExpectedOutput) -> dict[str, Any]:
    """Return an expected output as a JSON object that needs no other file."""
    tensor = output.tensor
    payload, _ = encode_payload(name, tensor.array, known_datatype(tensor.datatype, name))
    return {
        "name": name,
        "datatype": tensor.datatype,
        "shape": list(tensor.array.shape),
        "content": base64.b64encode(payload).decode(),
        "absolute_tolerance": output.absolute_tolerance,
        "relative_tolerance": output.relative_tolerance,
    }


# Reading.


def _request(where: str, number: int, value: Any, arrays: ArrayFolder) -> RecordedRequest:
    """Return the recorded request that an object of the file describes."""
    place = f"{where} {number}"
    try:
        name = read_string(value["name"])
        place = f"{where} {name}"
        inputs = {
            read_string(tensor["name"]): read_tensor(place, tensor, arrays)
            for tensor in value["inputs"]
        }
        outputs = {
            read_string(output["name"]): _expected(place, output, arrays)
            for output in value["outputs"]
        }
        target_model = value.get("target_model")
        return RecordedRequest(name, inputs, outputs, target_model and read_string(target_model))
    except (KeyError, TypeError) as error:
        raise InvalidValueError(
            f"{place}: must have name, inputs and outputs, and each tensor name, datatype, shape "
            f"and data, base64 or file, got {error!r}; "
            "record it again with `constructs-triton invoke --record`"
        ) from None


def _expected(where: str, value: Mapping[str, Any], arrays: ArrayFolder) -> ExpectedOutput:
    """Return the expected output that an object of the file describes."""
    absolute = value.get("absolute_tolerance", 0.0)
    relative = value.get("relative_tolerance", 0.0)
    for tolerance in (absolute, relative):
        if not _is_tolerance(tolerance):
            raise InvalidValueError(
                f"{where} output {value['name']}: a tolerance must be a number of at least 0, "
                f"got {tolerance!r:.40}; set absolute_tolerance and relative_tolerance"
            )
    return ExpectedOutput(read_tensor(where, value, arrays), absolute, relative)


def _is_tolerance(value: Any) -> bool:
    """Whether a value of JSON is a finite number of at least 0."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return 0 <= value < float("inf")


# Writing.


def _document(path: Path, request: RecordedRequest) -> dict[str, Any]:
    """Return a request as the file has it, and write its large arrays beside the file."""
    document: dict[str, Any] = {"name": request.name}
    if request.target_model is not None:
        document["target_model"] = request.target_model

    document["inputs"] = [
        write_tensor(path, f"{request.name}.{name}", name, tensor)
        for name, tensor in request.inputs.items()
    ]
    outputs = []
    for name, expected in request.outputs.items():
        output = write_tensor(path, f"{request.name}.{name}.expected", name, expected.tensor)
        output["absolute_tolerance"] = expected.absolute_tolerance
        output["relative_tolerance"] = expected.relative_tolerance
        outputs.append(output)
    document["outputs"] = outputs
    return document
