"""Encodes inference requests: arrays become one body."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from numpy.typing import NDArray

from constructs_triton_client.wire.content_type import format_content_type
from constructs_triton_client.wire.dtypes import Buffer
from constructs_triton_client.wire.json_text import format_json
from constructs_triton_client.wire.tensors import (
    describe_tensor,
    encode_payload,
    encode_tensor,
    resolve_datatype,
    view_bytes,
)
from constructs_triton_core.datatypes import by_datatype
from constructs_triton_core.errors import RequestEncodingError
from constructs_triton_core.spelling import quoted

Parameter = str | int | float | bool

# Request parameters that Triton reserves. tritonclient rejects the same names.
_RESERVED = frozenset(
    {
        "sequence_id",
        "sequence_start",
        "sequence_end",
        "priority",
        "timeout",
        "headers",
        "binary_data_output",
    }
)
_RESERVED_PREFIX = "triton_"


@dataclass(frozen=True, slots=True)
class EncodedRequest:
    """An encoded request.

    Args:
        body: The bytes to send.
        header_size: Bytes of JSON at the start of ``body``; ``None`` if all of it is JSON, 0 if
            there is no JSON.
    """

    body: bytes
    header_size: int | None

    @property
    def content_type(self) -> str:
        """The value of InvokeEndpoint's ``ContentType`` for ``body``."""
        return format_content_type(self.header_size)


@dataclass(frozen=True, slots=True)
class RequestedOutput:
    """An output to request.

    Args:
        name: Name of the output in the model's configuration.
        binary_data: Whether the response has the tensor in binary; otherwise it is in JSON.
        class_count: If above 0, request this number of the highest scores instead of the tensor.
            They are a BYTES output of ``value:index:label``; read it with
            ``InferenceResult.classifications``.
    """

    name: str
    binary_data: bool = True
    class_count: int = 0

    def to_entry(self) -> dict[str, Any]:
        """Return the entry in the request's ``outputs``."""
        classification = {"classification": self.class_count} if self.class_count else {}
        return {
            "name": self.name,
            "parameters": {**classification, "binary_data": self.binary_data},
        }


