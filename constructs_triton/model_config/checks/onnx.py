"""An ONNX model beside its configuration. Source: onnxruntime_backend r24.10, src/onnxruntime.cc."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from constructs_triton.facts.onnxruntime import onnx_runtime
from constructs_triton.model_config.model_under_check import ModelUnderCheck
from constructs_triton.model_config.rules import Problem, rule
from constructs_triton.model_files import ModelFile, ModelTensor
from constructs_triton.spelling import did_you_mean, quoted

__all__: list[str] = []

_VALIDATE_INPUTS = "onnxruntime_backend ModelInstanceState::ValidateInputs"
_VALIDATE_OUTPUTS = "onnxruntime_backend ModelInstanceState::ValidateOutputs"


def _signatures(model: ModelUnderCheck) -> Iterator[tuple[ModelFile, Any]]:
    """Yield the readable model files with the configuration that each completes."""
    for file in model.onnx_files:
        if file.format == "onnx" and not file.faults:
            yield file, model.completed_config(file)


@rule("onnx-file", "onnx", needs_files=True, source="onnxruntime_backend ModelState::LoadModel; ONNX Runtime")
def file(model: ModelUnderCheck) -> Iterator[Problem]:
    """The ONNX Runtime of the image can load each model file.

    It reads the file to its last byte, and refuses operator sets and types that it does not know.
    """
    for each in model.onnx_files:
        for fault in each.faults:
            yield Problem(fault.message, hint=fault.hint, path=model.folder.relative(*each.path.parts))


@rule(
    "onnx-batching", "onnx", needs_files=True, source="onnxruntime_backend ModelState::AutoCompleteMaxBatch"
)
def batching(model: ModelUnderCheck) -> Iterator[Problem]:
    """A model without a batch dimension has ``max_batch_size: 0``.

    The backend completes the configuration from the model and finds that they contradict each other.
    """
    for file, config in _signatures(model):
        if model.is_auto_completed and not file.has_batch_dimension and config.max_batch_size != 0:
            message = f"the model does not support batching, got max_batch_size {config.max_batch_size}"
            hint = (
                f"set max_batch_size: 0, or export the model with a dynamic first dimension ({_shapes(file)})"
            )
            yield Problem(message, ("max_batch_size",), hint)


@rule("onnx-input-count", "onnx", needs_files=True, source=_VALIDATE_INPUTS)
def input_count(model: ModelUnderCheck) -> Iterator[Problem]:
    """The configuration has as many inputs as the model requires.

    Required inputs, batch inputs, sequence controls and states count; initializers that are inputs do not.
    """
    for file, config in _signatures(model):
        names = [each.name for each in file.inputs if not each.is_optional]
        expected = _input_count(config)
        if expected != len(names):
            message = f"the configuration expects {expected} inputs, the model provides {len(names)}: {quoted(names)}"
            yield Problem(message, ("input",), _count_hint(config, names))


def _input_count(config: Any) -> int:
    controls = sum(
        len({control.kind for control in each.control}) for each in config.sequence_batching.control_input
    )
    required = sum(1 for each in config.input if not each.optional)
    return required + len(config.batch_input) + controls + len(config.sequence_batching.state)


def _count_hint(config: Any, names: Sequence[str]) -> str:
    listed = [each.name for each in config.input]
    missing = [name for name in names if name not in listed]
    extra = [name for name in listed if name not in names]
    if missing and not extra:
        return f"add {quoted(missing)}"
    if extra and not missing:
        return f"remove {quoted(extra)}"
    return f"list exactly {quoted(names)}"


@rule("onnx-input-name", "onnx", needs_files=True, source=_VALIDATE_INPUTS)
def input_name(model: ModelUnderCheck) -> Iterator[Problem]:
    """Each input has the name of one of the model's inputs.

    Names are compared exactly, including case and blanks.
    """
    for file, config in _signatures(model):
        names = [each.name for each in file.inputs]
        for index, each in enumerate(config.input):
            if each.name not in names:
                message = f'unexpected inference input "{each.name}", allowed inputs are: {quoted(names)}'
                hint = did_you_mean(each.name, names, f"use one of {quoted(names)}")
                yield Problem(message, ("input", index, "name"), hint)


@rule("onnx-output-name", "onnx", needs_files=True, source=_VALIDATE_OUTPUTS)
def output_name(model: ModelUnderCheck) -> Iterator[Problem]:
    """Each output has the name of one of the model's outputs.

    Names are compared exactly, including case and blanks. Outputs may be left out.
    """
    for file, config in _signatures(model):
        names = [each.name for each in file.outputs]
        for index, each in enumerate(config.output):
            if each.name not in names:
                message = f'unexpected inference output "{each.name}", allowed outputs are: {quoted(names)}'
                hint = did_you_mean(each.name, names, f"use one of {quoted(names)}")
                yield Problem(message, ("output", index, "name"), hint)


@rule("onnx-optional-input", "onnx", needs_files=True, source=_VALIDATE_INPUTS)
def optional_input(model: ModelUnderCheck) -> Iterator[Problem]:
    """An optional input belongs to a model that does not batch."""
    for _, config in _signatures(model):
        for index, each in enumerate(config.input):
            if each.optional and config.max_batch_size > 0:
                message = f'optional input "{each.name}" is not supported for models that support batching'
                yield Problem(
                    message, ("input", index, "optional"), "set max_batch_size: 0, or remove optional"
                )


@rule("onnx-data-type", "onnx", needs_files=True, source=f"{_VALIDATE_INPUTS}, ValidateOutputs")
def data_type(model: ModelUnderCheck) -> Iterator[Problem]:
    """Each tensor has the data type of the model's tensor; the backend does not convert."""
    for file, config in _signatures(model):
        for field, index, tensor, found in _pairs(file, config):
            given = _type_name(tensor)
            if found.data_type and given not in (found.data_type, "TYPE_INVALID"):
                message = (
                    f'expects data type {given} for "{tensor.name}", the model provides {found.data_type}'
                )
                yield Problem(message, (field, index, "data_type"), f"write {found.data_type}")
            elif (
                found.data_type == "TYPE_BF16" and not onnx_runtime(model.target.image_version).supports_bf16
            ):
                message = f'unsupported data type TYPE_BF16 of "{tensor.name}" in the image\'s ONNX Runtime'
                yield Problem(
                    message, (field, index), "export the model with FP16 or FP32, or use image 26.03"
                )
            elif not found.data_type:
                message = f'Triton has no data type for "{tensor.name}" of the model'
                yield Problem(message, (field, index), "export the model with a type that Triton has")


