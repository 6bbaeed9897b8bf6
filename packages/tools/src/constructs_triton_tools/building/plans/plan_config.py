"""The ``config.pbtxt`` of a plan: derived from the ONNX file,
or an existing one with another backend.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.untrusted.regular_files import read_regular
from constructs_triton_tools.building.plans.onnx_model import OnnxModelFile
from constructs_triton_tools.building.plans.shapes import Range
from triton_model_check.builder.derived_config import derive
from triton_model_check.model_config import ModelConfig, TensorrtBackend
from triton_model_check.model_config.text import parse_model_config

_ONNX_RUNTIME = ("onnxruntime", "onnxruntime_onnx")
_TENSORRT = ("tensorrt", "tensorrt_plan")
_SYNTAX = {
    "input": "--config with a config.pbtxt that has the inputs",
    "output": "--config with a config.pbtxt that has the outputs",
    "output_class": "--config",
    "max_batch_size": "--max-batch-size",
    "dynamic_batching": "--config",
    "with_warmup": "--config",
}
# TensorRT 8 converts them when it reads an ONNX file.
_NARROWED_BY_8 = {"TYPE_INT64": "TYPE_INT32", "TYPE_FP64": "TYPE_FP32"}


def derived_config(
    model: OnnxModelFile,
    name: str,
    max_batch_size: int | None,
    given: dict[str, tuple[Range, ...]],
    tensorrt: str | None,
) -> Any:
    """Return the configuration that follows from the ONNX file."""
    file = model.described
    if max_batch_size is None and file.has_batch_dimension:
        max_batch_size = _given_batch(model, given)
    derived = derive(
        ModelConfig.draft,
        file.path,
        name=name,
        max_batch_size=max_batch_size or 0,
        fields={"backend": TensorrtBackend()},
        syntax=_SYNTAX,
    )
    message = derived.message
    if tensorrt is not None and int(tensorrt.split(".")[0]) < 10:
        _narrow(message)
    return message


def _given_batch(model: OnnxModelFile, given: dict[str, tuple[Range, ...]]) -> int:
    inputs = [tensor for tensor in model.described.inputs if not tensor.is_optional]
    if not all(tensor.name in given for tensor in inputs):
        raise InvalidValueError(
            f"{model.path}: the batch dimension is dynamic, so a plan needs the largest batch; set "
            "--max-batch-size, for example --max-batch-size 16"
        )
    return min(given[tensor.name][0].most for tensor in inputs)


def _narrow(message: Any) -> None:
    for tensor in (*message.input, *message.output):
        name = (
            type(tensor)
            .DESCRIPTOR.fields_by_name["data_type"]
            .enum_type.values_by_number[tensor.data_type]
            .name
        )
        if name in _NARROWED_BY_8:
            enum = type(tensor).DESCRIPTOR.fields_by_name["data_type"].enum_type
            tensor.data_type = enum.values_by_name[_NARROWED_BY_8[name]].number


def existing_config(path: Path, name: str | None) -> Any:
    """Return the configuration of a file for the TensorRT backend,
    under another name if one is given.
    """
    try:
        content = read_regular(path)
    except OSError as error:
        raise InvalidValueError(
            f"{path}: cannot be read ({(error.strerror or str(error)).lower()}); "
            "pass the path of a config.pbtxt"
        ) from None
    message = parse_model_config(content, str(path))
    used = message.backend or message.platform
    if used and used not in (*_ONNX_RUNTIME, *_TENSORRT):
        raise InvalidValueError(
            f'{path}: must be for the backend onnxruntime or tensorrt, got "{used}"; pass that of '
            "the ONNX model, or leave --config out"
        )
    message.backend = "tensorrt"
    message.platform = "tensorrt_plan"
    message.default_model_filename = ""
    message.cc_model_filenames.clear()
    message.optimization.ClearField("execution_accelerators")
    message.name = name or message.name or path.resolve().parent.name
    return message


def usual_batch(config: Any, given: int | None) -> int:
    """Return the batch size of the fastest plan: as given, the preferred one,
    or half the largest.
    """
    most = int(config.max_batch_size)
    preferred = list(config.dynamic_batching.preferred_batch_size)
    usual = given or (max(preferred) if preferred else max(1, most // 2))
    if given and given > most:
        raise InvalidValueError(
            f"--opt-batch-size: must be at most max_batch_size, {most}, got {given}; lower it, or "
            "raise --max-batch-size"
        )
    return min(usual, most)
