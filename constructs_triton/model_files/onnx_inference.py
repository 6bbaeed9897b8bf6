"""Judges an ONNX model with the ``onnx`` package: its operators, types and output shapes.

It runs in a process with limits, because the package's C++ code may take any time and memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import onnx
import onnx.checker
import onnx.shape_inference

__all__ = ["infer_shapes"]

Shape = tuple[int, ...] | None
_LONGEST_REASON = 300
# These contain graphs, which the check of one operator does not know the names of.
_WITH_GRAPHS = frozenset({"If", "Loop", "Scan"})
# Those whose operators the check finds under the name that the node has.
_STANDARD_DOMAINS = frozenset({"", "ai.onnx.ml"})
# Shape errors that the runtime reports too. It accepts a declared shape that contradicts the inferred one.
_SHAPE_ERRORS = (
    "Incompatible dimensions",
    "'axis' must be in [",
    "axis must be in [-rank, rank-1]",
    "for attribute 'axis'",
    "may not have multiple -1 dimensions",
    "Invalid dimension value: -",
    "Invalid position of 0",
    "Invalid attribute perm",
    "Attribute perm for Transpose has repeated value",
    "input does not have rank 2",
    "kernel shape should have",
    "Attribute pads has incorrect size",
)


def infer_shapes(content: bytes) -> bytes:
    """Return JSON with ``shapes`` (the dims of each output), ``fault`` and ``not_checked``; two are null.

    ``types`` are the data types of the outputs without a declared type.

    Raises:
        MemoryError: the package needs more memory than there is.
    """
    shapes = fault = reason = None
    types: dict[str, int] = {}
    try:
        shapes, fault, reason = _judged(onnx.load_model_from_string(content), types)
    except MemoryError:
        raise
    except Exception as error:  # the package and its C++ code raise errors of many types
        reason = " ".join(str(error).split())[:_LONGEST_REASON]
    return json.dumps({"shapes": shapes, "types": types, "fault": fault, "not_checked": reason}).encode()


def _judged(
    model: Any, found_types: dict[str, int]
) -> tuple[dict[str, Shape] | None, str | None, str | None]:
    if _is_newer(model):
        return None, None, f"the installed onnx {onnx.__version__} is older than the model; upgrade it"
    fault = _invalid_operator(model)
    return (None, fault, None) if fault else (*_inferred(model, found_types), None)


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
    return None


def _nodes_to_check(model: Any) -> Iterator[Any]:
    """Yield the operators that the package knows; the runtime has further ones in the same domains."""
    functions = {(each.domain, each.name) for each in model.functions}
    imported = {each.domain for each in model.opset_import}
    for node in model.graph.node:
        is_known = node.domain in _STANDARD_DOMAINS & imported and node.op_type not in _WITH_GRAPHS
        is_function = (node.domain, node.op_type) in functions
        if is_known and not is_function and onnx.defs.has(node.op_type, node.domain):
            yield node


# Shapes.


def _inferred(model: Any, found_types: dict[str, int]) -> tuple[dict[str, Shape] | None, str | None]:
    """Infer the shapes; a type that an operator does not allow or does not produce is a fault."""
    declared = {each.name: _shape(each) for each in model.graph.output}
    types = {each.name: each.type.tensor_type.elem_type for each in model.graph.output}
    for each in model.graph.output:
        each.ClearField("type")
    try:
        inferred = _infer(model)
    except onnx.shape_inference.InferenceError as error:
        if "No opset import" in str(error):  # the runtime takes its newest operator set
            raise
        return None, " ".join(str(error).split())[:_LONGEST_REASON]
    # The runtime turns a Constant into an initializer before it compares types.
    constants = {name for node in model.graph.node if node.op_type == "Constant" for name in node.output}
    for each in inferred.graph.output:
        produced = each.type.tensor_type.elem_type
        if not types[each.name]:
            found_types[each.name] = produced
        elif produced and produced != types[each.name] and each.name not in constants:
            return None, _type_fault(each.name, types[each.name], produced)
    return {each.name: _merged(declared[each.name], _shape(each)) for each in inferred.graph.output}, None


def _infer(model: Any) -> Any:
    try:
        return onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=True)
    except onnx.shape_inference.InferenceError as error:
        if any(words in str(error) for words in _SHAPE_ERRORS):
            raise
    return onnx.shape_inference.infer_shapes(model, check_type=True, data_prop=True)


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
