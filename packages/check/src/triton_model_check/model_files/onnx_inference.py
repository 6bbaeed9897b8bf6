"""Judges an ONNX model with the ``onnx`` package: its operators, types and output shapes.

It runs in a process with limits, because the package's C++ code may take any time and memory. It
imports the C++ code and the messages, not the package itself, which would import NumPy.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Mapping
from functools import cache
from typing import Any

from onnx import onnx_ml_pb2 as proto
from onnx.onnx_cpp2py_export import defs, shape_inference

from triton_model_check.model_files.onnx_certainty import name_input_sizes, uncertain_sizes
from triton_model_check.model_files.onnx_kernels import missing_kernel
from triton_model_check.model_files.onnx_operators import invalid_operator, is_external

Shape = tuple[int, ...] | None
_Shapes = Mapping[str, Shape]
_LONGEST_REASON = 300
_MOST_VALUES_OF_A_SHAPE = 128
_CONTRADICT_EACH_OTHER = "the shapes of the model contradict each other"
_DEPEND_ON_WEIGHTS = "they depend on weights, which are not read"
# in the error if inference needs elements that are in a file or were not read
_NOT_READ = "external tensors"
# Errors of strict inference that the runtime does not report: it sorts the operators, merges shapes
# that contradict each other, and has an older onnx, which checks less.
_CONTRADICTION = "Inferred shape and existing shape differ"
_ACCEPTED = re.compile(
    r"expected to have type but instead is null|external tensors|one-sided DFT"
    r"|Dimension mismatch in unification|Input 1 expected to have rank 2"
    r"|One and only one of the attributes"
    r"|dilations must only contain positive"
    r"|^(Conv|ConvInteger|QLinearConv)\b.*Input tensor must have at least 3"
    r"|^(ConvTranspose|GreaterOrEqual|LessOrEqual|MeanVarianceNormalization)\b"
)
# Operators whose shapes the runtime infers less precisely than the package.
_LESS_PRECISE = frozenset(
    {
        "CenterCropPad",
        "Einsum",
        "GreaterOrEqual",
        "GroupNormalization",
        "LessOrEqual",
        "MeanVarianceNormalization",
        "NegativeLogLikelihoodLoss",
        "OneHotEncoder",
        "Optional",
        "PRelu",
        "ReduceL1",
        "ReduceL2",
        "ReduceLogSumExp",
        "SequenceMap",
    }
)
# The runtime takes its newest operator set, it reads sparse tensors, and some releases have the
# types of fewer bits in older operator sets than those that define them.
_UNKNOWN = re.compile(
    r"No opset import|sparse_tensor|output has unsupported type tensor\((u?int[24]|float[48])"
)
_ERROR = re.compile(r"\[(?:Shape|Type)InferenceError\]")


def infer_shapes(request: bytes) -> bytes:
    """Return an ``Inference`` as JSON.

    ``request`` is a line, and the model. The line is the release of ONNX Runtime if the model runs
    on the CPU, else it is empty.
    """
    release, _, content = request.partition(b"\n")
    try:
        answer = _judged(_parsed(content), release.decode())
    except MemoryError:
        raise
    except Exception as error:  # the package and its C++ code raise errors of many types
        answer = {"not_checked": _shortened(error)}
    return json.dumps(answer).encode()


def _shortened(error: Exception) -> str:
    return " ".join(str(error).split())[:_LONGEST_REASON]


def _judged(model: Any, release: str) -> dict[str, Any]:
    if any(each.version > _newest_opset(each.domain) for each in model.opset_import):
        return {"not_checked": "the installed onnx is older than the model; upgrade it"}
    for node in model.graph.node:
        if node.op_type == "Constant":
            del node.attribute[1:]  # the runtime reads the first only
    fault = invalid_operator(model)
    return {"fault": fault} if fault else _inferred(model, release)


def _parsed(content: bytes) -> Any:
    model = proto.ModelProto()
    model.ParseFromString(content)
    return model


@cache
def _newest_opset(domain: str) -> float:
    """Return the newest operator set that the package knows;
    any in a domain that it does not know.
    """
    _, newest = defs.schema_version_map().get(domain if domain != "ai.onnx" else "", (0, math.inf))
    return newest


def _inferred(model: Any, release: str) -> dict[str, Any]:
    """Infer the shapes; a type that an operator does not allow or does not produce is a fault."""
    declared = {output.name: _shape(output) for output in model.graph.output}
    types = {output.name: output.type.tensor_type.elem_type for output in model.graph.output}
    _forget_outputs(model, types)
    try:
        inferred, doubt = _infer(model)
    except shape_inference.InferenceError as error:
        if _UNKNOWN.search(str(error)):
            raise
        return {"fault": _shortened(error)}
    fault = _wrong_type(inferred, types)
    if fault is not None:
        return {"fault": fault}

    answer = _types_and_kernels(inferred, types, release)
    shapes = {
        output.name: _merged(declared[output.name], _shape(output))
        for output in inferred.graph.output
    }
    reason = _unclear(model, declared, shapes, doubt) or _squeezed(inferred)
    if reason is not None:
        unclear = [name for name in shapes if shapes[name] != declared[name]]
        return {**answer, "not_checked": reason, "unclear": unclear}
    uncertain = uncertain_sizes(inferred, lambda: _with_values(model))
    return {**answer, "shapes": shapes, **_without(shapes, uncertain)}


def _forget_outputs(model: Any, types: Mapping[str, int]) -> None:
    """Remove the declared types and shapes of outputs, so that they are inferred.

    ``types`` has the data types of the outputs, by name.
    """
    for output in model.graph.output:
        output.ClearField("type")
    inner = [value for value in model.graph.value_info if not types.get(value.name)]
    del model.graph.value_info[:]
    model.graph.value_info.extend(inner)


def _types_and_kernels(inferred: Any, types: Mapping[str, int], release: str) -> dict[str, Any]:
    """Return the types that outputs do not declare, and the kernel that the release lacks."""
    missing = missing_kernel(inferred, release) if release else None
    found = {output.name: output.type.tensor_type.elem_type for output in inferred.graph.output}
    return {
        "types": {name: data_type for name, data_type in found.items() if not types[name]},
        "missing_kernel": missing.message if missing and missing.is_certain else None,
        "doubtful_kernel": missing.message if missing and not missing.is_certain else "",
    }


def _without(shapes: _Shapes, uncertain: Mapping[str, Collection[int] | None]) -> dict[str, Any]:
    """Return the shapes that are certain, and of the others what is."""
    if not uncertain:
        return {}
    first = {name: (shape or (0,))[0] for name, shape in shapes.items()}
    batched = {
        name: first[name] == -1
        for name, axes in uncertain.items()
        if axes is not None and 0 not in axes
    }
    return {
        "shapes": {name: shape for name, shape in shapes.items() if name not in uncertain},
        "unclear": list(uncertain),
        "batched": batched,
        "depend_on_values": list(uncertain),
    }


def _unclear(model: Any, declared: _Shapes, merged: _Shapes, doubt: str) -> str | None:
    """Return why the runtime may infer other shapes, or ``None``."""
    if any(_may_be_a_shape(each) for each in model.graph.initializer):
        return "they may depend on external data"
    if doubt or _has_contradicted_rank(model, declared, merged):
        return doubt or _CONTRADICT_EACH_OTHER
    imprecise = {node.op_type for node in model.graph.node} & _LESS_PRECISE
    if imprecise and (merged != declared or None in merged.values()):
        return f"ONNX Runtime infers other shapes of {min(imprecise)} than onnx"
    return None


def _squeezed(inferred: Any) -> str | None:
    """Return why the rank of what a Squeeze without axes returns is not known, or ``None``.

    ONNX Runtime 1.19 to 1.21 removes variable sizes there, other releases infer nothing. The
    models of the package speechmos, which some releases refuse for this, show it.
    """
    fixed = {tensor.name for tensor in inferred.graph.initializer}
    for value in (*inferred.graph.input, *inferred.graph.value_info):
        shape = _shape(value)
        if shape is not None and -1 not in shape:
            fixed.add(value.name)

    for node in inferred.graph.node:
        if node.op_type != "Squeeze":
            continue
        has_axes = len(node.input) > 1 or any(each.name == "axes" for each in node.attribute)
        if not has_axes and node.input[0] not in fixed:
            return "ONNX Runtime infers other shapes of Squeeze without axes than onnx"
    return None


def _has_contradicted_rank(model: Any, declared: _Shapes, merged: _Shapes) -> bool:
    """Return whether an output may have the inferred rank, and not the rank 0 of a contradiction.

    The runtime infers it again if it has optimized the graph, which it does not where there is one
    operator.
    """
    is_optimized = len(model.graph.node) > 1
    return is_optimized and any(
        declared[name] is not None and merged[name] is None for name in merged
    )


def _may_be_a_shape(tensor: Any) -> bool:
    """Return whether shape inference may need the values of a tensor, which are in another file."""
    is_small = math.prod(tensor.dims) <= _MOST_VALUES_OF_A_SHAPE
    return is_small and bool(is_external(tensor) and tensor.external_data)


def _wrong_type(inferred: Any, types: Mapping[str, int]) -> str | None:
    """Return what is wrong with the type of an output, or ``None``.

    ``types`` has the declared data types of the outputs by name; 0 is none.
    """
    # The runtime turns a Constant into an initializer before it compares types.
    constants: set[str] = set()
    for node in inferred.graph.node:
        if node.op_type == "Constant":
            constants.update(node.output)

    for output in inferred.graph.output:
        declared = types[output.name]
        if not declared:
            continue
        if output.type.WhichOneof("value") not in (None, "tensor_type"):
            return f"Type Error: the output {output.name} is declared as a tensor, but is none"
        produced = output.type.tensor_type.elem_type
        if produced not in (0, declared) and output.name not in constants:
            return _type_fault(output.name, declared, produced)
    return None


def _infer(model: Any) -> tuple[Any, str]:
    """Return the model with inferred shapes, and why the runtime may infer others or ""."""
    try:
        return _with_shapes(model), ""
    except shape_inference.InferenceError as error:
        text = str(error)
    doubt = _DEPEND_ON_WEIGHTS if _NOT_READ in text else _CONTRADICT_EACH_OTHER
    if _CONTRADICTION in text:
        # A wrong shape between two operators is no error of the runtime.
        del model.graph.value_info[:]
        doubt = _CONTRADICT_EACH_OTHER
        try:
            return _with_shapes(model), doubt
        except shape_inference.InferenceError as error:
            text = str(error)
    if _CONTRADICTION not in text and _is_fault(text):
        raise shape_inference.InferenceError(text)
    return _with_shapes(model, is_strict=False), doubt


def _with_shapes(model: Any, *, is_strict: bool = True, follows_values: bool = False) -> Any:
    """Infer the shapes.

    The package follows values wrongly in some graphs, such as a column plus a row, so its errors
    count only without ``follows_values``.
    """
    content = model.SerializeToString()
    inferred = shape_inference.infer_shapes(
        content, check_type=True, strict_mode=is_strict, data_prop=follows_values
    )
    return _parsed(inferred)


def _with_values(model: Any) -> Any:
    """Infer the shapes with values, and without the shapes that the file declares between
    operators.
    """
    named = proto.ModelProto()
    named.CopyFrom(model)
    del named.graph.value_info[:]
    name_input_sizes(named)
    return _with_shapes(named, is_strict=False, follows_values=True)


def _is_fault(text: str) -> bool:
    """Return whether the runtime reports one of the errors of strict inference, too."""
    is_nested = text.count("Inference error(s)") > 1  # in an operator that is a function
    errors = text.split("(op_type:")
    return not is_nested and any(
        _ERROR.search(each) and not _ACCEPTED.search(each) for each in errors[1:]
    )


def _type_fault(name: str, declared: int, produced: int) -> str:
    given, wanted = (proto.TensorProto.DataType.Name(each).lower() for each in (declared, produced))
    return (
        f"Type Error: Type (tensor({given})) of output arg ({name}) does not match "
        f"expected type (tensor({wanted}))"
    )


def _shape(value: Any) -> Shape:
    if not value.type.tensor_type.HasField("shape"):
        return None
    dims = value.type.tensor_type.shape.dim
    return tuple(max(each.dim_value, -1) if each.HasField("dim_value") else -1 for each in dims)


def _merged(declared: Shape, inferred: Shape) -> Shape:
    """Combine two shapes as the runtime does; a contradiction gives -1,
    or ``None`` for the rank.
    """
    if declared is None or inferred is None:
        return inferred if declared is None else declared
    if len(declared) != len(inferred):
        return None
    return tuple(_merged_size(*sizes) for sizes in zip(declared, inferred, strict=True))


def _merged_size(declared: int, inferred: int) -> int:
    if inferred in (declared, -1):
        return declared
    return inferred if declared == -1 else -1
