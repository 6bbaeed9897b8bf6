"""Infers the shapes of an ONNX model's outputs with the ``onnx`` package, without reading the weights.

The backend compares the configuration with the shapes that ONNX Runtime infers, not with those that the
file declares (rule I4). ONNX Runtime uses the inference functions of the ``onnx`` package.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from constructs_triton.model_files.protobuf_wire import (
    Field,
    MessageReader,
    TooLargeError,
    encode_varint,
)

__all__ = ["Inference", "Shape", "infer"]

Shape = tuple[int, ...] | None
_LARGEST_KEPT_BYTES = 1024
_SMALL_FILE_BYTES = 256 << 10
_LARGEST_SKELETON_BYTES = 64 << 20
_MOST_MESSAGES_DEEP = 100
_LONGEST_REASON = 300
# Fields of onnx.proto: those that lead to tensors, those that hold a tensor's elements, documentation.
_ELEMENTS = frozenset({4, 5, 6, 7, 9, 10, 11})
_TENSOR: dict[int, Any] = {}
_SPARSE_TENSOR = {1: _TENSOR, 2: _TENSOR}
_GRAPH: dict[int, Any] = {5: _TENSOR, 15: _SPARSE_TENSOR}
_ATTRIBUTE = {5: _TENSOR, 6: _GRAPH, 10: _TENSOR, 11: _GRAPH, 22: _SPARSE_TENSOR, 23: _SPARSE_TENSOR}
_NODE = {5: _ATTRIBUTE}
_GRAPH[1] = _NODE
_MODEL = {7: _GRAPH, 25: {7: _NODE}}
# These contain graphs, which the check of one operator does not know the names of.
_WITH_GRAPHS = frozenset({"If", "Loop", "Scan"})
_STANDARD_DOMAINS = frozenset({"", "ai.onnx", "ai.onnx.ml"})


@dataclass(frozen=True, slots=True)
class Inference:
    """The shapes of the outputs by name, or why there are none.

    ``fault`` is why the runtime refuses an operator or a type. A shape of ``None`` has rank 0 or is unknown.
    """

    shapes: Mapping[str, Shape] | None = None
    fault: str | None = None
    not_checked: str = ""


def infer(message: MessageReader) -> Inference:
    """Check the operators of a model, and infer the shapes of its outputs."""
    onnx = _import_onnx()
    if onnx is None:
        extra = "pip install 'constructs-triton[onnx]'"
        return Inference(not_checked=f"operators and output shapes not checked: run `{extra}`")
    try:
        return _judged(onnx, onnx.load_model_from_string(_without_weights(message)))
    except Exception as error:  # the package and its C++ code raise errors of many types
        reason = " ".join(str(error).split())[:_LONGEST_REASON]
        return Inference(not_checked=f"operators and output shapes not checked: {reason}")


def _judged(onnx: Any, model: Any) -> Inference:
    if _is_newer_than(onnx, model):
        reason = f"the installed onnx {onnx.__version__} is older than the model; upgrade it"
        return Inference(not_checked=f"operators and output shapes not checked: {reason}")
    fault = _invalid_operator(onnx, model)
    return Inference(fault=fault) if fault else _inferred(onnx, model)


@cache
def _import_onnx() -> Any:
    try:
        import onnx
        import onnx.checker
        import onnx.shape_inference
    except ImportError:
        return None
    return onnx


def _is_newer_than(onnx: Any, model: Any) -> bool:
    known: dict[str, int] = {}
    for domain, version in onnx.helper.OP_SET_ID_VERSION_MAP:
        known[domain] = max(version, known.get(domain, 0))
    known[""] = known["ai.onnx"]
    return any(each.version > known.get(each.domain, each.version) for each in model.opset_import)


# Operators and types.


def _invalid_operator(onnx: Any, model: Any) -> str | None:
    """Return why an operator of the model is not valid, or ``None``."""
    context = onnx.checker.C.CheckerContext()
    context.ir_version = model.ir_version or onnx.IR_VERSION_2017_11_3
    context.opset_imports = {each.domain: each.version for each in model.opset_import}
    for node in _nodes_to_check(onnx, model):
        try:
            onnx.checker.check_node(node, context)
        except onnx.checker.ValidationError as error:
            return str(error).split("\n", 1)[0]
    return None


def _nodes_to_check(onnx: Any, model: Any) -> Iterator[Any]:
    """Yield the operators that the package knows; the runtime has further ones in the same domains."""
    functions = {(each.domain, each.name) for each in model.functions}
    imported = {each.domain for each in model.opset_import}
    for node in model.graph.node:
        is_known = node.domain in _STANDARD_DOMAINS & imported and node.op_type not in _WITH_GRAPHS
        domain = "" if node.domain == "ai.onnx" else node.domain
        if is_known and (node.domain, node.op_type) not in functions and onnx.defs.has(node.op_type, domain):
            yield node


# Shapes.


def _inferred(onnx: Any, model: Any) -> Inference:
    """Infer the shapes; a type that an operator does not allow is a fault."""
    declared = {each.name: _shape(each) for each in model.graph.output}
    for each in model.graph.output:
        each.type.tensor_type.ClearField("shape")
    try:
        inferred = onnx.shape_inference.infer_shapes(model, check_type=True, data_prop=True)
    except onnx.shape_inference.InferenceError as error:
        return Inference(fault=" ".join(str(error).split())[:_LONGEST_REASON])
    return Inference(
        {each.name: _merged(declared[each.name], _shape(each)) for each in inferred.graph.output}
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


# The model without its weights.


def _without_weights(message: MessageReader) -> bytes:
    """Return a small file as it is, because the package reads it faster than it can be copied."""
    return message.content() if message.end <= _SMALL_FILE_BYTES else _skeleton(message)


def _skeleton(message: MessageReader) -> bytes:
    """Copy a model without the elements of large tensors.

    Raises:
        TooLargeError: the copy has more than 64 MiB, or messages are nested more than 100 deep.
    """
    content = b"".join(_copied(message, each, _MODEL, 0) for each in message)
    if len(content) > _LARGEST_SKELETON_BYTES:
        raise TooLargeError(f"the graph has {len(content)} bytes without its weights")
    return content


def _copied(message: MessageReader, each: Field, schema: Mapping[int, Any], depth: int) -> bytes:
    if not each.is_bytes:
        return message.encoded(each)
    if schema is _TENSOR and each.number in _ELEMENTS and each.end - each.start > _LARGEST_KEPT_BYTES:
        return b""
    below = schema.get(each.number)
    content = message.raw(each) if below is None else _copied_message(message.message(each), below, depth + 1)
    return encode_varint(each.number << 3 | 2) + encode_varint(len(content)) + content


def _copied_message(message: MessageReader, schema: Mapping[int, Any], depth: int) -> bytes:
    if depth > _MOST_MESSAGES_DEEP:
        raise TooLargeError(f"messages are nested more than {_MOST_MESSAGES_DEEP} deep")
    return b"".join([_copied(message, each, schema, depth) for each in message])
