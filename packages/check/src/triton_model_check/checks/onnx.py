"""The configuration of an ONNX model, compared with the model.

Source: onnxruntime_backend r24.10.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from constructs_triton_core.spelling import did_you_mean, quoted
from triton_model_check.checks.model_under_check import ModelUnderCheck
from triton_model_check.checks.onnx_controls import (
    absent_control_hint,
    control_names,
    control_problem,
)
from triton_model_check.checks.onnx_dims import Pair, dims_fault, pairs
from triton_model_check.checks.rules import Problem, rule, warning
from triton_model_check.facts.backend_releases import first_release_with_bf16, onnx_runtime
from triton_model_check.fixes.steps import meant, put, unsafe
from triton_model_check.model_config.schema import data_type_name
from triton_model_check.model_files.model_file import ModelFile

_AUTO_COMPLETE = "onnxruntime_backend ModelState::AutoCompleteMaxBatch"
_TYPES = "onnxruntime_backend ConvertFromOnnxDataType"
_VALIDATE_INPUTS = "onnxruntime_backend ModelInstanceState::ValidateInputs"
_VALIDATE_CONTROLS = "onnxruntime_backend ModelInstanceState::ValidateBooleanSequenceControl"
_VALIDATE_OUTPUTS = "onnxruntime_backend ModelInstanceState::ValidateOutputs"
_VALIDATE_BOTH = "onnxruntime_backend ModelInstanceState::ValidateInputs, ValidateOutputs"
_DIMS = re.compile(r"write dims: (\[.*?\])")


# Batching.


@rule("onnx-batching", "onnxruntime", needs_files=True, source=_AUTO_COMPLETE)
def batching(model: ModelUnderCheck) -> Iterator[Problem]:
    """A model without a batch dimension has ``max_batch_size: 0``.

    Every input and output of the model must have a variable first dimension to support batching.
    """
    for file, config in model.completed_configs:
        if not _contradicts_batching(model, file, config):
            continue
        shapes = [f'"{tensor.name}" {list(tensor.shape or ())}' for tensor in file.fixed_tensors]
        message = (
            "model does not support batching while non-zero max_batch_size is specified, got "
            f"max_batch_size {config.max_batch_size}"
        )
        hint = (
            "set max_batch_size: 0, or export the model "
            f"with a variable first dimension of {', '.join(shapes)}"
        )
        yield Problem(message, ("max_batch_size",), hint, fix=unsafe(put("0")))


def _contradicts_batching(model: ModelUnderCheck, file: ModelFile, config: Any) -> bool:
    """Whether the configuration has batching, and the model certainly has no batch dimension."""
    return (
        model.is_auto_completed and file.has_batch_dimension is False and config.max_batch_size != 0
    )


@warning(
    "onnx-batch-axis",
    "onnxruntime",
    needs_files=True,
    source="triton backend BackendOutputResponder::ProcessTensor",
    hint=(
        "set max_batch_size: 0, and write the inputs and outputs with all dims, "
        "as `triton-model-check model new` does"
    ),
)
def batch_axis(model: ModelUnderCheck) -> Iterator[Problem]:
    """With batching, the first dimension of every tensor is the batch.

    Some models write time first: their input is ``(batch, time)``, and their output ``(time,
    batch)``. Triton gives each request as many rows of the output as it has rows of the input, so
    callers get the first time steps, without an error. The names of the dimensions in the file say
    which one is the batch. This is a warning, because an exporter may give any names.
    """
    for file, config in model.completed_configs:
        axis = file.other_batch_axis
        if axis is not None and config.max_batch_size > 0:
            message = (
                f'"{axis.tensor}" begins with "{axis.first}", and "{axis.name}" is its dimension '
                f"{axis.position}, but max_batch_size is {config.max_batch_size}: Triton takes the "
                "first dimension for the batch"
            )
            yield Problem(message, ("max_batch_size",))


# Names.


@rule("onnx-input-count", "onnxruntime", needs_files=True, source=_VALIDATE_INPUTS)
def input_count(model: ModelUnderCheck) -> Iterator[Problem]:
    """The configuration has as many inputs as the model.

    Required inputs, batch inputs, sequence controls and states count. Optional inputs do not count.
    """
    for file, config in model.completed_configs:
        names = _required(file)
        expected = _input_count(config)
        if expected != len(names):
            message = f"configuration expects {expected} inputs, model provides {len(names)}"
            hint = _count_hint(config, names)
            yield Problem(f"{message}: {quoted(names)}" if names else message, ("input",), hint)


def _required(file: ModelFile) -> list[str]:
    """Return the names of the inputs that a request must have."""
    return [tensor.name for tensor in file.inputs if not tensor.is_optional]


def _input_count(config: Any) -> int:
    """Return how many inputs the backend expects of the model."""
    sequence = config.sequence_batching
    count = len(config.batch_input) + len(sequence.state)
    for tensor in config.input:
        if not tensor.optional:
            count += 1
    for control_input in sequence.control_input:
        count += len({control.kind for control in control_input.control})
    return count


def _count_hint(config: Any, names: Sequence[str]) -> str:
    """Return how to give the configuration as many inputs as the model, which has ``names``."""
    known = frozenset(names)
    listed = dict.fromkeys(tensor.name for tensor in config.input)
    missing = [name for name in names if name not in listed]
    extra = [name for name in listed if name not in known]
    if missing and not extra:
        return f"add the input {quoted(missing)}"
    if extra and not missing:
        return f"remove the input {quoted(extra)}"

    absent_controls = [name for name in control_names(config) if name not in known]
    if absent_controls and not missing:
        return absent_control_hint(config, absent_controls[0], names)
    return (
        f"list exactly the inputs {quoted(names)}, without sequence controls, "
        "states and batch inputs"
    )


@rule("onnx-input-name", "onnxruntime", needs_files=True, source=_VALIDATE_INPUTS)
def input_name(model: ModelUnderCheck) -> Iterator[Problem]:
    """Each input has the name of an input of the model.

    Case and blanks matter.
    """
    for file, config in model.completed_configs:
        if _input_count(config) == len(_required(file)):  # else onnx-input-count reports the names
            yield from unexpected(config, "input", [each.name for each in file.inputs])


@rule("onnx-output-name", "onnxruntime", needs_files=True, source=_VALIDATE_OUTPUTS)
def output_name(model: ModelUnderCheck) -> Iterator[Problem]:
    """Each output has the name of an output of the model.

    Case and blanks matter. Outputs of the model may be left out.
    """
    for file, config in model.completed_configs:
        yield from unexpected(config, "output", [each.name for each in file.outputs])


def unexpected(config: Any, field: str, names: Sequence[str]) -> Iterator[Problem]:
    """Yield a problem for each tensor of the configuration that the model does not have."""
    tensors = getattr(config, field)
    known = frozenset(names)
    written = {tensor.name for tensor in tensors}
    for index, tensor in enumerate(tensors):
        if not tensor.name or tensor.name in known:
            continue
        free = [name for name in names if name not in written]
        hint = did_you_mean(tensor.name, free, _otherwise(field, names, free))
        message = (
            f'unexpected inference {field} "{tensor.name}", allowed {field}s are: {quoted(names)}'
        )
        fix = meant(hint, instead_of=tensor.name)
        yield Problem(message, (field, index, "name"), hint, fix=fix)


def _otherwise(field: str, names: Sequence[str], free: Sequence[str]) -> str:
    """The hint about a tensor of the configuration that is not similar to one of the model."""
    if not free:
        return f"remove it: config.pbtxt has every {field} of the model"
    return f"write one of {quoted(free)}" if names else "remove it"


@rule("onnx-optional-input", "onnxruntime", needs_files=True, source=_VALIDATE_INPUTS)
def optional_input(model: ModelUnderCheck) -> Iterator[Problem]:
    """A model with batching has no optional input.

    The backend accepts ``optional: true`` only with ``max_batch_size: 0``.
    """
    for _, config in model.completed_configs:
        if config.max_batch_size <= 0:
            continue
        for index, tensor in enumerate(config.input):
            if tensor.optional:
                message = (
                    f'optional input "{tensor.name}" is not supported '
                    "for models that support batching"
                )
                hint = "set max_batch_size: 0, or remove the input"
                yield Problem(message, ("input", index, "optional"), hint)


# Types.


@rule("onnx-data-type", "onnxruntime", needs_files=True, source=_VALIDATE_BOTH)
def data_type(model: ModelUnderCheck) -> Iterator[Problem]:
    """Each tensor has the data type of the model's tensor.

    The backend does not convert data.
    """
    for file, config in model.completed_configs:
        yield from type_problems(file, config)


def type_problems(file: ModelFile, config: Any) -> Iterator[Problem]:
    """Yield a problem for each tensor that has another data type in the model."""
    for pair in pairs(file, config):
        given = data_type_name(pair.tensor.data_type)
        wanted = pair.found.data_type
        if not wanted or given in (wanted, "TYPE_INVALID"):
            continue
        message = (
            f'configuration expects datatype {given} for {pair.field} "{pair.tensor.name}", '
            f"model provides {wanted}"
        )
        place = (pair.field, pair.position, "data_type")
        yield Problem(message, place, f"write {wanted}", fix=unsafe(put(wanted)))


@rule("onnx-unsupported-type", "onnxruntime", needs_files=True, source=_TYPES)
def unsupported_type(model: ModelUnderCheck) -> Iterator[Problem]:
    """The backend of the image supports the data type of each tensor.

    It supports BF16 from image 26.03 on. Triton has no data type for FP8, 4-bit and complex
    numbers.
    """
    runtime = onnx_runtime(model.target.image_version)
    lacks_bf16 = runtime is not None and runtime.supports_bf16 is False
    for file, config in model.completed_configs:
        for pair in pairs(file, config):
            type_name = pair.found.data_type
            is_unsupported_bf16 = type_name == "TYPE_BF16" and lacks_bf16
            if type_name and not is_unsupported_bf16:
                continue
            shown = type_name or "that of the model"
            hint = "export the model with FP16 or FP32"
            if is_unsupported_bf16:
                hint = f"{hint}, or use image {first_release_with_bf16()} or newer"
            message = f'unsupported data type for "{pair.tensor.name}": {shown}'
            yield Problem(message, (pair.field, pair.position), hint)


# Dims.


@rule(
    "onnx-dims", "onnxruntime", needs_files=True, source=f"{_VALIDATE_BOTH}, CompareDimsSupported"
)
def dims(model: ModelUnderCheck) -> Iterator[Problem]:
    """The dims of each tensor agree with the shape of the model's tensor.

    With ``max_batch_size`` above 0, the first dimension of the model is the batch dimension, which
    ``dims`` leaves out. An input may have a fixed size where the model has -1. An output must have
    the same dims.
    """
    for file, config in model.completed_configs:
        if _contradicts_batching(model, file, config):
            continue  # onnx-batching reports it
        batch_outputs = {name for output in config.batch_output for name in output.target_name}
        for pair in pairs(file, config):
            is_computed = pair.field == "output" and pair.tensor.name in batch_outputs
            if is_computed:
                continue
            is_filled_in = model.config is None or not getattr(model.config, pair.field)
            if is_filled_in and 0 in pair.tensor.dims:
                message = (
                    f'model {pair.field} "{pair.tensor.name}" dimension must be integer >= 1, got 0'
                )
                yield Problem(message, (pair.field,), "export the model with a size of at least 1")
            is_exact = pair.field == "input" or pair.found.has_certain_shape
            fault = dims_fault(pair, config.max_batch_size > 0, is_exact)
            if fault is not None:
                yield dims_problem(pair, *fault)


def dims_problem(pair: Pair, message: str, hint: str) -> Problem:
    """Return the problem of dims, with a fix if the hint has the right ones."""
    right_dims = None if pair.tensor.HasField("reshape") else _DIMS.fullmatch(hint)
    fix = unsafe(put(right_dims[1])) if right_dims is not None else None
    return Problem(message, (pair.field, pair.position, "dims"), hint, fix=fix)


# Sequences.


@rule(
    "onnx-control",
    "onnxruntime",
    when=("sequence_batching",),
    needs_files=True,
    source=_VALIDATE_CONTROLS,
)
def control(model: ModelUnderCheck) -> Iterator[Problem]:
    """Each sequence control is an input of the model, with shape [1] and the data type of its
    values.

    With ``max_batch_size`` above 0, the shape follows the batch dimension.
    """
    for file, config in model.completed_configs:
        required = {tensor.name: tensor for tensor in file.inputs if not tensor.is_optional}
        for index, control_input in enumerate(config.sequence_batching.control_input):
            if not control_input.name:
                continue
            place = ("sequence_batching", "control_input", index)
            for given in control_input.control:
                fault = control_problem(control_input.name, given, required, config)
                if fault is not None:
                    message, hint = fault
                    yield Problem(message, place, hint)
