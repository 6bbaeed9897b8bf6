"""The other direction: what a server, or a test double of one, reads and writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from constructs_triton.errors import RequestEncodingError, ResponseDecodingError
from constructs_triton.wire.content_type import format_content_type, parse_header_size
from constructs_triton.wire.dtypes import Buffer
from constructs_triton.wire.json_text import format_json, parse_json
from constructs_triton.wire.tensors import TensorReader, encode_tensor, resolve_datatype

__all__ = ["EncodedResponse", "InferenceRequest", "decode_request", "encode_response"]


@dataclass(frozen=True, slots=True)
class InferenceRequest:
    """A request read back: its inputs, the entries of its ``outputs``, and its ``parameters``.

    ``raw`` is the body of a request without JSON, whose one input only the model's configuration describes.
    """

    inputs: Mapping[str, NDArray[Any]]
    outputs: Sequence[Mapping[str, Any]] = ()
    parameters: Mapping[str, Any] | None = None
    id: str = ""
    raw: bytes | None = None

    def is_binary_output(self, name: str) -> bool:
        """Whether the request wants the output of that name in binary."""
        default = bool((self.parameters or {}).get("binary_data_output", False))
        for entry in self.outputs:
            if entry.get("name") == name:
                return bool(entry.get("parameters", {}).get("binary_data", default))
        return default


@dataclass(frozen=True, slots=True)
class EncodedResponse:
    """A response ready to be sent."""

    body: bytes
    content_type: str


def decode_request(body: Buffer, content_type: str) -> InferenceRequest:
    """The request in ``body``; faults are those of ``decode_response``, in the words of inputs."""
    view = memoryview(body).cast("B")
    header_size = parse_header_size(content_type)
    if header_size == 0:
        return InferenceRequest({}, raw=bytes(view))
    header_size = len(view) if header_size is None else header_size
    if header_size > len(view):
        raise ResponseDecodingError(
            f"content type: json-header-size must be within the body, got {header_size}, "
            f"the body has {len(view)}; "
            "the request was cut off"
        )
    header = parse_json(view[:header_size])
    entries = header.get("inputs")
    if not isinstance(entries, list):
        raise ResponseDecodingError(f"request JSON: inputs must be a list, got {entries!r:.80}; add them")
    reader = TensorReader(view, header_size, kind="input")
    inputs = {name: array for name, _, array in map(reader.read, entries, range(len(entries)))}
    reader.finish()
    return InferenceRequest(inputs, header.get("outputs", ()), header.get("parameters"), header.get("id", ""))


def encode_response(
    outputs: Mapping[str, NDArray[Any]],
    *,
    request: InferenceRequest | None = None,
    model_name: str = "model",
    model_version: str = "1",
) -> EncodedResponse:
    """The response that carries ``outputs``, each in the format that ``request`` asked for, else in binary.

    Raises ``RequestEncodingError`` where an array fits no datatype.
    """
    header: dict[str, Any] = {"model_name": model_name, "model_version": model_version}
    if request and request.id:
        header["id"] = request.id
    entries, payloads = [], []
    for name, array in outputs.items():
        path = f'output "{name}"'
        datatype = resolve_datatype(path, array)
        binary = request.is_binary_output(name) if request else True
        entry, payload = encode_tensor(path, name, array, datatype, binary=binary)
        entries.append(entry)
        payloads.extend([] if payload is None else [payload])
    return _assemble(header | {"outputs": entries}, payloads)


def _assemble(header: dict[str, Any], payloads: list[Buffer]) -> EncodedResponse:
    try:
        text = format_json(header)
    except (TypeError, ValueError) as error:
        raise RequestEncodingError(f"response: a name cannot be JSON, got {error}; use text") from None
    header_size = len(text) if payloads else None
    return EncodedResponse(b"".join([text, *payloads]), format_content_type(header_size))