@rule(
    "onnx-dims", "onnx", needs_files=True, source=f"{_VALIDATE_INPUTS}, ValidateOutputs, CompareDimsSupported"
)
def dims(model: ModelUnderCheck) -> Iterator[Problem]:
    """The dims of each tensor fit the shape of the model's tensor.

    With ``max_batch_size`` above 0 the model's first dimension is the batch dimension, and dims leave it out.
    An input may give a size where the model takes any; an output must give exactly the model's dims.
    """
    for file, config in _signatures(model):
        batch_outputs = {name for each in config.batch_output for name in each.target_name}
        for field, index, tensor, found in _pairs(file, config):
            if field == "output" and tensor.name in batch_outputs:
                continue
            is_exact = field == "input" or file.has_inferred_shapes
            if not is_exact and not found.shape:
                continue
            problem = _dims_problem(field, tensor, found, config.max_batch_size > 0, is_exact)
            if problem is not None:
                yield Problem(problem[0], (field, index, "dims"), problem[1])


def _dims_problem(
    field: str, tensor: Any, found: ModelTensor, is_batched: bool, is_exact: bool
) -> tuple[str, str] | None:
    given = list(tensor.reshape.shape) if tensor.HasField("reshape") else list(tensor.dims)
    shape = found.shape or ()
    name = f'tensor "{tensor.name}"'
    if field == "input" and tensor.allow_ragged_batch:
        message = f"{name}: a ragged input must have the shape [-1], the model has {list(shape)}"
        return None if shape == (-1,) else (message, "remove allow_ragged_batch")
    if not shape:
        if all(size == 1 for size in given):
            return None
        return (
            f"{name} is a scalar of the model, so that every dim must be 1, got {given}",
            "write dims: [ 1 ]",
        )
    if is_batched:
        if shape[0] != -1 and (is_exact or shape[0] > 0):
            hint = "set max_batch_size: 0, or export the model with a dynamic first dimension"
            return (
                f"{name}: to support batching the first dimension must be -1, the model has {list(shape)}",
                hint,
            )
        given = [-1, *given]
    if _fits(given, shape, exactly=field == "output" and is_exact):
        return None
    wanted = list(shape[1:] if is_batched else shape)
    return (
        f"{name}: the model expects {len(shape)} dimensions (shape {list(shape)}), the configuration gives {given}",
        f"write dims: {wanted}" if wanted else "write dims: [ 1 ] with reshape { shape: [ ] }",
    )


