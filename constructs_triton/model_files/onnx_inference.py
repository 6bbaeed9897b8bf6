"""Judges an ONNX model with the ``onnx`` package: its operators, types and output shapes.

It runs in a process with limits, because the package's C++ code may take any time and memory.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import onnx
import onnx.checker
import onnx.shape_inference

from constructs_triton.model_files.onnx_kernels import missing_kernel

__all__ = ["infer_shapes"]

Shape = tuple[int, ...] | None
_Shapes = Mapping[str, Shape]
_LONGEST_REASON = 300
_MOST_VALUES_OF_A_SHAPE = 128
# These contain graphs, which the check of one operator does not know the names of.
_WITH_GRAPHS = frozenset({"If", "Loop", "Scan"})
# Those whose operators the check finds under the name that the node has.
_STANDARD_DOMAINS = frozenset({"", "ai.onnx.ml"})
# Errors of strict inference that the runtime does not report: it sorts the operators, merges shapes that
# contradict each other, and has an older onnx, which checks less.
_CONTRADICTION = "Inferred shape and existing shape differ"
_ACCEPTED = re.compile(
    r"expected to have type but instead is null|external tensors|actual size|one-sided DFT"
    r"|Dimension mismatch in unification|Input 1 expected to have rank 2|One and only one of the attributes"
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
    }
)
# The runtime takes its newest operator set; it reads sparse tensors.
_UNKNOWN = re.compile(r"No opset import|sparse_tensor")
_ERROR = re.compile(r"\[(?:Shape|Type)InferenceError\]")


def infer_shapes(request: bytes) -> bytes:
    """Return an ``Inference`` as JSON.

    ``request`` is a line, and the model. The line is the release of ONNX Runtime if the model runs on the
    CPU, else it is empty.

    Raises:
        MemoryError: the package needs more memory than there is.
    """
    release, _, content = request.partition(b"\n")
    try:
        answer = _judged(onnx.load_model_from_string(content), release.decode())
    except MemoryError:
        raise
    except Exception as error:  # the package and its C++ code raise errors of many types
        answer = {"not_checked": _shortened(error)}
    return json.dumps(answer).encode()


def _shortened(error: Exception) -> str:
    return " ".join(str(error).split())[:_LONGEST_REASON]


def _judged(model: Any, release: str) -> dict[str, Any]:
    if _is_newer(model):
        return {"not_checked": f"the installed onnx {onnx.__version__} is older than the model; upgrade it"}
    fault = _invalid_operator(model)
    return {"fault": fault} if fault else _inferred(model, release)


def _is_newer(model: Any) -> bool:
    known: dict[str, int] = {}
    for domain, version in onnx.helper.OP_SET_ID_VERSION_MAP:
        known[domain] = max(version, known.get(domain, 0))
    known[""] = known["ai.onnx"]
    return any(each.version > known.get(each.domain, each.version) for each in model.opset_import)


# Operators and types.


def _invalid_operator(model: Any) -> str | None:
    """Return why an operator of the model is not valid, or ``None``."""
    context = onnx.checker.C.CheckerContext()
    context.ir_version = model.ir_version or onnx.IR_VERSION_2017_11_3
    context.opset_imports = {each.domain: each.version for each in model.opset_import}
    for node in _nodes_to_check(model):
        try:
            onnx.checker.check_node(node, context)
        except onnx.checker.ValidationError as error:
            return str(error).split("\n", 1)[0]
    return _missing_attribute(model)


def _missing_attribute(model: Any) -> str | None:
    """Return which attribute an operator with graphs lacks; the check of one operator covers the others."""
    opset = next((each.version for each in model.opset_import if each.domain in ("", "ai.onnx")), 0)
    for node in model.graph.node:
        if node.op_type in _WITH_GRAPHS and not node.domain and opset:
            given = {each.name for each in node.attribute}
            schema = onnx.defs.get_schema(node.op_type, opset)
            for name, attribute in schema.attributes.items():
                if attribute.required and name not in given:
                    return f"Required attribute '{name}' is missing in operator {node.op_type}"
    return None


def _nodes_to_check(model: Any) -> Iterator[Any]:
    """Yield the operators that the package knows; the runtime has further ones in the same domains."""
    functions = {(each.domain, each.name) for each in model.functions}
    imported = {each.domain: each.version for each in model.opset_import}
    for node in model.graph.node:
        is_known = node.domain in _STANDARD_DOMAINS & imported.keys() and node.op_type not in _WITH_GRAPHS
        is_function = (node.domain, node.op_type) in functions
        is_external = any(_is_external(each.t) for each in node.attribute)  # the check would read the file
        if not is_known or is_function or is_external:
            continue
        if onnx.defs.has(node.op_type, imported[node.domain], node.domain):
            yield node


# Shapes.


def _inferred(model: Any, release: str) -> dict[str, Any]:
    """Infer the shapes; a type that an operator does not allow or does not produce is a fault."""
    declared = {each.name: _shape(each) for each in model.graph.output}
    types = {each.name: each.type.tensor_type.elem_type for each in model.graph.output}
    for each in model.graph.output:
        each.ClearField("type")
    inner = [each for each in model.graph.value_info if not types.get(each.name)]
    del model.graph.value_info[:]
    model.graph.value_info.extend(inner)
    try:
        inferred, is_doubtful = _infer(model)
    except onnx.shape_inference.InferenceError as error:
        if _UNKNOWN.search(str(error)):
            raise
        return {"fault": _shortened(error)}
    fault = _wrong_type(inferred, types)
    if fault is not None:
        return {"fault": fault}
    found = {each.name: each.type.tensor_type.elem_type for each in inferred.graph.output}
    missing = missing_kernel(inferred, release) if release else None
    answer = {"types": {name: found[name] for name in found if not types[name]}, "missing_kernel": missing}
    shapes = {each.name: _merged(declared[each.name], _shape(each)) for each in inferred.graph.output}
    reason = _unclear(model, declared, shapes, is_doubtful=is_doubtful)
    if reason is None:
        return {**answer, "shapes": shapes}
    unclear = [name for name in shapes if shapes[name] != declared[name]]
    return {**answer, "not_checked": reason, "unclear": unclear}


def _unclear(model: Any, declared: _Shapes, merged: _Shapes, *, is_doubtful: bool) -> str | None:
    """Return why the runtime may infer other shapes, or ``None``."""
    if any(_may_be_a_shape(each) for each in model.graph.initializer):
        return "they may depend on external data"
    if is_doubtful or _has_contradicted_rank(model, declared, merged):
        return "the shapes of the model contradict each other"
    imprecise = {node.op_type for node in model.graph.node} & _LESS_PRECISE
    if imprecise and (merged != declared or None in merged.values()):
        return f"ONNX Runtime infers other shapes of {min(imprecise)} than onnx"
    return None


def _has_contradicted_rank(model: Any, declared: _Shapes, merged: _Shapes) -> bool:
    """Return whether an output may have the inferred rank, and not the rank 0 of a contradiction.

    The runtime infers it again if it has optimized the graph, which it does not where there is one operator.
    """
    is_optimized = len(model.graph.node) > 1
    return is_optimized and any(declared[name] is not None and merged[name] is None for name in merged)


def _may_be_a_shape(tensor: Any) -> bool:
    """Return whether shape inference may need the values of a tensor, which are in another file."""
    return _is_external(tensor) and math.prod(tensor.dims) <= _MOST_VALUES_OF_A_SHAPE


def _is_external(tensor: Any) -> bool:
    return bool(tensor.data_location == onnx.TensorProto.EXTERNAL)


def _wrong_type(inferred: Any, types: Mapping[str, int]) -> str | None:
    # The runtime turns a Constant into an initializer before it compares types.
    constants = {name for node in inferred.graph.node if node.op_type == "Constant" for name in node.output}
    for each in inferred.graph.output:
        produced = each.type.tensor_type.elem_type
        if types[each.name] and each.type.WhichOneof("value") not in (None, "tensor_type"):
            return f"Type Error: the output {each.name} is declared as a tensor, but is none"
        if types[each.name] and produced not in (0, types[each.name]) and each.name not in constants:
            return _type_fault(each.name, types[each.name], produced)
    return None


def _infer(model: Any) -> tuple[Any, bool]:
    """Return the model with inferred shapes, and whether inference has errors that the runtime has not."""
    try:
        return _strictly_inferred(model), False
    except onnx.shape_inference.InferenceError as error:
        text = str(error)
    if _CONTRADICTION in text:
        # What follows from a wrong shape between two operators is no error of the runtime.
        del model.graph.value_info[:]
        with suppress(onnx.shape_inference.InferenceError):
            return _strictly_inferred(model), True
    elif _is_fault(text):
        raise onnx.shape_inference.InferenceError(text)
    return onnx.shape_inference.infer_shapes(model, check_type=True, data_prop=True), True


def _strictly_inferred(model: Any) -> Any:
    return onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)


def _is_fault(text: str) -> bool:
    """Return whether the runtime reports one of the errors of strict inference, too."""
    is_nested = text.count("Inference error(s)") > 1  # in an operator that is a function
    errors = text.split("(op_type:")
    return not is_nested and any(_ERROR.search(each) and not _ACCEPTED.search(each) for each in errors[1:])


def _type_fault(name: str, declared: int, produced: int) -> str:
    given, wanted = (onnx.TensorProto.DataType.Name(each).lower() for each in (declared, produced))
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
    """Combine two shapes as the runtime does; a contradiction gives -1, or ``None`` for the rank."""
    if declared is None or inferred is None:
        return inferred if declared is None else declared
    if len(declared) != len(inferred):
        return None
    return tuple(_merged_size(*sizes) for sizes in zip(declared, inferred, strict=True))


def _merged_size(declared: int, inferred: int) -> int:
    if inferred in (declared, -1):
        return declared
    return inferred if declared == -1 else -1
