"""Warm-up requests. Source: triton core, TritonModelInstance::GenerateWarmupData."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from constructs_triton.model_config.checks.state import file_fault
from constructs_triton.model_config.model_under_check import ModelUnderCheck
from constructs_triton.model_config.rules import Problem, rule
from constructs_triton.model_config.schema import data_type_name
from constructs_triton.spelling import quoted

__all__: list[str] = []

_SOURCE = "triton core GenerateWarmupData"
_Sample = tuple[tuple[str | int, ...], str, Any]


@rule("warmup-data", when=("model_warmup",), source=_SOURCE)
def data(model: ModelUnderCheck) -> Iterator[Problem]:
    """Every input of a warm-up has fixed dims and says where its data comes from.

    ``zero_data``, ``random_data`` or ``input_data_file``; a sample of ``batch_size`` 0 is skipped.
    """
    for place, name, value in _inputs(model):
        if any(dim < 0 for dim in value.dims):
            yield Problem(f'warm-up of "{name}" has a dim of -1', place, "give every dim a size")
        if value.WhichOneof("input_data_type") is None:
            yield Problem(
                f'warm-up of "{name}" has no data', place, "write zero_data: true or random_data: true"
            )


@rule("warmup-file", when=("model_warmup",), source=_SOURCE, needs_files=True)
def data_file(model: ModelUnderCheck) -> Iterator[Problem]:
    """The data file of a warm-up lies in the folder ``warmup`` and is long enough.

    The folder stands beside ``config.pbtxt``.
    """
    for place, _, value in _inputs(model):
        if value.WhichOneof("input_data_type") == "input_data_file":
            fault = file_fault(model, "warmup", value.input_data_file, value)
            if fault:
                yield Problem(fault[0], (*place, "value", "input_data_file"), fault[1])


@rule("warmup-input", when=("model_warmup",), source=_SOURCE)
def required_inputs(model: ModelUnderCheck) -> Iterator[Problem]:
    """A warm-up gives every input that is not optional, with the input's type and shape.

    Inputs that the model does not declare are let through: controls and states are given that way.
    """
    if model.completes_tensors:
        return
    declared = {tensor.name: tensor for tensor in model.config.input}
    for index, sample in enumerate(model.config.model_warmup):
        if sample.batch_size == 0:
            continue
        missing = [
            name for name, tensor in declared.items() if not tensor.optional and name not in sample.inputs
        ]
        if missing:
            message = f'warm-up "{sample.name}" lacks the inputs {quoted(missing)}'
            yield Problem(message, ("model_warmup", index), "give all of them")
    for place, name, value in _inputs(model):
        tensor = declared.get(name)
        if tensor is not None:
            yield from _mismatch(place, name, value, tensor)


def _mismatch(place: tuple[str | int, ...], name: str, value: Any, tensor: Any) -> Iterator[Problem]:
    if value.data_type != tensor.data_type:
        wanted = data_type_name(tensor.data_type)
        message = f'warm-up of "{name}" must be {wanted}, got {data_type_name(value.data_type)}'
        yield Problem(message, (*place, "value", "data_type"), f"write {wanted}")
    fits = len(value.dims) == len(tensor.dims) and all(
        there in (-1, given) for given, there in zip(value.dims, tensor.dims, strict=True)
    )
    if not fits and not any(dim < 0 for dim in value.dims):
        message = f'warm-up of "{name}" must have dims {list(tensor.dims)}, got {list(value.dims)}'
        yield Problem(message, (*place, "value", "dims"), "give the input's dims, without the batch axis")


def _inputs(model: ModelUnderCheck) -> Iterator[_Sample]:
    for index, sample in enumerate(model.config.model_warmup):
        if sample.batch_size:
            for name in sorted(sample.inputs):
                yield ("model_warmup", index, "inputs", name), name, sample.inputs[name]
