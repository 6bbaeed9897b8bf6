"""What is wrong with a sequence control of an ONNX model, and how to fix it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from constructs_triton_core.spelling import quoted
from triton_model_check.model_config.schema import data_type_name
from triton_model_check.model_files.model_file import ModelTensor

_CONTROL_KINDS = {
    0: "CONTROL_SEQUENCE_START",
    1: "CONTROL_SEQUENCE_READY",
    2: "CONTROL_SEQUENCE_END",
    3: "CONTROL_SEQUENCE_CORRID",
}
_CONTROL_VALUES = {
    "int32_false_true": "TYPE_INT32",
    "fp32_false_true": "TYPE_FP32",
    "bool_false_true": "TYPE_BOOL",
}


def control_names(config: Any) -> list[str]:
    return [each.name for each in config.sequence_batching.control_input if each.name]


def absent_control_hint(config: Any, name: str, inputs: Iterable[str]) -> str:
    """Return how to fix a sequence control that the model does not have as an input."""
    listed = {each.name for each in config.input}.union(control_names(config))
    free = [each for each in inputs if each not in listed]
    if free:
        return f"write the name of an input of the model: {quoted(free)}"
    return f'export the model with an input "{name}", or remove this control'


def control_problem(
    name: str, control: Any, inputs: Mapping[str, ModelTensor], config: Any
) -> tuple[str, str] | None:
    """Return message and hint about one control, or ``None`` if the backend accepts it."""
    if control.kind not in _CONTROL_KINDS:
        return None
    found = inputs.get(name)
    if found is None:
        message = (
            f"configuration specified sequence control '{name}', "
            "but model does not provide that input"
        )
        return message, absent_control_hint(config, name, inputs)
    dims = list(found.shape or ())[1 if config.max_batch_size > 0 else 0 :]
    if dims != [1]:
        message = f"sequence control '{name}' in model has dims {dims} but dims [1] is expected"
        return message, "export the model with this input as [batch, 1]"
    given = _control_type(control)
    if given and found.data_type and given != found.data_type:
        message = f"sequence control '{name}', the model expects data-type {found.data_type}"
        return f"{message} but the model configuration specifies {given}", _control_hint(
            control, found
        )
    return None


def _control_type(control: Any) -> str:
    if _CONTROL_KINDS.get(control.kind) == "CONTROL_SEQUENCE_CORRID":
        return data_type_name(control.data_type) if control.data_type else ""
    return next((name for field, name in _CONTROL_VALUES.items() if getattr(control, field)), "")


def _control_hint(control: Any, found: ModelTensor) -> str:
    """Return how to give a sequence control the data type of the model's input."""
    if _CONTROL_KINDS.get(control.kind) == "CONTROL_SEQUENCE_CORRID":
        return f"write data_type: {found.data_type}"
    fields = [field for field, name in _CONTROL_VALUES.items() if name == found.data_type]
    return (
        f"write {fields[0]}"
        if fields
        else "export the model with this input as INT32, FP32 or BOOL"
    )