@dataclass(frozen=True, slots=True)
class SequencePosition:
    """The position of a request in a sequence of a stateful model.

    Args:
        id: Number or string that identifies the sequence; the same in all its requests.
        start: Whether this is the first request of the sequence.
        end: Whether this is the last request of the sequence.

    Raises:
        RequestEncodingError: ``id`` is 0 or empty.
    """

    id: int | str
    start: bool = False
    end: bool = False

    def __post_init__(self) -> None:
        if self.id in (0, ""):
            raise RequestEncodingError(
                "sequence id: must not be 0 or empty, which Triton reads as no sequence, got "
                f"{self.id!r}; use a positive number or a string"
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
    """Encode a KServe v2 inference request.

    An array that is C-contiguous and little-endian is copied only once, into the body.

    Args:
        inputs: Input arrays by name, with the batch axis first if the model has batching. Arrays of
            ``str`` and ``bytes`` become BYTES.
        outputs: Outputs to request, by name or as a ``RequestedOutput``. Default: all.
        binary: Whether inputs are sent in binary; otherwise they are in JSON.
        binary_output: The same for outputs. It does not apply to a ``RequestedOutput``. Default:
            the value of ``binary``.
        datatypes: Datatype by input name. Only needed for ``{"X": "BF16"}``, which declares a
            ``uint16`` array as bit patterns of bfloat16. Default: the datatype of each array's
            dtype.
        id: Id that the response repeats. Default: none.
        sequence: Position in a sequence, for a stateful model. Default: no sequence.
        priority: Priority level in the dynamic batcher: 1 is the highest, 0 the model's default
            level.
        timeout_microseconds: Longest time in the dynamic batcher's queue. The model must set
            ``allow_timeout_override``. Default: the model's timeout.
        parameters: Further parameters of the request, which the model can read. Names that Triton
            reserves are an error.

    Raises:
        RequestEncodingError: an argument cannot be encoded; the message names the input and the
            element.
    """
    binary_output = binary if binary_output is None else binary_output
    entries, payloads = _encode_inputs(inputs, binary, datatypes or {})
    header = {"id": _format(id)} if id else {}
    header["inputs"] = _list(entries)
    if outputs:
        header["outputs"] = _format_outputs(outputs, binary_output)
    reserved = _triton_parameters(
        sequence, priority, timeout_microseconds, binary_output and not outputs
    )
    if values := reserved | _checked(parameters or {}):
        header["parameters"] = _format(values)
    text = b"{%b}" % b",".join(
        [b'"%b":%b' % (name.encode(), value) for name, value in header.items()]
    )
    if not payloads:
        return EncodedRequest(text, None)
    return EncodedRequest(b"".join([text, *payloads]), len(text))


def encode_raw_request(array: NDArray[Any] | bytes) -> EncodedRequest:
    """Encode the bytes of a single input without JSON.

    Triton reads the input's name, datatype and shape from the model's configuration, so at most one
    dimension may be variable. For a BYTES input the whole body is one element.

    Args:
        array: The values of the model's only input, or their bytes in row-major, little-endian
            order.

    Raises:
        RequestEncodingError: ``array`` is neither ``bytes`` nor an array of numbers.
    """
    if isinstance(array, bytes):
        return EncodedRequest(array, 0)
    datatype = resolve_datatype("raw input", array)
    if datatype.item_size is None:
        raise RequestEncodingError(
            "raw input: must be bytes or an array of numbers, "
            f"got dtype {array.dtype}; pass a bytes object"
        )
    return EncodedRequest(bytes(view_bytes(array)), 0)


def _encode_inputs(
    inputs: Mapping[str, NDArray[Any]], binary: bool, datatypes: Mapping[str, str]
) -> tuple[list[bytes], list[Buffer]]:
    """Return the entry of each input in the header, and the data of those that are binary."""
    # The check of a class first: that of an ABC is slower.
    if not isinstance(inputs, dict) and not isinstance(inputs, Mapping):
        raise _inputs_error(inputs)
    tensors: Any = inputs.get("inputs")
    if isinstance(tensors, list) and set(map(type, tensors)) == {dict}:
        raise _inputs_error(inputs, ", ".join(map(_array_of, tensors)))
    if unknown := sorted(set(datatypes) - set(inputs)):
        raise RequestEncodingError(
            f'datatypes["{unknown[0]}"]: there is no such input, '
            f"got {quoted(sorted(inputs))}; remove it"
        )
    entries = []
    payloads = []
    for name, array in inputs.items():
        if not isinstance(name, str):
            raise _inputs_error(inputs)
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


def _inputs_error(got: object, example: str = '"INPUT": array') -> RequestEncodingError:
    return RequestEncodingError(
        f"inputs: must map names to arrays, got {got!r:.80}; pass a dict such as {{{example}}}, "
        "and to infer_many a list of such dicts"
    )


def _array_of(entry: dict[str, Any]) -> str:
    """Return how a tensor of KServe's JSON is written as an array,
    with its data if they are few.
    """
    dtype = getattr(by_datatype(str(entry.get("datatype"))), "dtype", "float32")
    data = repr(entry.get("data"))
    data = data if len(data) < 80 else "DATA"
    return f'"{entry.get("name")}": numpy.array({data}, "{dtype}").reshape({entry.get("shape")})'


# Most callers send the same names, shapes and datatypes again and again, so their JSON is cached.
@lru_cache(maxsize=1024, typed=True)
def _format_input(name: str, shape: tuple[int, ...], datatype: str, binary_data_size: int) -> bytes:
    return _format(describe_tensor(name, shape, datatype, binary_data_size))


@lru_cache(maxsize=1024, typed=True)
def _format_output(output: str | RequestedOutput, binary_data: bool) -> bytes:
    requested = RequestedOutput(output, binary_data) if isinstance(output, str) else output
    return _format(requested.to_entry())


def _format_outputs(outputs: Sequence[str | RequestedOutput], binary_data: bool) -> bytes:
    """Return the requested outputs as JSON."""
    try:
        # A string is also a sequence of strings, of one character each.
        if not isinstance(outputs, str):
            return _list([_format_output(output, binary_data) for output in outputs])
    except (TypeError, AttributeError):  # not a name; checking each one first would be slower
        pass
    raise RequestEncodingError(
        "outputs: must be a list of names or RequestedOutput, "
        f'got {outputs!r:.80}; write ["OUTPUT"]'
    )


def _format(value: object) -> bytes:
    """Return a value as JSON."""
    try:
        return format_json(value)
    except (TypeError, ValueError) as error:
        raise RequestEncodingError(
            f"request: a name, id or parameter cannot be written as JSON, got {error}; "
            "use str, int, bool or finite float"
        ) from None


def _list(values: Sequence[bytes]) -> bytes:
    return b"[%b]" % b",".join(values)


def _triton_parameters(
    sequence: SequencePosition | None,
    priority: int,
    timeout_microseconds: int | None,
    binary_output: bool,
) -> dict[str, Parameter]:
    """Return the request parameters that Triton defines,
    in the order in which tritonclient writes them.
    """
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
    """Return the parameters of a request, if none has a reserved name or another type."""
    for name, value in parameters.items():
        if not isinstance(name, str) or not isinstance(value, Parameter):
            raise RequestEncodingError(
                f"parameters: a name must be str and its value str, int, bool or float, "
                f"got {name!r:.40} with {value!r:.40}; convert it, or pass it as an input"
            )
        if name in _RESERVED or name.startswith(_RESERVED_PREFIX):
            raise RequestEncodingError(
                f"parameters: {name!r} is reserved by Triton; "
                "use the argument for it, or another name"
            )
    return dict(parameters)
