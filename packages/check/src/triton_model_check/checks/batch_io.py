"""Batch inputs and outputs, which Triton computes from the batch.

Source: triton core, ValidateBatchIO.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from constructs_triton_core.spelling import did_you_mean, quoted
from triton_model_check.checks.model_under_check import ModelUnderCheck
from triton_model_check.checks.rules import Problem, rule
from triton_model_check.fixes.steps import meant, put, remove, safe
from triton_model_check.model_config.schema import data_type_name

_SOURCE = "triton core ValidateBatchIO"


@rule("tensor-batch-input", when=("batch_input",), source=_SOURCE)
def batch_input(model: ModelUnderCheck) -> Iterator[Problem]:
    """A batch input has one source, which is an input, and is TYPE_INT32 or TYPE_FP32.

    Triton computes the batch input from its source for each batch.
    """
    for index, batch in enumerate(model.config.batch_input):
        place = ("batch_input", index)
        if batch.kind not in range(6):
            hint = "write a kind of model_config.proto, for example BATCH_ELEMENT_COUNT"
            yield Problem(f"unknown batch input kind, got {batch.kind}", (*place, "kind"), hint)
        if batch.data_type not in (8, 11):
            message = "batch input data type must be TYPE_INT32 or TYPE_FP32"
            got = data_type_name(batch.data_type)
            yield Problem(
                f"{message}, got {got}", (*place, "data_type"), "write TYPE_INT32 or TYPE_FP32"
            )
        yield from _source_problems(model, batch, place)


@rule("tensor-batch-output", when=("batch_output",), source=_SOURCE)
def batch_output(model: ModelUnderCheck) -> Iterator[Problem]:
    """A batch output has one source, which is an input, and different targets, which are outputs.

    Triton splits the targets of a ragged batch among its requests, by the shape of the source.
    """
    outputs = [output.name for output in model.final_config.output]
    for index, batch in enumerate(model.config.batch_output):
        place = ("batch_output", index)
        if batch.kind != 0:
            hint = "write BATCH_SCATTER_WITH_INPUT_SHAPE"
            fix = safe(put("BATCH_SCATTER_WITH_INPUT_SHAPE"))
            yield Problem(
                f"unknown batch output kind, got {batch.kind}", (*place, "kind"), hint, fix=fix
            )
        yield from _source_problems(model, batch, place)
        if not model.completes_tensors:
            yield from _target_problems(list(batch.target_name), outputs, (*place, "target_name"))


def _target_problems(
    targets: list[str], outputs: list[str], place: tuple[str | int, ...]
) -> Iterator[Problem]:
    """Yield what is wrong with the outputs that a batch output names."""
    for target in dict.fromkeys(targets):
        if target not in outputs:
            free = [name for name in outputs if name not in targets]
            hint = did_you_mean(target, free, f"write one of the outputs: {quoted(outputs)}")
            fix = meant(hint, targets.index(target), instead_of=target)
            yield Problem(f'unknown target output name "{target}"', place, hint, fix=fix)
        elif targets.count(target) > 1:
            message = f'target output name "{target}" can only be specified once'
            again = [index for index, each in enumerate(targets) if each == target][1:]
            yield Problem(message, place, "remove the second one", fix=safe(*map(remove, again)))


def _source_problems(
    model: ModelUnderCheck, batch: Any, place: tuple[str | int, ...]
) -> Iterator[Problem]:
    """Yield what is wrong with the input that a batch input or output names."""
    if len(batch.source_input) != 1:
        message = f"{place[0]} expects 1 source input, got {len(batch.source_input)}"
        yield Problem(message, place, "write one source_input")
    inputs = [tensor.name for tensor in model.final_config.input]
    for index, source in enumerate(batch.source_input):
        if source not in inputs and not model.completes_tensors:
            hint = did_you_mean(source, inputs, f"write one of the inputs: {quoted(inputs)}")
            message = f'unknown source input name "{source}"'
            field = (*place, "source_input")
            yield Problem(message, field, hint, fix=meant(hint, index, instead_of=source))
