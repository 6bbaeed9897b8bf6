"""The operators that ONNX defines as a function of others, as a model of these others.

ONNX Runtime replaces such an operator if it has no kernel for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onnx import onnx_ml_pb2 as proto
from onnx.onnx_cpp2py_export import shape_inference

__all__ = ["function_model"]

_NUMBERS = {name.lower(): number for name, number in proto.TensorProto.DataType.items() if number}


def function_model(schema: Any, node: Any, opset: int, inputs: Sequence[str]) -> Any:
    """Return a model of the operators that replace ``node``, with inferred types.

    ``inputs`` are the types of its tensors. ``None`` if a type is not known, or if the types of
    the operators contradict each other.
    """
    given = [(name, kind) for name, kind in zip(node.input, inputs, strict=True) if name]
    if any(kind not in _NUMBERS for _, kind in given):
        return None
    types = [_tensor_type(kind) for kind in inputs]
    try:
        body = _body(schema, node, opset, types)
        model = _inferred(_as_model(schema, node, opset, body, types))
    except Exception:  # the package's C++ code raises errors of many types
        return None
    # A function that depends on shapes may be empty without them.
    return model if model.graph.node and _has_all_types(model.graph) else None


def _has_all_types(graph: Any) -> bool:
    values = (*graph.input, *graph.value_info, *graph.output)
    typed = {each.name for each in values if each.type.WhichOneof("value")}
    return all(name in typed or not name for node in graph.node for name in node.output)


def _tensor_type(kind: str) -> Any:
    found = proto.TypeProto()
    if kind:
        found.tensor_type.elem_type = _NUMBERS[kind]
    return found


def _body(schema: Any, node: Any, opset: int, types: Sequence[Any]) -> Any:
    """Return the function, which may depend on the attributes and types of the operator."""
    body = proto.FunctionProto()
    dependent = [
        since for since in schema.context_dependent_function_opset_versions if since <= opset
    ]
    if dependent:
        content = schema.get_context_dependent_function_with_opset_version(
            max(dependent), node.SerializeToString(), [each.SerializeToString() for each in types]
        )
    else:
        written = max(since for since in schema.function_opset_versions if since <= opset)
        content = schema.get_function_with_opset_version(written)
    body.ParseFromString(content)
    return body


def _as_model(schema: Any, node: Any, opset: int, body: Any, types: Sequence[Any]) -> Any:
    """Return the operators of a function as a model of their own."""
    model = proto.ModelProto(ir_version=proto.IR_VERSION)
    model.opset_import.extend(body.opset_import)
    if not model.opset_import:
        model.opset_import.add(domain="", version=opset)
    model.graph.name = node.op_type
    for formal, actual, kind in zip(body.input, node.input, types, strict=False):
        if actual:
            model.graph.input.add(name=formal).type.CopyFrom(kind)
    for formal, _ in zip(body.output, node.output, strict=False):
        model.graph.output.add(name=formal)
    model.graph.node.extend(body.node)
    for inner in model.graph.node:
        _resolve(inner, node, schema)
    return model


def _resolve(inner: Any, node: Any, schema: Any) -> None:
    """Replace references to attributes of the function by their values."""
    given = {each.name: each for each in node.attribute}
    resolved = []
    for attribute in inner.attribute:
        if not attribute.ref_attr_name:
            resolved.append(attribute)
            continue
        value = given.get(attribute.ref_attr_name)
        if value is None and attribute.ref_attr_name in schema.attributes:
            value = proto.AttributeProto()
            default = schema.attributes[attribute.ref_attr_name].default_value
            value.ParseFromString(default.SerializeToString())
        if value is not None and value.type:
            found = proto.AttributeProto()
            found.CopyFrom(value)
            found.name = attribute.name
            resolved.append(found)
    copies = [proto.AttributeProto.FromString(each.SerializeToString()) for each in resolved]
    del inner.attribute[:]
    inner.attribute.extend(copies)


def _inferred(model: Any) -> Any:
    """Return the model with types; shapes are not given, so none can contradict another."""
    content = shape_inference.infer_shapes(
        model.SerializeToString(), check_type=True, strict_mode=True, data_prop=False
    )
    return proto.ModelProto.FromString(content)
