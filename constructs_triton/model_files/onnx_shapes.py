"""Infers the shapes of an ONNX model's outputs with the ``onnx`` package, without reading the weights.

The backend compares the configuration with the shapes that ONNX Runtime infers, not with those that the
file declares (rule I4).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from constructs_triton.model_files.protobuf_wire import Field, MessageReader

__all__ = ["Shape", "infer_outputs", "is_onnx_installed", "invalid_node"]

Shape = tuple[int, ...] | None
_LARGEST_KEPT_BYTES = 1024
# Which fields of which messages lead to tensors, and which fields of a tensor hold its elements (onnx.proto).
_ELEMENTS = frozenset({4, 5, 6, 7, 9, 10, 11})
_TENSOR: dict[int, Any] = {}
_SPARSE_TENSOR = {1: _TENSOR, 2: _TENSOR}
_GRAPH: dict[int, Any] = {5: _TENSOR, 15: _SPARSE_TENSOR}
_ATTRIBUTE = {5: _TENSOR, 6: _GRAPH, 10: _TENSOR, 11: _GRAPH, 22: _SPARSE_TENSOR, 23: _SPARSE_TENSOR}
_NODE = {5: _ATTRIBUTE}
_GRAPH[1] = _NODE
_MODEL = {7: _GRAPH, 25: {7: _NODE}}


def is_onnx_installed() -> bool:
    """Whether the ``onnx`` package can be imported."""
    from importlib.util import find_spec  # noqa: PLC0415 - only an ONNX model asks

    return find_spec("onnx") is not None


def infer_outputs(message: MessageReader) -> Mapping[str, Shape]:
    """Return the shape of each graph output as ONNX Runtime infers it; ``None`` is a rank of 0 or unknown."""
    import onnx  # noqa: PLC0415 - an extra

    model = onnx.load_model_from_string(_skeleton(message, _MODEL))
    declared = {each.name: _shape(each) for each in model.graph.output}
    for each in model.graph.output:
        each.type.tensor_type.ClearField("shape")
    try:
        inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    except Exception:  # noqa: BLE001 - the package raises errors of several libraries
        return declared
    return {each.name: _merged(declared[each.name], _shape(each)) for each in inferred.graph.output}


def invalid_node(message: MessageReader) -> str | None:
    """Return why an operator of the model is not valid, or ``None``."""
    import onnx  # noqa: PLC0415 - an extra

    model = onnx.load_model_from_string(_skeleton(message, _MODEL))
    context = onnx.checker.C.CheckerContext()
    context.ir_version = model.ir_version or 3
    context.opset_imports = {each.domain: each.version for each in model.opset_import}
    functions = {(each.domain, each.name) for each in model.functions}
    for node in model.graph.node:
        is_standard = (
            node.domain in ("", "ai.onnx", "ai.onnx.ml") and (node.domain, node.op_type) not in functions
        )
        if is_standard and node.op_type not in ("Constant", "If", "Loop", "Scan"):
            try:
                onnx.checker.check_node(node, context)
            except onnx.checker.ValidationError as error:
                return str(error).split("\n", 1)[0]
    try:
        onnx.shape_inference.infer_shapes(model, check_type=True)
    except onnx.shape_inference.InferenceError as error:
        return " ".join(str(error).split())[:300]
    return None


def _shape(value: Any) -> Shape:
    if not value.type.tensor_type.HasField("shape"):
        return None
    return tuple(
        each.dim_value if each.HasField("dim_value") else -1 for each in value.type.tensor_type.shape.dim
    )


def _merged(declared: Shape, inferred: Shape) -> Shape:
    if declared is None or inferred is None:
        return inferred if declared is None else declared
    if len(declared) != len(inferred):
        return None
    return tuple(_merged_size(*sizes) for sizes in zip(declared, inferred, strict=True))


def _merged_size(declared: int, inferred: int) -> int:
    if declared == inferred or inferred == -1:
        return declared
    return inferred if declared == -1 else -1


def _skeleton(message: MessageReader, schema: Mapping[int, Any]) -> bytes:
    """Copy a message without the elements of large tensors."""
    return b"".join(_copied(message, each, schema) for each in message)


def _copied(message: MessageReader, each: Field, schema: Mapping[int, Any]) -> bytes:
    if not each.is_bytes:
        return message.encoded(each)
    if schema is _TENSOR and each.number in _ELEMENTS and each.end - each.start > _LARGEST_KEPT_BYTES:
        return b""
    below = schema.get(each.number)
    content = message.raw(each) if below is None else _skeleton(message.message(each), below)
    return _varint(each.number << 3 | 2) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*encoded, value))
