"""The server's direction: decodes requests and encodes responses, also for fake servers in tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from constructs_triton.errors import RequestEncodingError
from constructs_triton.wire.content_type import format_content_type, parse_header_size
from constructs_triton.wire.decoding_errors import build_decoding_error
from constructs_triton.wire.dtypes import Buffer
from constructs_triton.wire.header import read_header, read_list, read_object, read_string
from constructs_triton.wire.json_text import format_json
from constructs_triton.wire.tensors import TensorReader, encode_tensor, resolve_datatype

__all__ = ["EncodedResponse", "InferenceRequest", "decode_request", "encode_response"]


@dataclass(frozen=True, slots=True)
class InferenceRequest:
    """A decoded request: its inputs, the entries of its ``outputs``, and its ``parameters``.

    ``raw`` is the body of a request without JSON; its only input is described in the model's configuration.
    """

    inputs: Mapping[str, NDArray[Any]]
    outputs: Sequence[Mapping[str, Any]] = ()
    parameters: Mapping[str, Any] | None = None
    id: str = ""
    raw: bytes | None = None

    def is_binary_output(self, name: str) -> bool:
        """Whether the request asks for the output of that name in binary."""
        default = bool((self.parameters or {}).get("binary_data_output", False))
        for entry in self.outputs:
            if entry.get("name") == name:
                return bool(entry.get("parameters", {}).get("binary_data", default))
        return default


@dataclass(frozen=True, slots=True)
class EncodedResponse:
    """An encoded response."""

    body: bytes
    content_type: str


def decode_request(body: Buffer, content_type: str) -> InferenceRequest:
    """Decode the request in ``body``; ``content_type`` is that of the HTTP request.

    Raises:
        ResponseDecodingError: the request is malformed; the message names the input and the byte.
    """
    view = memoryview(body).cast("B")
    if parse_header_size(content_type) == 0:
        return InferenceRequest({}, raw=bytes(view))
    header, header_size = read_header(view, content_type)
    return InferenceRequest(
        _read_inputs(header, TensorReader(view, header_size, role="input")),
        _read_requested_outputs(header),
        read_object(header, "parameters"),
        read_string(header, "id"),
    )


def _read_inputs(header: dict[str, Any], reader: TensorReader) -> dict[str, NDArray[Any]]:
    inputs: dict[str, NDArray[Any]] = {}
    for index, entry in enumerate(read_list(header, "inputs")):
        name, _, array = reader.read(entry, index)
        if name in inputs:
            raise build_decoding_error(f'input "{name}"', "occurs more than once")
        inputs[name] = array
    reader.finish()
    return inputs


def _read_requested_outputs(header: dict[str, Any]) -> list[dict[str, Any]]:
    if "outputs" not in header:
        return []
    entries = read_list(header, "outputs")
    for index, entry in enumerate(entries):
        if not isinstance(entry, dict):
            raise build_decoding_error(f"output {index}", "must be a JSON object", f"{entry!r:.80}")
        read_object(entry, "parameters")
        if not read_string(entry, "name"):
            raise build_decoding_error(f"output {index}", "must have a name")
    return entries


def encode_response(
    outputs: Mapping[str, NDArray[Any]],
    *,
    request: InferenceRequest | None = None,
    model_name: str = "model",
    model_version: str = "1",
) -> EncodedResponse:
    """Encode ``outputs``, each in the format that ``request`` asks for (default: binary).

    Raises:
        RequestEncodingError: an array has no datatype, or a name is not a string.
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
        raise RequestEncodingError(
            f"response: a name cannot be written as JSON, got {error}; use strings"
        ) from None
    header_size = len(text) if payloads else None
    return EncodedResponse(b"".join([text, *payloads]), format_content_type(header_size))
