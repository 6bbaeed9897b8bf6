"""Inputs and outputs of a model: names, types, dims, reshape and labels.

A missing field of an input or output is an error only if no backend completes it: for ensembles,
and for Python models without ``auto_complete_config``. ONNX Runtime, TensorRT, TensorFlow and
others complete it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from triton_model_check.checks.model_under_check import ModelUnderCheck
from triton_model_check.checks.rules import Problem, rule, warning
from triton_model_check.fixes.steps import put, remove, safe, unsafe
from triton_model_check.untrusted.budget import count_elements

_SHAPE = "triton core ValidateIOShape"
_OBSERVED = "observed with triton server 2.51"
_EMPTY_RESHAPE = "cannot have empty reshape for non-batching model"


def title(field: str, index: int, tensor: Any) -> str:
    """Return the name of a tensor for messages."""
    return f'{field} "{tensor.name}"' if tensor.name else f"{field} number {index + 1}"


def _without(model: ModelUnderCheck, member: str) -> Iterator[Problem]:
    """Yield the tensors that lack a member."""
    for field, index, tensor in model.tensors:
        if not getattr(tensor, member):
            yield Problem(f"{title(field, index, tensor)} must specify '{member}'", (field, index))


def _incomplete(model: ModelUnderCheck, member: str) -> Iterator[Problem]:
    """Yield the tensors that lack a member which the backend does not complete."""
    if not model.completes_tensors:
        yield from _without(model, member)


@rule("tensor-name", source=_SHAPE, hint="add name, with the name that the model file uses")
def tensor_name(model: ModelUnderCheck) -> Iterator[Problem]:
    """Every input and output has a name.

    Any string is allowed: exported models often have names such as ``input:0`` or ``268``.
    """
    return _without(model, "name")


@rule("tensor-data-type", source=_SHAPE, hint="add data_type, for example TYPE_FP32")
def tensor_data_type(model: ModelUnderCheck) -> Iterator[Problem]:
    """Every input and output has a data type, unless the backend completes it.

    The Python backend completes it only for a model with ``auto_complete_config``. Ensembles are
    never completed.
    """
    return _incomplete(model, "data_type")


@rule(
    "tensor-dims",
    source=_SHAPE,
    hint="add dims without the batch axis; write -1 for a variable size",
)
def tensor_dims(model: ModelUnderCheck) -> Iterator[Problem]:
    """Every input and output has dims, unless the backend completes them.

    If ``max_batch_size`` is at least 1, dims do not include the batch axis.
    """
    return _incomplete(model, "dims")


@rule(
    "tensor-dim-value", source=_SHAPE, hint="write a size of at least 1, or -1 for a variable size"
)
def dim_value(model: ModelUnderCheck) -> Iterator[Problem]:
    """Each dim is at least 1, or -1 for a variable size.

    The same applies to the shape of ``reshape``.
    """
    for field, index, tensor in model.tensors:
        for where, values in (
            (("dims",), tensor.dims),
            (("reshape", "shape"), tensor.reshape.shape),
        ):
            for position, value in enumerate(values):
                if value < 1 and value != -1:
                    what = "reshape dimensions" if where[0] == "reshape" else "dimension"
                    message = (
                        f"{title(field, index, tensor)}: "
                        f"{what} must be integer >= 1, or -1 to indicate "
                    )
                    message += f"a variable-size dimension, got {value}"
                    fix = None if tensor.HasField("reshape") else unsafe(put("-1"))
                    yield Problem(message, (field, index, *where, position), fix=fix)


@rule("tensor-reshape", source=_SHAPE, hint="give both the same number of elements and of -1")
def reshape(model: ModelUnderCheck) -> Iterator[Problem]:
    """``reshape`` has as many elements as ``dims``, also between each pair of ``-1``.

    An empty shape stands for one element. It is allowed only if ``max_batch_size`` is at least 1.
    """
    for field, index, tensor in model.tensors:
        if not tensor.HasField("reshape") or not tensor.dims:
            continue
        fault = reshape_fault(tensor.dims, tensor.reshape.shape, model.config.max_batch_size)
        if fault:
            message = f"{title(field, index, tensor)} {fault}, got dims {list(tensor.dims)}"
            hint = "remove reshape, or set max_batch_size" if fault == _EMPTY_RESHAPE else None
            message = f"{message} and reshape {list(tensor.reshape.shape)}"
            fix = None if hint is None else unsafe(remove())
            yield Problem(message, (field, index, "reshape"), hint, fix=fix)


def reshape_fault(before: Sequence[int], after: Sequence[int], max_batch_size: int) -> str | None:
    """Return why one shape cannot be reshaped to the other, or ``None``;
    invalid dims are another rule's.
    """
    if any(value < 1 and value != -1 for value in (*before, *after)):
        return None
    if not after:
        if max_batch_size == 0:
            return _EMPTY_RESHAPE
        return (
            None if list(before) == [1] * len(before) else "has different size for dims and reshape"
        )
    sizes = _sizes_between_wildcards(before), _sizes_between_wildcards(after)
    if len(sizes[0]) != len(sizes[1]):
        return "has different number of variable-size dimensions for dims and reshape"
    return None if sizes[0] == sizes[1] else "has different size for dims and reshape"


def _sizes_between_wildcards(shape: Sequence[int]) -> list[int]:
    """Products of the sizes before, between and after each ``-1`` of a shape."""
    found: list[list[int]] = [[]]
    for value in shape:
        if value == -1:
            found.append([])
        else:
            found[-1].append(value)
    return [count_elements(sizes) for sizes in found]


@rule(
    "tensor-format",
    when=("input",),
    source="triton core ValidateModelInput",
    hint="remove format, or write three dims",
)
def image_format(model: ModelUnderCheck) -> Iterator[Problem]:
    """An input with format NHWC or NCHW has three dims.

    They are height, width and channels, without the batch axis.
    """
    for index, tensor in enumerate(model.config.input):
        if tensor.format in (1, 2) and len(tensor.dims) != 3:
            message = (
                f"{title('input', index, tensor)}: NHWC/NCHW require 3 dims, got {len(tensor.dims)}"
            )
            yield Problem(message, ("input", index, "format"), fix=unsafe(remove()))


_TENSORRT_FLAGS = {
    "is_shape_tensor": "shape tensors are",
    "is_non_linear_format_io": "Non-linear IO format is",
}


@rule("tensor-tensorrt-only", source="triton core ValidateModelInput")
def tensorrt_only(model: ModelUnderCheck) -> Iterator[Problem]:
    """Only TensorRT models have shape tensors and non-linear formats.

    Triton rejects ``is_shape_tensor`` and ``is_non_linear_format_io`` for any other platform.
    """
    is_tensorrt = model.may_be_tensorrt
    for field, index, tensor in model.tensors:
        for flag, what in _TENSORRT_FLAGS.items():
            if getattr(tensor, flag) and not is_tensorrt:
                message = (
                    f"{title(field, index, tensor)}: {what} only supported for TensorRT platform"
                )
                yield Problem(message, (field, index, flag), f"remove {flag}", fix=safe(remove()))
        if tensor.is_non_linear_format_io and is_tensorrt and len(tensor.dims) != 3:
            place = (field, index, "is_non_linear_format_io")
            message = f"{title(field, index, tensor)}: Non-linear IO format requires 3 dims"
            yield Problem(f"{message}, got {len(tensor.dims)}", place, "write three dims")


@rule("tensor-duplicate-input", rejects=False, source=_OBSERVED, hint="rename one of them")
def duplicate_input(model: ModelUnderCheck) -> Iterator[Problem]:
    """Each input is declared once.

    A model with two inputs of the same name loads, but every request has the wrong number of
    inputs. If a Python model may do without one of them, ``tensor-duplicate-optional-input``
    reports it.
    """
    if not model.folder.is_ensemble and (
        model.backend != "python" or has_too_many_inputs(model.config)
    ):
        yield from declared_twice("input", model.config.input)


@warning("tensor-duplicate-optional-input", source=_OBSERVED, hint="rename one of them")
def duplicate_optional_input(model: ModelUnderCheck) -> Iterator[Problem]:
    """Each optional input of a Python model or an ensemble is declared once.

    Triton counts the inputs that a request must have, so it accepts a request that leaves out
    optional ones. No request can contain two tensors of the same name.
    """
    is_known = model.folder.is_ensemble or model.backend == "python"
    if is_known and not has_too_many_inputs(model.config):
        yield from declared_twice("input", model.config.input)


@warning("tensor-duplicate-output", source=_OBSERVED, hint="rename one of them")
def duplicate_output(model: ModelUnderCheck) -> Iterator[Problem]:
    """Each output is declared once.

    The response contains it once. Of two outputs with the same name Triton uses the last one, and
    in an ensemble the first one.
    """
    yield from declared_twice("output", model.config.output)


def has_too_many_inputs(config: Any) -> bool:
    """Whether a model requires more inputs than a request, which has each name once,
    can contain.
    """
    return sum(not each.optional for each in config.input) > len(
        {each.name for each in config.input}
    )


def declared_twice(field: str, tensors: Sequence[Any]) -> Iterator[Problem]:
    """Yield each name that several inputs, or several outputs, have."""
    names = [tensor.name for tensor in tensors]
    for name, count in Counter(names).items():
        if name and count > 1:
            first, *others = (index for index, each in enumerate(names) if each == name)
            steps = [remove(path=(field, index)) for index in others]
            fix = (safe if all(tensors[first] == tensors[index] for index in others) else unsafe)(
                *steps
            )
            yield Problem(
                f'{field} "{name}" is declared {count} times', (field, others[0]), fix=fix
            )


@warning("tensor-missing", source=_OBSERVED, needs_files=True)
def one_sided(model: ModelUnderCheck) -> Iterator[Problem]:
    """A Python model or an ensemble has both inputs and outputs.

    Triton loads a model that has only inputs or only outputs.
    """
    config = model.final_config
    if model.completes_tensors or bool(config.input) == bool(config.output):
        return
    present, missing = ("input", "output") if config.input else ("output", "input")
    yield Problem(
        f"the model has no {missing}", (present,), f"add {missing} with at least one tensor"
    )


def _unknown_types(model: ModelUnderCheck, *, of_python_outputs: bool) -> Iterator[Problem]:
    """Yield the unknown types of the outputs of a Python model, or of all other tensors.

    The Python backend ignores the type of an output, and responds with that of the array.
    """
    for field, index, tensor in model.tensors:
        is_python_output = field == "output" and model.backend == "python"
        if is_python_output is of_python_outputs and tensor.data_type not in range(15):
            message = f"{title(field, index, tensor)}: unknown data type, got {tensor.data_type}"
            yield Problem(message, (field, index, "data_type"))


@rule(
    "tensor-data-type-number",
    rejects=False,
    source=_OBSERVED,
    hint="write the name of a data type, for example TYPE_FP32",
)
def tensor_data_type_number(model: ModelUnderCheck) -> Iterator[Problem]:
    """A data type that is given by number is in the schema.

    Any number parses and loads, but then no request can have the right data type. For an output of
    a Python model this is a warning, ``tensor-data-type-number-output``.
    """
    return _unknown_types(model, of_python_outputs=False)


@warning(
    "tensor-data-type-number-output",
    source=_OBSERVED,
    hint="write the name of a data type, for example TYPE_FP32",
)
def tensor_data_type_number_output(model: ModelUnderCheck) -> Iterator[Problem]:
    """The data type of a Python model's output that is given by number is in the schema.

    Triton responds with the type that the model returns, whatever the configuration says.
    """
    return _unknown_types(model, of_python_outputs=True)


@warning(
    "tensor-batch-axis",
    source="triton model configuration documentation: max_batch_size",
    hint="remove the first dim of each tensor; Triton adds the batch axis",
)
def batch_axis(model: ModelUnderCheck) -> Iterator[Problem]:
    """Dims do not include the batch axis.

    The rule reports only models in which every input and output starts with ``max_batch_size``.
    """
    size = model.config.max_batch_size
    declared = [tensor for _, _, tensor in model.tensors]
    if size <= 1 or len(declared) <= 1:
        return
    if not all(len(tensor.dims) > 1 and tensor.dims[0] == size for tensor in declared):
        return

    field = "input" if model.config.input else "output"
    has_reshape = any(tensor.HasField("reshape") for tensor in declared)
    steps = [remove(path=(side, index, "dims", 0)) for side, index, _ in model.tensors]
    fix = None if has_reshape else unsafe(*steps)
    message = f"the first dim of every tensor is {size}, which equals max_batch_size"
    yield Problem(message, (field, 0, "dims"), fix=fix)


# --- labels ---------------------------------------------------------------------------------------


@rule(
    "tensor-label-file",
    when=("output",),
    source="triton core LabelProvider",
    hint="add the file to the folder of config.pbtxt",
    needs_files=True,
)
def label_file(model: ModelUnderCheck) -> Iterator[Problem]:
    """``label_filename`` is a file in the model's folder.

    Triton looks for it beside ``config.pbtxt``, not in a version directory.
    """
    for index, output in enumerate(model.config.output):
        file = output.label_filename
        if file and model.folder.size_of(*file.split("/")) is None:
            place = ("output", index, "label_filename")
            message = f"{title('output', index, output)}: label_filename: no such file or directory"
            hint = _hint_of_misplaced_labels(model, file)
            yield Problem(f'{message}, got "{file}"', place, hint)


def _hint_of_misplaced_labels(model: ModelUnderCheck, file: str) -> str | None:
    """Return the hint for a file that is in a version folder, where Triton does not look."""
    folders = (name for name in model.folder.entries if name.isdecimal())
    for version in sorted(folders, key=int):
        if model.folder.size_of(version, *file.split("/")) is not None:
            return f'move {version}/{file} to "{model.name}/{file}", beside config.pbtxt'
    return None


@warning(
    "tensor-label-outside",
    when=("output",),
    source="triton core Model::Init",
    hint="move the file into the model's folder, and write its path from there",
)
def label_outside(model: ModelUnderCheck) -> Iterator[Problem]:
    """``label_filename`` is inside the model's folder.

    Newer releases of Triton reject a path that leaves the folder by ``..``.
    """
    for index, output in enumerate(model.config.output):
        if ".." in output.label_filename.split("/"):
            place = ("output", index, "label_filename")
            message = (
                f"{title('output', index, output)}: label_filename is outside the model's folder"
            )
            yield Problem(f'{message}, got "{output.label_filename}"', place)
