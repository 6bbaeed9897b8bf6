"""The server's direction: decodes requests and encodes responses,
also for fake servers in tests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from constructs_triton_client.wire.content_type import format_content_type, parse_header_size
from constructs_triton_client.wire.dtypes import Buffer
from constructs_triton_client.wire.json_text import (
    build_decoding_error,
    format_json,
    read_header,
    read_list,
    read_object,
    read_string,
)
from constructs_triton_client.wire.tensors import TensorReader, encode_tensor, resolve_datatype
from constructs_triton_core.errors import RequestEncodingError

__all__ = ["EncodedResponse", "InferenceRequest", "decode_request", "encode_response"]


@dataclass(frozen=True, slots=True)
class InferenceRequest:
    """A decoded request.

    Args:
        inputs: Input arrays by name; empty if the request is raw.
        outputs: Entries of the JSON member ``outputs``; empty if the request asks for all outputs.
        parameters: Parameters of the request; ``None`` if the request is raw.
        id: Id that the response must repeat; empty if there is none.
        raw: Body of a request without JSON, whose only input is described in the model's
            configuration; otherwise ``None``.
        datatypes: KServe v2 datatype of each input, such as ``"FP32"``.
    """

    inputs: Mapping[str, NDArray[Any]]
    outputs: Sequence[Mapping[str, Any]] = ()
    parameters: Mapping[str, Any] | None = None
    id: str = ""
    raw: bytes | None = None
    datatypes: Mapping[str, str] = field(default_factory=dict)

    def is_binary_output(self, name: str) -> bool:
        """Whether the request asks for the output of that name in binary.

        Args:
            name: Name of the output.
        """
        default = bool((self.parameters or {}).get("binary_data_output", False))
        for entry in self.outputs:
            if entry.get("name") == name:
                return bool(entry.get("parameters", {}).get("binary_data", default))
        return default


@dataclass(frozen=True, slots=True)
class EncodedResponse:
    """An encoded response.

    Args:
        body: The bytes to return.
        content_type: ``Content-Type`` of the HTTP response.
    """

    body: bytes
    content_type: str


def decode_request(body: Buffer, content_type: str) -> InferenceRequest:
    """Decode an inference request.

    Args:
        body: The whole request. Arrays of numbers are views of it.
        content_type: ``Content-Type`` of the HTTP request; it contains the size of the JSON at the
            start.

    Raises:
        ResponseDecodingError: the request is malformed; the message names the input and the byte.
    """
    view = memoryview(body).cast("B")
    if parse_header_size(content_type) == 0:
        return InferenceRequest({}, raw=bytes(view))
    header, header_size = read_header(view, content_type)
    reader = TensorReader(view, header_size, role="input")
    inputs, datatypes = reader.read_all(read_list(header, "inputs"))
    return InferenceRequest(
        inputs,
        _read_requested_outputs(header),
        read_object(header, "parameters"),
        read_string(header, "id"),
        datatypes=datatypes,
    )


def _read_requested_outputs(header: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the outputs that a request asks for."""
    entries = read_list(header, "outputs") if "outputs" in header else []
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
    """Encode an inference response.

    Args:
        outputs: Output arrays by name.
        request: The request to answer. It determines the id, and which outputs are binary. Default:
            no id, and all outputs in binary.
        model_name: Name of the model in the response.
        model_version: Version of the model in the response.

    Raises:
        RequestEncodingError: an array has no datatype, or a name is not a string.
    """
    header: dict[str, Any] = {"model_name": model_name, "model_version": model_version}
    if request and request.id:
        header["id"] = request.id
    entries = []
    payloads = []
    for name, array in outputs.items():
        path = f'output "{name}"'
        datatype = resolve_datatype(path, array)
        binary = request.is_binary_output(name) if request else True
        entry, payload = encode_tensor(path, name, array, datatype, binary=binary)
        entries.append(entry)
        payloads.extend([] if payload is None else [payload])
    try:
        text = format_json(header | {"outputs": entries})
    except (TypeError, ValueError) as error:
        raise RequestEncodingError(
            f"response: a name cannot be written as JSON, got {error}; use strings"
        ) from None
    return EncodedResponse(
        b"".join([text, *payloads]), format_content_type(len(text) if payloads else None)
    )
