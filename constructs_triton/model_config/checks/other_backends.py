"""Rules of the TensorRT and FIL backends that the configuration alone decides."""

from __future__ import annotations

from collections.abc import Iterator

from constructs_triton.model_config.loaded_files import FILE_OF_TREE_MODEL
from constructs_triton.model_config.model_under_check import ModelUnderCheck
from constructs_triton.model_config.rules import Problem, rule
from constructs_triton.model_config.schema import data_type_name
from constructs_triton.spelling import did_you_mean, quoted

__all__: list[str] = []

_PARAMETER = 'parameters { key: "%s" value { string_value: "%s" } }'
_TYPES = "tensorrt_backend ConvertTrtTypeToDataType"
_TENSORRT_TYPES = (
    "TYPE_BOOL",
    "TYPE_INT8",
    "TYPE_UINT8",
    "TYPE_INT32",
    "TYPE_INT64",
    "TYPE_FP16",
    "TYPE_BF16",
    "TYPE_FP32",
)


@rule("plan-data-type", "tensorrt", source=_TYPES, when=("input", "output"))
def data_type(model: ModelUnderCheck) -> Iterator[Problem]:
    """Each tensor of a TensorRT model has a data type of TensorRT.

    TensorRT has no 64-bit floating-point, 16-bit integer or string tensors.
    """
    for field, index, tensor in model.tensors:
        given = data_type_name(tensor.data_type)
        if tensor.data_type and given.startswith("TYPE_") and given not in _TENSORRT_TYPES:
            message = f'unsupported data type for "{tensor.name}": {given}'
            hint = f"write the type of the plan's tensor, one of {', '.join(_TENSORRT_TYPES)}"
            yield Problem(message, (field, index, "data_type"), hint)


@rule("tree-model-type", "fil", source="fil_backend r24.10, model_type", when=("parameters",))
def model_type(model: ModelUnderCheck) -> Iterator[Problem]:
    """The parameter ``model_type`` of the FIL backend has a known value.

    It determines the format and the name of the model file. The default is XGBoost's old binary format.
    """
    value = model.parameter("model_type")
    if "model_type" in model.config_parameters and value not in FILE_OF_TREE_MODEL:
        hint = did_you_mean(value, FILE_OF_TREE_MODEL, f"write one of {quoted(FILE_OF_TREE_MODEL)}")
        yield Problem(f'unknown model_type "{value}"', ("parameters", "model_type"), hint)


@rule("tree-output-class", "fil", source="fil_backend r24.10, output_class")
def output_class(model: ModelUnderCheck) -> Iterator[Problem]:
    """The parameter ``output_class`` of the FIL backend is set, and ``threshold`` with it.

    The backend needs to know whether the model is a classifier.
    """
    value = model.parameter("output_class").lower()
    if "output_class" not in model.config_parameters:
        hint = f"add {_PARAMETER % ('output_class', 'true')} for a classifier, or false for a regression"
        yield Problem("the parameter output_class is required", hint=hint)
    elif value in ("true", "1", "on") and "threshold" not in model.config_parameters:
        message = "the parameter threshold is required for a classifier"
        hint = f"add {_PARAMETER % ('threshold', '0.5')}"
        yield Problem(message, ("parameters", "output_class"), hint)
