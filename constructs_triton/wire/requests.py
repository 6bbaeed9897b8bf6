"""Inference requests: arrays in, one body out, and back again for those who play the server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from numpy.typing import NDArray

from constructs_triton.errors import RequestEncodingError
from constructs_triton.wire.content_type import format_content_type
from constructs_triton.wire.dtypes import Buffer
from constructs_triton.wire.json_text import format_json
from constructs_triton.wire.tensors import (
    describe_tensor,
    encode_payload,
    encode_tensor,
    resolve_datatype,
    view_bytes,
)

__all__ = [
    "EncodedRequest",
    "Parameter",
    "RequestedOutput",
    "SequencePosition",
    "encode_raw_request",
    "encode_request",
]

Parameter = str | int | float | bool

# What Triton keeps for itself among request parameters: tritonclient refuses the same.
_RESERVED = frozenset(
    {"sequence_id", "sequence_start", "sequence_end", "priority", "timeout", "headers", "binary_data_output"}
)
_RESERVED_PREFIX = "triton_"


@dataclass(frozen=True, slots=True)
class EncodedRequest:
    """A request ready to be sent; ``header_size`` is the bytes of JSON in front, ``None`` if all is JSON."""

    body: bytes
    header_size: int | None

    @property
    def content_type(self) -> str:
        """What InvokeEndpoint's ``ContentType`` must say of ``body``."""
        return format_content_type(self.header_size)


@dataclass(frozen=True, slots=True)
class RequestedOutput:
    """One output to ask for.

    ``binary_data=False`` asks for JSON. ``class_count`` above zero asks for the best classes instead of
    the tensor: a BYTES output of ``value:index:label``, see ``InferenceResult.classifications``.
    """

    name: str
    binary_data: bool = True
    class_count: int = 0

    def to_entry(self) -> dict[str, Any]:
        """The entry of the request's ``outputs``."""
        classification = {"classification": self.class_count} if self.class_count else {}
        return {"name": self.name, "parameters": {**classification, "binary_data": self.binary_data}}


@dataclass(frozen=True, slots=True)
class SequencePosition:
    """Where a request stands in a sequence that a stateful model follows; ``id`` is not 0 and not empty."""

    id: int | str
    start: bool = False
    end: bool = False

    def __post_init__(self) -> None:
        if self.id in (0, ""):
            raise RequestEncodingError(
                f"sequence id: must not be 0 or empty, got {self.id!r}; triton reads that as no sequence"
            )


def encode_request(
    inputs: Mapping[str, NDArray[Any]],
    *,
    outputs: Sequence[str | RequestedOutput] | None = None,
    binary: bool = True,
    binary_output: bool | None = None,
    datatypes: Mapping[str, str] | None = None,
    id: str = "",
    sequence: SequencePosition | None = None,
    priority: int = 0,
    timeout_microseconds: int | None = None,
    parameters: Mapping[str, Parameter] | None = None,
) -> EncodedRequest:
    """One KServe v2 inference request.

    ``inputs`` maps names to arrays of any layout; those that are C-contiguous and little-endian are copied
    once, into the body. ``str`` and ``bytes`` arrays become BYTES. ``datatypes={"X": "BF16"}`` marks a
    ``uint16`` input as bfloat16 bit patterns. ``binary=False`` writes JSON; ``binary_output`` (as ``binary``
    unless given) is how outputs named by ``str``, or all outputs if none is named, are to come back.

    ``id`` comes back in the answer. ``priority`` 0 is the model's default level, 1 the highest.
    ``timeout_microseconds`` bounds the time in the dynamic batcher's queue. ``parameters`` reach the model.

    Raises ``RequestEncodingError`` naming the input and the element.
    """
    binary_output = binary if binary_output is None else binary_output
    entries, payloads = _encode_inputs(inputs, binary, datatypes or {})
    header = {"id": _format(id)} if id else {}
    header["inputs"] = _list(entries)
    if outputs:
        header["outputs"] = _format_outputs(outputs, binary_output)
    own = _own_parameters(sequence, priority, timeout_microseconds, binary_output and not outputs)
    if values := own | _checked(parameters or {}):
        header["parameters"] = _format(values)
    text = _object(header)
    if not payloads:
        return EncodedRequest(text, None)
    return EncodedRequest(b"".join([text, *payloads]), len(text))


