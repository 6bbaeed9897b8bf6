"""Checks the arguments of a client, and the inputs of a call against the model's configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

from constructs_triton_client.errors import ANY_SIZE, fits, reshape_hint
from constructs_triton_client.wire.tensors import resolve_datatype
from constructs_triton_core.datatypes import DATATYPES, FILE_HINT
from constructs_triton_core.errors import InvalidValueError, RequestEncodingError
from constructs_triton_core.keywords import check_known, keywords_of
from constructs_triton_core.spelling import did_you_mean, quoted

_STRINGS = "TYPE_STRING"
# Arguments of tritonclient, whose closest names have another meaning.
_FIXES = {
    "timeout": (
        "for a time limit, pass config=default_config(read_timeout_seconds=5, max_attempts=1) "
        "to TritonClient.for_endpoint"
    ),
    "model_name": (
        "remove it, or for a multi-model endpoint, pass target_model to TritonClient.for_endpoint"
    ),
}

# Members of InvokeEndpoint that the client writes itself.
_WRITTEN = {
    "Body": "pass the arrays as inputs",
    "ContentType": "pass binary=False for JSON, or send other bodies with boto3",
    "EndpointName": "create a client of that endpoint with TritonClient.for_endpoint",
}


class ModelInputLike(Protocol):
    """One input of a configuration.

    ``data_type`` is a name such as "TYPE_FP32", or its number in Triton's protobuf enum.
    """

    @property
    def name(self) -> str: ...
    @property
    def data_type(self) -> Any: ...
    @property
    def dims(self) -> Sequence[int]: ...


class ModelConfigLike(Protocol):
    """The part of a model's configuration that is checked;
    Triton's protobuf ``ModelConfig`` has it.
    """

    @property
    def input(self) -> Iterable[ModelInputLike]: ...
    @property
    def max_batch_size(self) -> int: ...


def check_config(model_config: ModelConfigLike | None) -> None:
    """Check that a configuration, if there is one, is not the path or the text of one."""
    if model_config is not None and not (
        hasattr(model_config, "input") and hasattr(model_config, "max_batch_size")
    ):
        raise InvalidValueError(
            f"model_config: must be a model configuration, got {type(model_config).__name__}; "
            'write ModelConfig.read("config.pbtxt") with the ModelConfig of '
            "triton_model_check.model_config"
        )


def check_call(
    options: Iterable[str], method: Callable[..., Any], *callees: Callable[..., Any]
) -> None:
    """Check the keywords of ``method``, which passes those of ``callees`` on.

    The parameters of InvokeEndpoint begin with a capital letter, so others are misspelled
    arguments.
    """
    what = f"TritonClient.{method.__name__}()"
    for name in options:
        if name in _WRITTEN:
            raise InvalidValueError(f"{name}: {what} sets it itself; {_WRITTEN[name]}")
        if not name[:1].islower():
            continue
        if name in _FIXES:
            raise TypeError(f"{what} got an unexpected keyword argument '{name}'; {_FIXES[name]}")

        known = list(keywords_of(method).names)
        for callee in callees:
            keywords = keywords_of(callee)
            known += (keyword for keyword in keywords.names if keyword not in keywords.positional)
        check_known([name], known, what)


def check_inputs(
    inputs: Mapping[str, NDArray[Any]],
    model_config: ModelConfigLike | None,
    datatypes: Mapping[str, str] | None = None,
) -> None:
    """Check names, datatypes, shapes and batch size of ``inputs`` against the model's
    configuration.

    With ``max_batch_size`` above zero the first axis of every input is the batch: it has the same
    size in all inputs and is at most ``max_batch_size``. ``datatypes`` is the argument of
    ``wire.encode_request``.
    """
    if model_config is None:
        return
    expected = {entry.name: entry for entry in model_config.input}
    _check_names(inputs, expected)
    for name, array in inputs.items():
        path = f'input "{name}"'
        _check_datatype(path, array, expected[name], (datatypes or {}).get(name))
        _check_shape(path, array.shape, expected[name], model_config.max_batch_size)
    if model_config.max_batch_size > 0:
        _check_batch(inputs, expected, model_config.max_batch_size)


def check_raw(data: NDArray[Any] | bytes, model_config: ModelConfigLike | None) -> None:
    """Check the values of a raw request against the model's configuration: its bytes have no data
    type, so that those of another type would be other values.
    """
    if model_config is None or isinstance(data, bytes):
        return
    entries = list(model_config.input)
    if len(entries) != 1:
        names = quoted(sorted(entry.name for entry in entries))
        raise InvalidValueError(
            f"infer_raw: is for models with one input, got a model with {names}; use infer"
        )
    _check_datatype("raw input", data, entries[0], None)


def _check_names(inputs: Mapping[str, Any], expected: Mapping[str, ModelInputLike]) -> None:
    """Raise ``RequestEncodingError`` unless the inputs are those of the model."""
    for name in inputs:
        if name not in expected:
            hint = did_you_mean(
                name, expected, f"the model's inputs are {quoted(sorted(expected))}"
            )
            raise RequestEncodingError(f'input "{name}": the model has no such input; {hint}')
    for name, entry in expected.items():
        if name not in inputs and not getattr(entry, "optional", False):
            raise RequestEncodingError(
                f'input "{name}": is required by the model, got {quoted(sorted(inputs))}; add it'
            )


def _check_datatype(
    path: str, array: NDArray[Any], entry: ModelInputLike, stated: str | None
) -> None:
    """Raise ``RequestEncodingError`` if an array has another data type than the input."""
    datatype = resolve_datatype(path, array, stated)
    wanted = _data_type_name(entry)
    if datatype.data_type != wanted:
        dtype = next((row.dtype for row in DATATYPES if row.data_type == wanted), wanted)
        hint = f"convert it with astype({dtype!r})"
        if wanted == _STRINGS:  # astype makes no strings of numbers
            example = f'numpy.full({list(array.shape)}, "...", dtype=object)'
            hint = f"send strings or bytes, for example {example}; {FILE_HINT}"
        raise RequestEncodingError(
            f"{path}: data_type must be {wanted}, "
            f"got {datatype.data_type} (dtype {array.dtype}); {hint}"
        )


def _data_type_name(entry: ModelInputLike) -> str:
    """Return the name of the data type; a protobuf message has its number,
    and its schema the name.
    """
    if isinstance(entry.data_type, str):
        return entry.data_type
    schema: Any = entry
    names = schema.DESCRIPTOR.fields_by_name["data_type"].enum_type.values_by_number
    return str(names[entry.data_type].name)


def _check_shape(
    path: str, shape: tuple[int, ...], entry: ModelInputLike, max_batch_size: int
) -> None:
    """Raise ``RequestEncodingError`` if the shape of an array does not fit the input."""
    dims = [ANY_SIZE, *entry.dims] if max_batch_size > 0 else list(entry.dims)
    if getattr(entry, "allow_ragged_batch", False):
        dims = dims[:1] + [ANY_SIZE] * (len(dims) - 1)
    if fits(shape, dims):
        return
    hint = reshape_hint(shape, dims)
    if max_batch_size > 0 and len(shape) == len(dims) - 1:
        hint = f"add the batch axis with array[None] (batches have up to {max_batch_size} elements)"
    raise RequestEncodingError(f"{path}: shape must fit {dims}, got {list(shape)}; {hint}")


def _check_batch(
    inputs: Mapping[str, NDArray[Any]], expected: Mapping[str, ModelInputLike], max_batch_size: int
) -> None:
    """Raise ``RequestEncodingError`` unless all inputs have one batch size, which is allowed."""
    sizes: dict[str, int] = {}
    for name, array in inputs.items():
        is_shape_tensor = getattr(expected[name], "is_shape_tensor", False)
        if not is_shape_tensor:
            sizes[name] = array.shape[0]

    for name, size in sizes.items():
        if not 1 <= size <= max_batch_size:
            raise RequestEncodingError(
                f'input "{name}": a batch must have 1 to {max_batch_size} elements, got {size}; '
                f"{'split it into several requests' if size else 'send at least one element'}"
            )
    if len(set(sizes.values())) > 1:
        raise RequestEncodingError(
            f"inputs: all must have the same batch size, got {sizes}; make their first axes equal"
        )
