"""Warmup requests. Source: triton core, TritonModelInstance::GenerateWarmupData."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from constructs_triton_core.spelling import quoted
from triton_model_check.checks.model_under_check import ModelUnderCheck
from triton_model_check.checks.rules import Problem, rule, warning
from triton_model_check.checks.state import file_problems
from triton_model_check.fixes.steps import put, unsafe
from triton_model_check.model_config.schema import data_type_name

_SOURCE = "triton core GenerateWarmupData"
_Sample = tuple[tuple[str | int, ...], str, Any]


@rule("warmup-data", when=("model_warmup",), source=_SOURCE)
def data(model: ModelUnderCheck) -> Iterator[Problem]:
    """Every input of a warmup sample has fixed dims and a source of data.

    The source is ``zero_data``, ``random_data`` or ``input_data_file``. Triton skips samples with
    ``batch_size`` 0.
    """
    for place, name, value in _inputs(model):
        if any(dim < 0 for dim in value.dims):
            message = (
                "warmup setting expects all variable-size dimensions "
                f'are specified for input "{name}"'
            )
            yield Problem(
                f"{message}, got {list(value.dims)}", place, "write a size for each -1 in dims"
            )
        if value.WhichOneof("input_data_type") is None:
            message = f'warmup setting expects input "{name}" to have input_data_type set'
            fix = unsafe(put("true", "value", "zero_data"))
            yield Problem(message, place, "add zero_data: true or random_data: true", fix=fix)


@rule("warmup-batch-size", when=("model_warmup",), source="triton core InferenceRequest::Normalize")
def batch_size(model: ModelUnderCheck) -> Iterator[Problem]:
    """A warmup sample has a ``batch_size`` of ``max_batch_size`` or less,
    or of 1 without batching.
    """
    most = model.final_config.max_batch_size
    if most == 0 and model.completes_tensors:
        return  # the backend may set it
    for index, sample in enumerate(model.config.model_warmup):
        if sample.batch_size > max(most, 1):
            message = f"batch size {sample.batch_size} of a warmup sample, max allowed is {most}"
            place = ("model_warmup", index, "batch_size")
            fix = unsafe(put(str(max(most, 1))))
            yield Problem(message, place, f"write batch_size: {max(most, 1)}", fix=fix)


@rule("warmup-file", when=("model_warmup",), source=_SOURCE, needs_files=True)
def data_file(model: ModelUnderCheck) -> Iterator[Problem]:
    """The data file of a warmup sample is in the folder ``warmup``, and is large enough.

    The folder is in the model's folder, beside ``config.pbtxt``.
    """
    for place, _, value in _inputs(model):
        if value.WhichOneof("input_data_type") == "input_data_file":
            field = (*place, "value", "input_data_file")
            yield from file_problems(model, "warmup", value.input_data_file, value, field)


@rule("warmup-input", when=("model_warmup",), source=_SOURCE)
def required_inputs(model: ModelUnderCheck) -> Iterator[Problem]:
    """A warmup sample has every required input, with the input's data type and dims.

    It may have other inputs too, which is how controls and states are set.
    """
    if model.completes_tensors:
        return
    declared = {tensor.name: tensor for tensor in model.final_config.input}
    for index, sample in enumerate(model.config.model_warmup):
        if sample.batch_size == 0:
            continue
        missing = [
            name
            for name, tensor in declared.items()
            if not tensor.optional and name not in sample.inputs
        ]
        if missing:
            message = f'warmup sample "{sample.name}" has no data for the inputs {quoted(missing)}'
            yield Problem(message, ("model_warmup", index), f"add inputs for {quoted(missing)}")
    for place, name, value in _inputs(model):
        tensor = declared.get(name)
        if tensor is not None:
            yield from _mismatch(place, name, value, tensor)


@warning("warmup-control", when=("model_warmup",), source=_SOURCE)
def control_inputs(model: ModelUnderCheck) -> Iterator[Problem]:
    """A warmup sample of a model of sequences has the control inputs that the model reads.

    The scheduler adds them to requests, but not to warmup samples. A model that reads one that is
    absent fails to load.
    """
    controls = [each.name for each in model.config.sequence_batching.control_input]
    for index, sample in enumerate(model.config.model_warmup):
        missing = [name for name in controls if name not in sample.inputs]
        if sample.batch_size and missing:
            yield Problem(
                f'warmup sample "{sample.name}" has no data for the control inputs '
                f"{quoted(missing)}, which the scheduler does not add to it",
                ("model_warmup", index),
                f"add inputs for {quoted(missing)}, of the data type and value of a first request",
            )


def _mismatch(
    place: tuple[str | int, ...], name: str, value: Any, tensor: Any
) -> Iterator[Problem]:
    """Yield how the value of an input in a warmup sample differs from the input of the model."""
    if value.data_type != tensor.data_type:
        wanted = data_type_name(tensor.data_type)
        got = data_type_name(value.data_type)
        message = f'unexpected data type for warmup input "{name}", expected {wanted}, got {got}'
        field = (*place, "value", "data_type")
        yield Problem(message, field, f"write data_type: {wanted}", fix=unsafe(put(wanted)))

    dims = list(value.dims)
    expected = list(tensor.dims)
    has_variable_size = any(size < 0 for size in dims)  # warmup-data reports it
    if has_variable_size or _fits(dims, expected):
        return
    message = f'unexpected shape for warmup input "{name}", expected {expected}, got {dims}'
    fix = unsafe(put(f"{expected}")) if expected and -1 not in expected else None
    hint = "write the dims of the input, without the batch axis"
    yield Problem(message, (*place, "value", "dims"), hint, fix=fix)


def _fits(dims: list[int], expected: list[int]) -> bool:
    """Whether the dims of a sample are those of the input, in which -1 is any size."""
    if len(dims) != len(expected):
        return False
    return all(wanted in (-1, size) for size, wanted in zip(dims, expected, strict=True))


def _inputs(model: ModelUnderCheck) -> Iterator[_Sample]:
    for index, sample in enumerate(model.config.model_warmup):
        if sample.batch_size:
            for name in sorted(sample.inputs):
                yield ("model_warmup", index, "inputs", name), name, sample.inputs[name]