def encode_raw_request(array: NDArray[Any] | bytes) -> EncodedRequest:
    """A request without any JSON, for a model of one input: its bytes alone.

    Triton takes the input's name, datatype and shape from the model's configuration, which so must leave
    at most one dimension open; for a BYTES input the whole body is its one element.
    """
    if isinstance(array, bytes):
        return EncodedRequest(array, 0)
    datatype = resolve_datatype("raw input", array)
    if datatype.item_size is None:
        raise RequestEncodingError(
            f"raw input: must be an array of numbers or one bytes object, got dtype {array.dtype}; "
            "pass the bytes themselves"
        )
    return EncodedRequest(bytes(view_bytes(array)), 0)


def _encode_inputs(
    inputs: Mapping[str, NDArray[Any]], binary: bool, datatypes: Mapping[str, str]
) -> tuple[list[bytes], list[Buffer]]:
    if not isinstance(inputs, dict) and not isinstance(inputs, Mapping):  # a look at an ABC takes longer
        raise _no_inputs(inputs)
    if stray := sorted(set(datatypes) - set(inputs)):
        raise RequestEncodingError(
            f'datatypes["{stray[0]}"]: no such input, got inputs {sorted(inputs)}; remove it'
        )
    entries, payloads = [], []
    for name, array in inputs.items():
        if not isinstance(name, str):
            raise _no_inputs(inputs)
        path = f'input "{name}"'
        datatype = resolve_datatype(path, array, datatypes.get(name))
        if binary:
            payload, size = encode_payload(path, array, datatype)
            entries.append(_format_input(name, array.shape, datatype.datatype, size))
            payloads.append(payload)
        else:
            entry, _ = encode_tensor(path, name, array, datatype, binary=False)
            entries.append(_format(entry))
    return entries, payloads


def _no_inputs(got: object) -> RequestEncodingError:
    return RequestEncodingError(
        f'inputs: must map names to arrays, got {got!r:.80}; write it as {{"INPUT": array}}'
    )


# A caller's tensors mostly keep their names, shapes and datatypes: their JSON is written once.
@lru_cache(maxsize=1024, typed=True)
def _format_input(name: str, shape: tuple[int, ...], datatype: str, binary_data_size: int) -> bytes:
    return _format(describe_tensor(name, shape, datatype, binary_data_size))


@lru_cache(maxsize=1024, typed=True)
def _format_output(output: str | RequestedOutput, binary_data: bool) -> bytes:
    requested = RequestedOutput(output, binary_data) if isinstance(output, str) else output
    return _format(requested.to_entry())


def _format_outputs(outputs: Sequence[str | RequestedOutput], binary_data: bool) -> bytes:
    try:
        # A name alone is a sequence too, of names of one letter each.
        if not isinstance(outputs, str):
            return _list([_format_output(output, binary_data) for output in outputs])
    except (TypeError, AttributeError):  # what is no name is found out where it costs nothing else
        pass
    raise RequestEncodingError(
        f'outputs: must be a list of names or RequestedOutput, got {outputs!r:.80}; write it as ["OUTPUT"]'
    )


def _format(value: object) -> bytes:
    try:
        return format_json(value)
    except (TypeError, ValueError) as error:
        raise RequestEncodingError(
            f"request: a name, id or parameter cannot be JSON, got {error}; "
            "parameters are str, int, bool or finite float"
        ) from None


def _list(values: Sequence[bytes]) -> bytes:
    return b"[%b]" % b",".join(values)


def _object(members: Mapping[str, bytes]) -> bytes:
    return b"{%b}" % b",".join([b'"%b":%b' % (name.encode(), value) for name, value in members.items()])


def _own_parameters(
    sequence: SequencePosition | None, priority: int, timeout_microseconds: int | None, binary_output: bool
) -> dict[str, Parameter]:
    """Triton's own among the request's ``parameters``, in the order in which tritonclient writes them."""
    values: dict[str, Parameter] = {}
    if sequence:
        values |= {
            "sequence_id": sequence.id,
            "sequence_start": sequence.start,
            "sequence_end": sequence.end,
        }
    if priority:
        values["priority"] = priority
    if timeout_microseconds is not None:
        values["timeout"] = timeout_microseconds
    if binary_output:
        values["binary_data_output"] = True
    return values


def _checked(parameters: Mapping[str, Parameter]) -> dict[str, Parameter]:
    for name, value in parameters.items():
        if not isinstance(name, str) or not isinstance(value, Parameter):
            raise RequestEncodingError(
                f"parameters: a name must be str and its value str, int, bool or float, "
                f"got {name!r:.40} with {value!r:.40}; convert it, or make it an input"
            )
        if name in _RESERVED or name.startswith(_RESERVED_PREFIX):
            raise RequestEncodingError(
                f"parameters: a name must not be one of triton's own, got {name!r}; "
                "use the argument of that meaning, or rename it"
            )
    return dict(parameters)
