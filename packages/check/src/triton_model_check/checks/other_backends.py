"""Rules of single backends: settings of ONNX Runtime, types of TensorRT, and models of trees."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from constructs_triton_core.spelling import did_you_mean, quoted
from triton_model_check.checks.model_under_check import ModelUnderCheck
from triton_model_check.checks.rules import Problem, rule, warning
from triton_model_check.facts.backend_releases import unsupported_xgboost
from triton_model_check.facts.images import first_published
from triton_model_check.fixes.steps import meant, put, remove, safe, string, unsafe
from triton_model_check.model.loaded_files import tree_model_type, tree_row_size
from triton_model_check.model_config.schema import data_type_name
from triton_model_check.model_config.target import SAGEMAKER
from triton_model_check.model_files.model_file import TREE_MODEL_FILES, ModelFile

_LOAD = "onnxruntime_backend ModelState::LoadModel"
_SINGLE_MODEL_FOLDER = "/opt/ml/model/"
_PARAMETER = 'parameters { key: "%s" value { string_value: "%s" } }'
_VALUE = ("value", "string_value")
_TYPES = "tensorrt_backend ConvertTrtTypeToDataType"
_TENSORRT_TYPES = (
    *("TYPE_BOOL", "TYPE_INT8", "TYPE_UINT8", "TYPE_INT32", "TYPE_INT64", "TYPE_FP16", "TYPE_BF16"),
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


@rule("tree-model-type", "fil", source="fil_backend string_to_serialization")
def model_type(model: ModelUnderCheck) -> Iterator[Problem]:
    """The parameter ``model_type`` of the FIL backend has a known value, and the model file that
    format.

    It determines the name of the model file too. The default is XGBoost's old binary format.
    """
    value = tree_model_type(model.config)
    place = ("parameters", "model_type") if "model_type" in model.config_parameters else ()
    if value not in TREE_MODEL_FILES:
        hint = did_you_mean(value, TREE_MODEL_FILES, f"write one of {quoted(TREE_MODEL_FILES)}")
        message = f"{value} not recognized as a valid serialization format"
        fix = meant(hint, *_VALUE)
        yield Problem(message, place, hint, fix=fix)
    for file in model.model_files:
        if file.model_type not in ("", value):
            message = (
                f'"{file.path.name}" has the format {file.model_type}, but model_type is {value}'
            )
            yield Problem(message, place, _tree_hint(file))


def _tree_hint(file: ModelFile) -> str:
    name = TREE_MODEL_FILES[file.model_type]
    hint = f"add {_PARAMETER % ('model_type', file.model_type)}"
    return hint if file.path.name == name else f'{hint}, and name the file "{name}"'


@rule("tree-classifier", "fil", source="fil_backend RapidsSharedState::load")
def classifier(model: ModelUnderCheck) -> Iterator[Problem]:
    """A parameter says whether the model is a classifier, and ``threshold`` is set if it is.

    The parameter is ``output_class``; images from 25.09 on also accept ``is_classifier``.
    """
    name = next(
        (each for each in ("output_class", "is_classifier") if each in model.config_parameters), ""
    )
    if not name:
        example = _PARAMETER % ("output_class", "true")
        hint = f"add {example} for a classifier, or false for a regression model"
        yield Problem("the parameter output_class is required", hint=hint)
    elif model.parameter(name) == "true" and "threshold" not in model.config_parameters:
        message = "the parameter threshold is required for a classifier"
        yield Problem(message, ("parameters", name), f"add {_PARAMETER % ('threshold', '0.5')}")


@rule(
    "tree-features",
    "fil",
    source="fil_backend RapidsModel::predict",
    rejects=False,
    needs_files=True,
    when=("input",),
)
def features(model: ModelUnderCheck) -> Iterator[Problem]:
    """The input of a model of trees has one value for each feature of the model.

    The FIL backend does not compare them. For each row of a request it reads as many values as the
    model has features: with fewer it reads beyond the request, with more it begins later rows at
    the wrong value. The number of features is read from files of LightGBM, and of XGBoost in JSON
    and UBJSON.
    """
    counts = []
    for file in model.model_files:
        shape = file.inputs[0].shape if file.inputs else None
        if shape:
            counts.append(shape[1])

    for field, index, tensor in model.tensors:
        if field != "input" or tensor.name != "input__0":
            continue
        given = tree_row_size(tensor, model.config.max_batch_size)
        if given is None:
            continue
        other_counts = [count for count in counts if count != given]
        if not other_counts:
            continue
        count = other_counts[0]
        dims = [count] if model.config.max_batch_size > 0 else [-1, count]
        yield Problem(
            f"the model has {count} features, but a row of the input has {given} values",
            (field, index, "dims"),
            f"write dims: {dims}",
            fix=unsafe(put(f"{dims}")),
        )


@warning(
    "tree-version",
    "fil",
    source="fil_backend docs/model_support.md, Version Compatibility",
    needs_files=True,
)
def tree_version(model: ModelUnderCheck) -> Iterator[Problem]:
    """The FIL backend of the image supports the format of the XGBoost that wrote the model.

    XGBoost changes its formats, and older images do not read the newer ones. A model of a version
    about which nothing is published is listed as not checked.
    """
    for file in model.model_files:
        version = file.versions.get("xgboost")
        image = model.target.image_version
        if version is None or image is None:
            continue
        major, _, minor = version.partition(".")
        supported = unsupported_xgboost(image, file.model_type, (int(major), int(minor)))
        if supported:
            message = f"written by XGBoost {version}, but image {image} supports {supported}"
            newer = first_published("24.10") if model.target.is_sagemaker else "24.10"
            hint = f"use image version {newer} or newer, or save the model with an older XGBoost"
            yield Problem(message, path=model.place_of(file.path), hint=hint)


# ONNX Runtime.

_BOOLEANS = ("true", "on", "1", "false", "off", "0")
_BOOLEAN_PARAMETERS = ("enable_mem_arena", "enable_mem_pattern")
_INTEGER_PARAMETERS = ("execution_mode", "intra_op_thread_count", "inter_op_thread_count")
_INT32, _MOST_DIGITS = range(-(2**31), 2**31), 100
_MOST_THREADS = 2**22  # Linux's limit on the processes and threads of a machine
_LEADING_INTEGER = re.compile(r"\s*[+-]?[0-9]+")


@rule(
    "onnx-parameter",
    "onnxruntime",
    source="onnxruntime_backend ModelState::ModelState",
    when=("parameters",),
)
def parameter(model: ModelUnderCheck) -> Iterator[Problem]:
    """The values of the backend's parameters are numbers and booleans that it can read.

    Of a number, the backend reads the beginning of the string and ignores the rest.
    """
    for key in model.config_parameters:
        value = model.parameter(key)
        if key in _BOOLEAN_PARAMETERS and value.lower() not in _BOOLEANS:
            message = f'failed to convert {key} "{value}" to boolean'
            word = {"yes": "true", "no": "false"}.get(value.lower())
            fix = safe(put(string(word), *_VALUE)) if word else None
            yield Problem(message, ("parameters", key), 'write "true" or "false"', fix=fix)
        if key in _INTEGER_PARAMETERS:
            yield from _integer_problems(key, value)


def _integer_problems(key: str, value: str) -> Iterator[Problem]:
    """Yield what is wrong with a parameter that the backend reads as an integer."""
    match = _LEADING_INTEGER.match(value)
    if match is None:
        message = f'failed to convert {key} "{value}" to integer'
        yield Problem(message, ("parameters", key), "write a whole number")
    elif len(match[0]) > _MOST_DIGITS or int(match[0]) not in _INT32:
        message = f'{key} "{value}" does not fit into 32 bits, which stops the server'
        yield Problem(message, ("parameters", key), "write a smaller number")
    elif key != "execution_mode" and int(match[0]) > _MOST_THREADS:
        message = f'{key} "{value}" is more threads than Linux can start'
        yield Problem(message, ("parameters", key), "write the number of cores")
    elif key == "execution_mode" and int(match[0]) not in (0, 1):
        message = f'execution_mode must be 0 (sequential) or 1 (parallel), got "{value}"'
        yield Problem(message, ("parameters", key), 'write "0" or "1"')


@rule("onnx-accelerator", "onnxruntime", source=_LOAD, when=("optimization",))
def accelerator(model: ModelUnderCheck) -> Iterator[Problem]:
    """On CPUs, the only execution accelerator is OpenVINO.

    The backend loads accelerators for GPUs by other names.
    """
    accelerators = model.config.optimization.execution_accelerators.cpu_execution_accelerator
    for index, each in enumerate(accelerators):
        if each.name != "openvino":
            group = ("optimization", "execution_accelerators", "cpu_execution_accelerator", index)
            message = f'unknown Execution Accelerator "{each.name}" is requested'
            hint = 'write "openvino", or remove the accelerator'
            fix = unsafe(remove(path=group))
            yield Problem(message, (*group, "name"), hint, fix=fix)


@rule(
    "onnx-operator-library",
    "onnxruntime",
    needs_files=True,
    when=("model_operations",),
    source=_LOAD,
    platforms=SAGEMAKER,
)
def operator_library(model: ModelUnderCheck) -> Iterator[Problem]:
    """The libraries of custom operators are in the model's folder, below ``/opt/ml/model``.

    AWS's image contains no such library, and the server does not look for a relative path in the
    model's folder. The rule skips images that may be your own, unless the path is below
    ``/opt/ml/model``.
    """
    is_known = model.target.is_prebuilt_image and model.target.image_version is not None
    for index, path in enumerate(model.config.model_operations.op_library_filename):
        place = ("model_operations", "op_library_filename", index)
        inside = path.startswith(_SINGLE_MODEL_FOLDER) and model.target.mode == "single"
        if _has_library(model, path, inside=inside) or not (inside or is_known):
            continue
        message = f"failed to load library {path}: the model's folder does not contain it"
        wanted = model.folder.relative(posixpath.basename(path))
        hint = f"add the library, and write {_SINGLE_MODEL_FOLDER}{wanted}"
        yield Problem(message, place, hint)


def _has_library(model: ModelUnderCheck, path: str, *, inside: bool) -> bool:
    """Whether a library of custom operators is where the server looks for it."""
    if inside and model.folder.path != ".":
        return model.folder.exists("..", path.removeprefix(_SINGLE_MODEL_FOLDER).lstrip("/"))
    if not path.startswith("/"):
        # the server looks in its working directory, and for a bare name where the loader looks
        return False
    name = posixpath.basename(path)
    return any(
        name in names
        for names in (model.folder.entries, *map(model.folder.list, model.versions_to_load))
    )
