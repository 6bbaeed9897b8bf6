"""How many bytes an ONNX graph generates when it is loaded.

ONNX Runtime computes the operators of constants when it loads a model, so a ConstantOfShape or a
RandomNormal of a few bytes may become a weight of gigabytes. What the graph declares decides how
much memory the process that loads it may take.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from triton_model_check.model_files.onnx_tensors import read_tensor
from triton_model_check.model_files.protobuf_wire import MessageReader, signed

__all__ = ["generated_bytes"]

_LARGEST_ELEMENT_BYTES = 8
_MOST_DIMS = 16
_INT64 = 7
# The input that is the shape of the output.
_SHAPE_INPUTS = {"ConstantOfShape": 0, "Expand": 1}
_WITH_SHAPE_ATTRIBUTE = frozenset({"RandomNormal", "RandomUniform"})
# Fields of onnx.proto.
_MODEL_GRAPH, _GRAPH_NODE, _GRAPH_INITIALIZER = 7, 1, 5
_NODE_INPUT = 1
_NODE_OUTPUT = 2
_NODE_OPERATOR = 4
_NODE_ATTRIBUTE = 5
_ATTRIBUTE_NAME = 1
_ATTRIBUTE_TENSOR = 5
_ATTRIBUTE_INTEGERS = 8
_TENSOR_INTEGERS, _TENSOR_NAME, _TENSOR_RAW = 7, 8, 9


class _Node(NamedTuple):
    operator: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    attributes: Mapping[str, MessageReader]


def generated_bytes(model: MessageReader) -> int:
    """Return the size of the tensors whose shapes are constants of the main graph."""
    shapes: dict[str, list[int]] = {}
    used: list[str] = []
    total = 0
    for field in model:
        graph = model.message(field) if field.number == _MODEL_GRAPH else ()
        for part in graph:
            assert isinstance(graph, MessageReader)
            if part.number == _GRAPH_INITIALIZER:
                tensor = graph.message(part)
                shapes[_text(tensor, _TENSOR_NAME)] = _elements(tensor)
            elif part.number == _GRAPH_NODE:
                node = _node(graph.message(part))
                index = _SHAPE_INPUTS.get(node.operator, len(node.inputs))
                used += node.inputs[index : index + 1]
                if node.operator in _WITH_SHAPE_ATTRIBUTE and "shape" in node.attributes:
                    total += _size(list(_integers(node.attributes["shape"], _ATTRIBUTE_INTEGERS)))
                if node.operator == "Constant" and "value" in node.attributes and node.outputs:
                    shapes[node.outputs[0]] = _constant(node.attributes["value"])
    return total + sum(_size(shapes[name]) for name in used if name in shapes)


def _size(dims: Sequence[int]) -> int:
    return _LARGEST_ELEMENT_BYTES * math.prod(max(dim, 0) for dim in dims) if dims else 0


def _node(message: MessageReader) -> _Node:
    """Read a ``NodeProto``."""
    operator = ""
    inputs, outputs = [], []
    attributes = {}
    for field in message:
        if field.number == _NODE_OPERATOR:
            operator = message.text(field)
        elif field.number == _NODE_INPUT:
            inputs.append(message.text(field))
        elif field.number == _NODE_OUTPUT:
            outputs.append(message.text(field))
        elif field.number == _NODE_ATTRIBUTE:
            attribute = message.message(field)
            attributes[_text(attribute, _ATTRIBUTE_NAME)] = attribute
    return _Node(operator, inputs, outputs, attributes)


def _text(message: MessageReader, number: int) -> str:
    return next((message.text(field) for field in message if field.number == number), "")


def _constant(attribute: MessageReader) -> list[int]:
    for field in attribute:
        if field.number == _ATTRIBUTE_TENSOR:
            return _elements(attribute.message(field))
    return []


def _elements(message: MessageReader) -> list[int]:
    """Return the elements of a tensor that may be a shape, or nothing."""
    tensor = read_tensor(message)
    is_shape = tensor.data_type == _INT64 and 0 < (tensor.elements or 0) <= _MOST_DIMS
    if not is_shape or tensor.external is not None:
        return []
    for field in message:
        if field.number == _TENSOR_RAW:
            raw = message.raw(field)
            return [
                int.from_bytes(raw[start : start + 8], "little", signed=True)
                for start in range(0, len(raw), 8)
            ]
    return list(_integers(message, _TENSOR_INTEGERS))


def _integers(message: MessageReader, number: int) -> Iterator[int]:
    """Yield the integers of a field, packed or one by one."""
    for field in message:
        if field.number != number:
            continue
        if not field.is_bytes:
            yield signed(field.value)
            continue
        value = shift = 0
        for byte in message.raw(field)[: 10 * _MOST_DIMS]:
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                yield signed(value)
                value = shift = 0