def _fits(given: Sequence[int], shape: Sequence[int], *, exactly: bool) -> bool:
    if len(given) != len(shape):
        return False
    if exactly:
        return list(given) == list(shape)
    return all(size in (-1, wanted) for wanted, size in zip(given, shape, strict=True))


def _pairs(file: ModelFile, config: Any) -> Iterator[tuple[str, int, Any, ModelTensor]]:
    for field, tensors in (("input", file.inputs), ("output", file.outputs)):
        found = {each.name: each for each in tensors}
        for index, tensor in enumerate(getattr(config, field)):
            if tensor.name in found:
                yield field, index, tensor, found[tensor.name]


def _type_name(tensor: Any) -> str:
    enum = tensor.DESCRIPTOR.fields_by_name["data_type"].enum_type
    value = enum.values_by_number.get(tensor.data_type)
    return str(value.name) if value is not None else str(tensor.data_type)


def _shapes(file: ModelFile) -> str:
    return ", ".join(f"{each.name} {list(each.shape or ())}" for each in (*file.inputs, *file.outputs))


_BOOLEANS = ("true", "on", "1", "false", "off", "0")
_BOOLEAN_PARAMETERS = ("enable_mem_arena", "enable_mem_pattern")
_INTEGER_PARAMETERS = ("execution_mode", "intra_op_thread_count", "inter_op_thread_count")
_LEADING_INTEGER = re.compile(r"\s*[+-]?\d+")


@rule("onnx-parameter", "onnx", source="onnxruntime_backend ModelState::ModelState", when=("parameters",))
def parameter(model: ModelUnderCheck) -> Iterator[Problem]:
    """A parameter of the backend has a value that the backend can read.

    The backend reads a number from the beginning of the string and ignores the rest.
    """
    for key in (each for each in _BOOLEAN_PARAMETERS if each in model.config_parameters):
        value = model.parameter(key)
        if value.lower() not in _BOOLEANS:
            yield Problem(
                f'failed to convert "{value}" to boolean', ("parameters", key), 'write "true" or "false"'
            )
    for key in (each for each in _INTEGER_PARAMETERS if each in model.config_parameters):
        value = model.parameter(key)
        if _LEADING_INTEGER.match(value) is None:
            yield Problem(
                f'failed to convert "{value}" to integer', ("parameters", key), "write a whole number"
            )
        elif key == "execution_mode" and int(_LEADING_INTEGER.match(value)[0]) not in (0, 1):
            message = f'execution_mode must be 0 (sequential) or 1 (parallel), got "{value}"'
            yield Problem(message, ("parameters", key), 'write "0" or "1"')


@rule("onnx-accelerator", "onnx", source="onnxruntime_backend ModelState::LoadModel", when=("optimization",))
def accelerator(model: ModelUnderCheck) -> Iterator[Problem]:
    """An execution accelerator on CPUs is OpenVINO, the only one that the backend knows there."""
    accelerators = model.config.optimization.execution_accelerators.cpu_execution_accelerator
    for index, each in enumerate(accelerators):
        if each.name != "openvino":
            field = ("optimization", "execution_accelerators", "cpu_execution_accelerator", index, "name")
            hint = 'write "openvino", or remove the accelerator'
            yield Problem(f'unknown Execution Accelerator "{each.name}" is requested', field, hint)
