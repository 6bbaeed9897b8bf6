"""Copies an ONNX model without its weights: each large constant becomes an input of the graph.

ONNX Runtime needs the type and the shape of a weight to load a model, and not its elements. So a
model of gigabytes is loaded as fast as its graph. Integers are kept where they may be part of a
shape.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from constructs_triton_core.untrusted.budget import OverBudgetError
from triton_model_check.model_files.onnx_tensors import OnnxTensor, read_tensor
from triton_model_check.model_files.protobuf_wire import Field, MessageReader, signed
from triton_model_check.model_files.varint import encode_varint

__all__ = ["without_weights"]

_LARGEST_KEPT_BYTES = 1 << 10
_LARGEST_KEPT_INTEGERS = 1 << 20
_LARGEST_COPY_BYTES = 64 << 20
# int32, int64 and bool may decide on shapes. A list of strings cannot be an input in all releases.
_INTEGERS = frozenset({6, 7, 9})
_STRING = 8
# Fields of onnx.proto.
_MODEL_GRAPH = 7
_GRAPH_NODE, _GRAPH_INITIALIZER, _GRAPH_INPUT = 1, 5, 11
_NODE_OUTPUT = 2
_NODE_OPERATOR = 4
_NODE_ATTRIBUTE = 5
_ATTRIBUTE_TENSOR = 5
_TENSOR_DIMS = 1
_TENSOR_RAW = 9
_TENSOR_EXTERNAL = 13
_TENSOR_LOCATION = 14


def without_weights(message: MessageReader, folder: Path) -> tuple[bytes, bool]:
    """Return a copy of the model, and whether a constant became an input in it.

    Small external data is read from ``folder``, so that the copy needs no other file.

    Raises:
        OverBudgetError: the copy is too large.
        OSError: external data cannot be read.
    """
    copy = _Copy(folder)
    content = bytearray()
    for each in message:
        if each.number == _MODEL_GRAPH:
            content += _field(each.number, copy.of_graph(message.message(each)))
        else:
            content += message.encoded(each)
    return bytes(content), copy.has_declared


class _Copy:
    """A copy that is being made."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.has_declared = False

    def of_graph(self, graph: MessageReader) -> bytes:
        """Return a graph in which large weights are declared as inputs."""
        inputs = {_name(graph.message(each)) for each in graph if each.number == _GRAPH_INPUT}
        content = bytearray()
        for each in graph:
            for part in self._parts(graph, each, inputs):
                content += part
            if len(content) > _LARGEST_COPY_BYTES:
                limit = _LARGEST_COPY_BYTES >> 20
                raise OverBudgetError(f"the graph has more than {limit} MiB without its weights")
        return bytes(content)

    def _parts(self, graph: MessageReader, each: Field, inputs: set[str]) -> Iterator[bytes]:
        """Yield what the copy has in place of a field of the graph."""
        if each.number == _GRAPH_NODE:
            yield self._node(graph, each)
            return
        if each.number != _GRAPH_INITIALIZER:
            yield graph.encoded(each)
            return
        reader = graph.message(each)
        tensor = read_tensor(reader)
        if _is_weight(tensor, each.end - each.start):
            self.has_declared = True
            if tensor.name not in inputs:
                yield _declaration(tensor.name, tensor.data_type, _dims(reader))
        elif tensor.external is not None:
            yield _field(_GRAPH_INITIALIZER, self._with_elements(reader, tensor))
        else:
            yield graph.encoded(each)

    def _node(self, graph: MessageReader, each: Field) -> bytes:
        """Return an operator, or the declaration that takes the place of a large Constant."""
        found = _large_constant(graph.message(each))
        if found is None:
            return graph.encoded(each)
        self.has_declared = True
        return _declaration(*found)

    def _with_elements(self, reader: MessageReader, tensor: OnnxTensor) -> bytes:
        """Return a small tensor with its elements, which are in another file."""
        external = tensor.external
        assert external is not None
        assert tensor.size is not None
        with (self._folder / external.location).open("rb") as file:
            elements = os.pread(file.fileno(), tensor.size, external.offset or 0)
        kept = bytearray()
        for each in reader:
            if each.number not in (_TENSOR_EXTERNAL, _TENSOR_LOCATION):
                kept += reader.encoded(each)
        return bytes(kept) + _field(_TENSOR_RAW, elements)


def _is_weight(tensor: OnnxTensor, length: int) -> bool:
    """Whether no shape depends on the elements of a tensor, as far as its type and size tell."""
    size = tensor.size if tensor.external is not None else length
    if tensor.data_type == _STRING or not tensor.data_type:
        return False
    most = _LARGEST_KEPT_INTEGERS if tensor.data_type in _INTEGERS else _LARGEST_KEPT_BYTES
    return size is None or size > most


def _large_constant(node: MessageReader) -> tuple[str, int, list[int]] | None:
    """Return name, type and dims of a Constant that is a weight, or ``None``."""
    output = ""
    for each in node:
        if each.number == _NODE_OUTPUT:
            output = node.text(each)
        elif each.number == _NODE_OPERATOR and node.text(each) != "Constant":
            return None
        elif each.number == _NODE_ATTRIBUTE:
            attribute = node.message(each)
            tensors = [part for part in attribute if part.number == _ATTRIBUTE_TENSOR]
            for part in tensors:
                reader = attribute.message(part)
                tensor = read_tensor(reader)
                if tensor.external is not None and tensor.data_type in _INTEGERS:
                    raise OverBudgetError("a constant of integers is external data")
                if tensor.external is not None or _is_weight(tensor, part.end - part.start):
                    return output, tensor.data_type, _dims(reader)
    return None


def _dims(tensor: MessageReader) -> list[int]:
    return [signed(each.value) for each in tensor if each.number == _TENSOR_DIMS]


def _name(value: MessageReader) -> str:
    return next((value.text(each) for each in value if each.number == 1), "")


def _declaration(name: str, data_type: int, dims: list[int]) -> bytes:
    """Return a graph input of this type and shape."""
    sizes = b"".join(_field(1, _integer(1, size)) for size in dims)
    tensor_type = _integer(1, data_type) + _field(2, sizes)
    return _field(_GRAPH_INPUT, _field(1, name.encode()) + _field(2, _field(1, tensor_type)))


def _integer(number: int, value: int) -> bytes:
    return encode_varint(number << 3) + encode_varint(value)


def _field(number: int, content: bytes) -> bytes:
    return encode_varint(number << 3 | 2) + encode_varint(len(content)) + content
