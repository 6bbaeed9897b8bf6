"""Infers the fields of an ensemble from its steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.spelling import quoted
from triton_model_check.model_config.builder.tensors import ModelInput, ModelOutput
from triton_model_check.model_config.builder.wiring import PlannedStep, Wiring
from triton_model_check.model_config.schema import data_type_name

Declared = TypeVar("Declared", ModelInput, ModelOutput)


def batch_size_of(name: str, given: int | None, steps: Sequence[PlannedStep]) -> int:
    """Return the ``max_batch_size`` of an ensemble: the given one, or the smallest of its models."""
    if given is not None:
        return given
    sizes = {step.model_name: step.max_batch_size for step in steps if step.max_batch_size is not None}
    batching = [model for model, size in sizes.items() if size]
    if batching and len(batching) < len(sizes):
        others = [model for model in sizes if model not in batching]
        raise InvalidValueError(
            f'ensemble "{name}": max_batch_size cannot be inferred, got {quoted(batching)} with batching and '
            f'{quoted(others)} without; write Ensemble("{name}", max_batch_size=...)'
        )
    return min(sizes.values(), default=0)


def inferred(
    tensor: Declared, kind: str, steps: Sequence[PlannedStep], wiring: Wiring, max_batch_size: int
) -> Declared:
    """Return an input or output (``kind``) of the ensemble, completed from the steps that use it."""
    ends = wiring.readers(tensor.name) if kind == "input" else wiring.writers(tensor.name)
    found = [(steps[end.step], steps[end.step].tensors(kind).get(end.name)) for end in ends]
    known = [(step, declared) for step, declared in found if declared is not None]
    data_type, dims = tensor.data_type, tuple(tensor.dims)
    if data_type == "TYPE_INVALID" and known:
        data_type = data_type_name(known[0][1].data_type)  # type: ignore[assignment]
    if not dims:
        dims = _merged([_dims(step, declared, max_batch_size) for step, declared in known])
    return replace(tensor, data_type=data_type, dims=dims)


def _dims(step: PlannedStep, declared: Any, max_batch_size: int) -> tuple[int, ...]:
    """The dims of a step as the ensemble writes them; without batching they include the batch axis."""
    full = (-1, *declared.dims) if step.max_batch_size else tuple(declared.dims)
    return full[1:] if max_batch_size else full


def _merged(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The narrowest shape that all agree with, or else the first, which a rule reports."""
    first = shapes[0] if shapes else ()
    alike = [shape for shape in shapes if len(shape) == len(first)]
    return tuple(next((size for size in sizes if size != -1), -1) for sizes in zip(*alike, strict=True))
