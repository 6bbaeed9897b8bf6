"""Inference responses: bytes in, arrays out, and back again for those who play the server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from numpy.typing import NDArray

from constructs_triton.errors import ResponseDecodingError
from constructs_triton.wire.content_type import parse_header_size
from constructs_triton.wire.dtypes import Buffer, bfloat16
from constructs_triton.wire.json_text import parse_json
from constructs_triton.wire.tensors import TensorReader

__all__ = ["Classification", "InferenceResult", "decode_response"]


class Classification(NamedTuple):
    """One of the best classes: its score, its index and, if the model has labels, its label."""

    score: float
    class_index: int
    label: str


@dataclass(frozen=True, slots=True, eq=False)
class InferenceResult(Mapping[str, NDArray[Any]]):
    """The outputs of one inference, a mapping of names to arrays in the order of the response.

    Arrays of numbers are read-only views of the response; a view need not be aligned, so copy it before
    heavy arithmetic. BYTES outputs are object arrays of ``bytes``. ``bit_patterns`` names the BF16 outputs
    that are ``uint16`` bit patterns because the package ``ml_dtypes`` is absent. ``latency_seconds`` is from
    before the request was sent until the answer was read, ``None`` where nothing was sent.
    ``metadata`` is what the endpoint said beside the body, under InvokeEndpoint's own names.
    """

    arrays: Mapping[str, NDArray[Any]]
    datatypes: Mapping[str, str] = field(default_factory=dict)
    model_name: str = ""
    model_version: str = ""
    id: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    latency_seconds: float | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    def __len__(self) -> int:
        return len(self.arrays)

    @property
    def bit_patterns(self) -> frozenset[str]:
        """Names of the outputs whose ``uint16`` elements are the bits of a bfloat16."""
        return frozenset(
            name for name, datatype in self.datatypes.items() if datatype == "BF16" and bfloat16() is None
        )

    def classifications(self, name: str) -> list[list[Classification]]:
        """The classes of an output asked for with ``class_count``: a list for each element of the batch."""
        array = self.arrays[name]
        rows = array.reshape(-1, array.shape[-1]) if array.ndim else array.reshape(1, 1)
        return [[_parse_classification(name, value) for value in row] for row in rows]


def decode_response(body: Buffer, content_type: str) -> InferenceResult:
    """The outputs in ``body``, whose ``content_type`` is InvokeEndpoint's ``ContentType``.

    Nothing is allocated on a promise: every size is held against the body first. Raises
    ``ResponseDecodingError`` naming the output and the byte.
    """
    view = memoryview(body).cast("B")
    header_size = parse_header_size(content_type)
    header_size = len(view) if header_size is None else header_size
    if header_size > len(view):
        raise ResponseDecodingError(
            f"content type: json-header-size must be within the body, got {header_size} for a body of "
            f"{len(view)} bytes; the response was cut off"
        )
    header = parse_json(view[:header_size])
    _refuse_error(header)
    arrays, datatypes = _read_outputs(header, TensorReader(view, header_size))
    return InferenceResult(
        arrays,
        datatypes,
        model_name=_text(header, "model_name"),
        model_version=_text(header, "model_version"),
        id=_text(header, "id"),
        parameters=_parameters(header),
    )


def _read_outputs(
    header: dict[str, Any], reader: TensorReader
) -> tuple[dict[str, NDArray[Any]], dict[str, str]]:
    entries = header.get("outputs")
    if not isinstance(entries, list):
        raise _fault("outputs must be a list", entries)
    arrays: dict[str, NDArray[Any]] = {}
    datatypes = {}
    for index, entry in enumerate(entries):
        name, datatype, array = reader.read(entry, index)
        if name in arrays:
            raise _fault("an output must be there once", name)
        arrays[name], datatypes[name] = array, datatype.datatype
    reader.finish()
    return arrays, datatypes


def _refuse_error(header: dict[str, Any]) -> None:
    if "error" in header:
        raise _fault("must hold outputs", f"the error {str(header['error'])[:200]}")


def _text(header: dict[str, Any], name: str) -> str:
    value = header.get(name, "")
    if not isinstance(value, str):
        raise _fault(f"{name} must be a string", value)
    return value


def _parameters(header: dict[str, Any]) -> dict[str, Any]:
    value = header.get("parameters", {})
    if not isinstance(value, dict):
        raise _fault("parameters must be a JSON object", value)
    return value


def _parse_classification(name: str, value: object) -> Classification:
    try:
        score, index, *label = value.decode().split(":", 2)  # type: ignore[attr-defined]  # refused below
        return Classification(float(score), int(index), label[0] if label else "")
    except (AttributeError, ValueError):
        raise ResponseDecodingError(
            f'output "{name}": a class must read value:index:label, got {value!r:.80}; '
            "ask for the output with RequestedOutput(name, class_count=...)"
        ) from None


def _fault(what: str, got: object) -> ResponseDecodingError:
    return ResponseDecodingError(f"response JSON: {what}, got {got!r:.200}; the response is corrupt")
