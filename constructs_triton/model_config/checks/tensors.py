"""Inputs and outputs of a model: names, types, dims, reshape, labels, batch inputs and outputs.

What is missing from an input or output is judged only where no backend completes it: the Python backend
without ``auto_complete_config`` and ensembles. ONNX Runtime, TensorRT, TensorFlow and others fill it in.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from constructs_triton.findings import Severity
from constructs_triton.model_config.model_under_check import ModelUnderCheck
from constructs_triton.model_config.rules import Problem, rule
from constructs_triton.spelling import did_you_mean, quoted

__all__: list[str] = []

_SHAPE = "triton core ValidateIOShape"
_OBSERVED = "observed with triton server 2.51"


def title(field: str, index: int, tensor: Any) -> str:
    """How a message names a tensor."""
    return f'{field} "{tensor.name}"' if tensor.name else f"{field} number {index + 1}"


@rule("tensor-name", source=_SHAPE, hint="give it the name that the model file uses")
def name(model: ModelUnderCheck) -> Iterator[Problem]:
    """Every input and output has a name.

    Any text will do: names such as ``input:0`` or ``268`` are common in exported models.
    """
    for field, index, tensor in model.tensors:
        if not tensor.name:
            yield Problem(f"{title(field, index, tensor)} has no name", (field, index))


@rule("tensor-data-type", source=_SHAPE, hint="add data_type, for example TYPE_FP32")
def data_type(model: ModelUnderCheck) -> Iterator[Problem]:
    """Every input and output has a data type, unless the backend fills it in.

    The Python backend does so only for models with ``auto_complete_config``; an ensemble never does.
    """
    if model.completes_tensors:
        return
    for field, index, tensor in model.tensors:
        if tensor.data_type == 0:
            yield Problem(f"{title(field, index, tensor)} has no data_type", (field, index))


@rule("tensor-dims", source=_SHAPE, hint="add dims, with -1 for what varies and without the batch axis")
def dims(model: ModelUnderCheck) -> Iterator[Problem]:
    """Every input and output has dims, unless the backend fills them in.

    The batch axis is left out where ``max_batch_size`` is at least 1.
    """
    if model.completes_tensors:
        return
    for field, index, tensor in model.tensors:
        if not tensor.dims:
            yield Problem(f"{title(field, index, tensor)} has no dims", (field, index))


@rule("tensor-dim-value", source=_SHAPE, hint="write a size of at least 1, or -1 for one that varies")
def dim_value(model: ModelUnderCheck) -> Iterator[Problem]:
    """Each dim is at least 1, or -1 where it varies.

    The same holds for the dims of ``reshape``.
    """
    for field, index, tensor in model.tensors:
        for where, values in ((("dims",), tensor.dims), (("reshape", "shape"), tensor.reshape.shape)):
            for position, value in enumerate(values):
                if value < 1 and value != -1:
                    message = f"{title(field, index, tensor)} has a dim of {value}"
                    yield Problem(message, (field, index, *where, position))


@rule("tensor-reshape", source=_SHAPE, hint="both must hold the same number of elements")
def reshape(model: ModelUnderCheck) -> Iterator[Problem]:
    """``reshape`` keeps the number of elements, between each pair of ``-1`` too.

    An empty shape is a tensor of one element, in a model that batches.
    """
    for field, index, tensor in model.tensors:
        if not tensor.HasField("reshape") or not tensor.dims:
            continue
        fault = reshape_fault(tensor.dims, tensor.reshape.shape, model.config.max_batch_size)
        if fault:
            message = f"{title(field, index, tensor)}: {fault}, got dims {list(tensor.dims)}"
            yield Problem(f"{message} and reshape {list(tensor.reshape.shape)}", (field, index, "reshape"))


def reshape_fault(before: Sequence[int], after: Sequence[int], max_batch_size: int) -> str | None:
    """Why one shape cannot become the other, or ``None``; dims that are no sizes are not judged."""
    if any(value < 1 and value != -1 for value in (*before, *after)):
        return None
    if not after:
        if max_batch_size == 0:
            return "an empty reshape needs a model that batches"
        return None if list(before) == [1] * len(before) else "an empty reshape needs dims of one element"
    trunks = _trunks(before), _trunks(after)
    if len(trunks[0]) != len(trunks[1]):
        return "reshape has another number of -1"
    return None if trunks[0] == trunks[1] else "reshape has another number of elements"


def _trunks(shape: Sequence[int]) -> list[int]:
    """Products of the sizes before, between and after the ``-1`` of a shape."""
    found: list[list[int]] = [[]]
    for value in shape:
        if value == -1:
            found.append([])
        else:
            found[-1].append(value)
    return [math.prod(trunk) for trunk in found]


@rule(
    "tensor-format",
    when=("input",),
    source="triton core ValidateModelInput",
    hint="leave format out, or give three dims",
)
def image_format(model: ModelUnderCheck) -> Iterator[Problem]:
    """An input with format NHWC or NCHW has three dims.

    Height, width and channels; the batch axis is not among them.
    """
    for index, tensor in enumerate(model.config.input):
        if tensor.format in (1, 2) and len(tensor.dims) != 3:
            message = f"{title('input', index, tensor)} has an image format and {len(tensor.dims)} dims"
            yield Problem(message, ("input", index, "format"))


@rule("tensor-tensorrt-only", source="triton core ValidateModelInput", hint="remove the field")
def tensorrt_only(model: ModelUnderCheck) -> Iterator[Problem]:
    """Shape tensors and non-linear formats are TensorRT's alone.

    Any other platform with ``is_shape_tensor`` or ``is_non_linear_format_io`` is refused.
    """
    is_tensorrt = model.may_be_tensorrt
    for field, index, tensor in model.tensors:
        for flag in ("is_shape_tensor", "is_non_linear_format_io"):
            if getattr(tensor, flag) and not is_tensorrt:
                yield Problem(f"{title(field, index, tensor)}: {flag} needs TensorRT", (field, index, flag))
        if tensor.is_non_linear_format_io and is_tensorrt and len(tensor.dims) != 3:
            message = f"{title(field, index, tensor)}: is_non_linear_format_io needs 3 dims"
            yield Problem(message, (field, index, "is_non_linear_format_io"), "give three dims")


@rule("tensor-duplicate-input", refuses=False, source=_OBSERVED, hint="rename one of them")
def duplicate_input(model: ModelUnderCheck) -> Iterator[Problem]:
    """A model declares each input once.

    Two of one name load, and then no request has the right number of inputs.
    """
    if model.folder.is_ensemble:
        return
    names = [tensor.name for tensor in model.config.input]
    for name, count in Counter(names).items():
        if name and count > 1:
            second = names.index(name, names.index(name) + 1)
            yield Problem(f'input "{name}" is declared {count} times', ("input", second))


@rule("tensor-duplicate-output", severity=Severity.WARNING, source=_OBSERVED, hint="rename one of them")
def duplicate_output(model: ModelUnderCheck) -> Iterator[Problem]:
    """A model declares each output once.

    Of two the last counts.
    """
    if model.folder.is_ensemble:
        return
    names = [tensor.name for tensor in model.config.output]
    for name, count in Counter(names).items():
        if name and count > 1:
            second = names.index(name, names.index(name) + 1)
            yield Problem(f'output "{name}" is declared {count} times', ("output", second))


@rule(
    "tensor-missing",
    severity=Severity.WARNING,
    source=_OBSERVED,
    hint="declare what is missing",
    needs_files=True,
)
def one_sided(model: ModelUnderCheck) -> Iterator[Problem]:
    """A Python model or an ensemble has both inputs and outputs.

    The server loads it without either.
    """
    config = model.config
    if model.completes_tensors or bool(config.input) == bool(config.output):
        return
    yield Problem(
        f"the model has no {'output' if config.input else 'input'}",
        ("input",) if config.input else ("output",),
    )


@rule(
    "tensor-data-type-number", refuses=False, source=_OBSERVED, hint="write the name, for example TYPE_FP32"
)
def enum_number(model: ModelUnderCheck) -> Iterator[Problem]:
    """A data type given by number is one of the schema's.

    Any number parses and loads; requests then cannot be formed.
    """
    for field, index, tensor in model.tensors:
        if tensor.data_type not in range(15):
            message = f"{title(field, index, tensor)}: no such data type, got {tensor.data_type}"
            yield Problem(message, (field, index, "data_type"))


@rule(
    "tensor-batch-axis",
    severity=Severity.WARNING,
    source="triton model configuration documentation: max_batch_size",
    hint="remove the first dim; Triton adds the batch axis",
)
def batch_axis(model: ModelUnderCheck) -> Iterator[Problem]:
    """The batch axis is not repeated in dims.

    Looked at only where every input and output starts with ``max_batch_size`` itself.
    """
    size = model.config.max_batch_size
    declared = [tensor for _, _, tensor in model.tensors]
    if (
        size > 1
        and len(declared) > 1
        and all(len(tensor.dims) > 1 and tensor.dims[0] == size for tensor in declared)
    ):
        field = "input" if model.config.input else "output"
        yield Problem(
            f"every tensor starts with a dim of {size}, which is max_batch_size", (field, 0, "dims")
        )


# --- labels ---------------------------------------------------------------------------------------------


@rule(
    "tensor-label-file",
    when=("output",),
    source="triton core LabelProvider",
    hint="add the file beside config.pbtxt",
    needs_files=True,
)
def label_file(model: ModelUnderCheck) -> Iterator[Problem]:
    """``label_filename`` names a file in the model's folder.

    It is looked for beside ``config.pbtxt``, not in a version directory.
    """
    for index, output in enumerate(model.config.output):
        file = output.label_filename
        if file and model.folder.size_of(*file.split("/")) is None:
            place = ("output", index, "label_filename")
            yield Problem(f'{title("output", index, output)}: no such label file, got "{file}"', place)


@rule(
    "tensor-label-outside",
    when=("output",),
    severity=Severity.WARNING,
    source="triton core Model::Init",
    hint="move the file into the model's folder",
)
def label_outside(model: ModelUnderCheck) -> Iterator[Problem]:
    """``label_filename`` stays inside the model's folder.

    Newer servers refuse a path with ``..`` that leaves it.
    """
    for index, output in enumerate(model.config.output):
        if ".." in output.label_filename.split("/"):
            place = ("output", index, "label_filename")
            yield Problem(f'label file leaves the model, got "{output.label_filename}"', place)


# --- batch inputs and outputs -----------------------------------------------------------------------------

_BATCH = "triton core ValidateBatchIO"


@rule("tensor-batch-input", when=("batch_input",), source=_BATCH)
def batch_input(model: ModelUnderCheck) -> Iterator[Problem]:
    """A batch input has one source among the inputs, and is TYPE_INT32 or TYPE_FP32.

    The source decides what is counted; an unknown one is refused.
    """
    for index, batch in enumerate(model.config.batch_input):
        place = ("batch_input", index)
        if batch.kind not in range(6):
            yield Problem(f"unknown kind of batch_input, got {batch.kind}", (*place, "kind"), "name a kind")
        if batch.data_type not in (8, 11):
            hint = "write TYPE_INT32 or TYPE_FP32"
            yield Problem("a batch_input is TYPE_INT32 or TYPE_FP32", (*place, "data_type"), hint)
        yield from _sources(model, batch, place)


@rule("tensor-batch-output", when=("batch_output",), source=_BATCH)
def batch_output(model: ModelUnderCheck) -> Iterator[Problem]:
    """A batch output has one source among the inputs and targets among the outputs, each once.

    It scatters what the model returned for a ragged batch.
    """
    outputs = [output.name for output in model.config.output]
    for index, batch in enumerate(model.config.batch_output):
        place = ("batch_output", index)
        if batch.kind != 0:
            yield Problem(f"unknown kind of batch_output, got {batch.kind}", (*place, "kind"), "name a kind")
        yield from _sources(model, batch, place)
        if model.completes_tensors:
            continue
        for target in dict.fromkeys(batch.target_name):
            if target not in outputs:
                hint = did_you_mean(target, outputs, f"the model has the outputs {quoted(outputs)}")
                yield Problem(f'no such output, got target "{target}"', (*place, "target_name"), hint)
            elif list(batch.target_name).count(target) > 1:
                yield Problem(f'target "{target}" is given twice', (*place, "target_name"), "keep one")


def _sources(model: ModelUnderCheck, batch: Any, place: tuple[str | int, ...]) -> Iterator[Problem]:
    if len(batch.source_input) != 1:
        message = f"{place[0]} needs one source_input, got {len(batch.source_input)}"
        yield Problem(message, place, "name one input")
    inputs = [tensor.name for tensor in model.config.input]
    for source in batch.source_input:
        if source not in inputs and not model.completes_tensors:
            hint = did_you_mean(source, inputs, f"the model has the inputs {quoted(inputs)}")
            yield Problem(f'no such input, got source_input "{source}"', (*place, "source_input"), hint)
