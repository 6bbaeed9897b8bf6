"""Reads an ONNX model's graph from its protobuf bytes, without the weights.

Field numbers: https://github.com/onnx/onnx/blob/v1.16.0/onnx/onnx.proto
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from typing import NamedTuple

from triton_model_check.model_files.onnx_tensors import ExternalData, OnnxTensor, read_tensor
from triton_model_check.model_files.protobuf_wire import Field, MessageReader, WireError, signed

__all__ = ["OnnxGraph", "read_model"]

# protobuf refuses more than 100 nested messages; a graph within a graph takes three.
_MOST_GRAPHS_DEEP = 32
# What an operator and a function take in time and memory, in steps of the budget of the file.
_STEPS_OF_NODE, _STEPS_OF_FUNCTION = 2, 10

Operator = tuple[str, str]
"""Domain and name of an operator."""


class OnnxValue(NamedTuple):
    """A graph input or output.

    ``type_name`` is ``"tensor"``, or a type that is not supported: ``"sequence"``, ``"map"``, …
    ``element_type`` is the number of ``TensorProto.DataType``. ``shape`` is ``None`` if the file
    has none. ``axes`` has the name of each dim, and "" for a size.
    """

    name: str
    type_name: str
    element_type: int
    shape: tuple[int, ...] | None
    axes: tuple[str, ...] = ()


class OnnxNode(NamedTuple):
    """An operator of a graph, with the names of its inputs, outputs and attributes.

    ``captured`` are the names that its sub-graphs take from the graph around them. ``tensors`` are
    those of its attributes.
    """

    operator: str
    domain: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    captured: tuple[str, ...]
    attributes: tuple[str, ...]
    name: str = ""
    tensors: tuple[OnnxTensor, ...] = ()

    def reads(self) -> tuple[str, ...]:
        """Return the names that the operator and its sub-graphs read."""
        return self.inputs + self.captured


@dataclass
class OnnxGraph:
    """A graph. ``initializers`` has the constants by name."""

    name: str = ""
    inputs: list[OnnxValue] = field(default_factory=list)
    outputs: list[OnnxValue] = field(default_factory=list)
    initializers: dict[str, OnnxTensor] = field(default_factory=dict)
    sparse_initializers: set[str] = field(default_factory=set)
    external_data: list[ExternalData] = field(default_factory=list)
    nodes: list[OnnxNode] = field(default_factory=list)
    graphs_below: list[OnnxGraph] = field(default_factory=list)

    def constants(self) -> Iterator[tuple[str, OnnxTensor]]:
        """Yield the name and the tensor of each operator that has only a tensor."""
        for node in self.nodes:
            if node.operator == "Constant" and len(node.attributes) == len(node.tensors) == 1:
                yield node.outputs[0] if node.outputs else "", node.tensors[0]

    def all_graphs(self) -> Iterator[OnnxGraph]:
        """Yield this graph and all graphs below it."""
        yield self
        for below in self.graphs_below:
            yield from below.all_graphs()

    def all_nodes(self) -> Iterator[OnnxNode]:
        """Yield the operators of this graph and of all graphs below it."""
        for graph in self.all_graphs():
            yield from graph.nodes


@dataclass
class OnnxFunction:
    """An operator of the model's own: its number of inputs,
    its content and the operator sets it imports.
    """

    inputs: int = 0
    nodes: tuple[OnnxNode, ...] = ()
    opsets: dict[str, int] = field(default_factory=dict)

    def missing_imports(self) -> set[str]:
        """Return the domains whose operators it uses without an import."""
        return {plain_domain(node.domain) for node in self.nodes} - self.opsets.keys()


@dataclass
class OnnxModel:
    """A model. ``opsets`` are pairs of a domain and its version, and ``functions`` the model's own
    operators.

    ``ir_version`` is ``None`` if the file has none.
    """

    ir_version: int | None = None
    opsets: list[tuple[str, int]] = field(default_factory=list)
    graph: OnnxGraph | None = None
    functions: dict[Operator, OnnxFunction] = field(default_factory=dict)

    def count_expanded_nodes(self) -> int:
        """Return how many operators there are once each function is replaced by its content.

        The number may double with each function, so that 40 functions expand to 2**40 operators.

        Raises:
            CycleError: a function uses itself.
        """
        sizes: dict[Operator, int] = {}
        used = {name: _operators(function.nodes) for name, function in self.functions.items()}
        for name in TopologicalSorter(used).static_order():
            if name in used:
                sizes[name] = _count(used[name], sizes)
        return _count(_operators(self.graph.all_nodes() if self.graph is not None else ()), sizes)


def _operators(nodes: Iterable[OnnxNode]) -> Counter[Operator]:
    return Counter((node.domain, node.operator) for node in nodes)


def _count(operators: Counter[Operator], sizes: Mapping[Operator, int]) -> int:
    return sum(times * (1 + sizes.get(name, 0)) for name, times in operators.items())


def read_model(message: MessageReader) -> OnnxModel:
    """Read a ``ModelProto``.

    Raises:
        WireError: the bytes are not a protobuf message, or fields have the wrong type.
        OverBudgetError: it has more fields and values than a file of its size needs.
    """
    model = OnnxModel()
    for each in message:
        if each.number == 1:
            model.ir_version = signed(each.value)
        elif each.number == 7:
            model.graph = _graph(message.message(each), 0, model.graph)  # protobuf merges several
        elif each.number == 8:
            model.opsets.append(_opset(message.message(each)))
        elif each.number == 25:
            name, function = _function(message.message(each))
            model.functions.setdefault(name, function)
    return model


def _opset(message: MessageReader) -> tuple[str, int]:
    domain, version = "", 0
    for each in message:
        if each.number == 1:
            domain = message.text(each)
        elif each.number == 2:
            version = each.value
    return domain, version


def _function(message: MessageReader) -> tuple[Operator, OnnxFunction]:
    """Read a ``FunctionProto``; return what calls it, and the function."""
    message.keep(_STEPS_OF_FUNCTION)
    name = domain = ""
    body = OnnxGraph()
    inputs = 0
    opsets: dict[str, int] = {}
    for each in message:
        if each.number == 1:
            name = message.text(each)
        elif each.number == 4:
            inputs += 1
        elif each.number == 7:
            body.nodes.append(_node(message.message(each), body, 0))
        elif each.number == 9:
            imported, version = _opset(message.message(each))
            opsets[plain_domain(imported)] = version
        elif each.number == 10:
            domain = message.text(each)
    return (domain, name), OnnxFunction(inputs, tuple(body.all_nodes()), opsets)


def plain_domain(domain: str) -> str:
    """Return the one of two names that the domain of standard operators has."""
    return "" if domain == "ai.onnx" else domain


def _graph(message: MessageReader, depth: int, begun: OnnxGraph | None = None) -> OnnxGraph:
    """Read a ``GraphProto``, which may have several parts."""
    if depth > _MOST_GRAPHS_DEEP:
        raise WireError(f"graphs are nested more than {_MOST_GRAPHS_DEEP} deep")
    graph = begun or OnnxGraph()
    readers: Mapping[int, Callable[[Field], None]] = {
        1: lambda each: graph.nodes.append(_node(message.message(each), graph, depth)),
        2: lambda each: setattr(graph, "name", message.text(each)),
        5: lambda each: _initializer(message.message(each), graph),
        11: lambda each: graph.inputs.append(_value(message.message(each))),
        12: lambda each: graph.outputs.append(_value(message.message(each))),
        15: lambda each: _sparse_initializer(message.message(each), graph),
    }
    for each in message:
        if each.number in readers:
            readers[each.number](each)
    return graph


def _node(message: MessageReader, graph: OnnxGraph, depth: int) -> OnnxNode:
    """Read a ``NodeProto`` with the graphs in its attributes."""
    message.keep(_STEPS_OF_NODE)
    operator = domain = own_name = ""
    inputs: list[str] = []
    outputs: list[str] = []
    captured: list[str] = []
    attributes: list[str] = []
    tensors: list[OnnxTensor] = []
    for each in message:
        if each.number == 1:
            inputs.append(message.text(each))
        elif each.number == 2:
            outputs.append(message.text(each))
        elif each.number == 3:
            own_name = message.text(each)
        elif each.number == 4:
            operator = message.text(each)
        elif each.number == 7:
            domain = message.text(each)
        elif each.number == 5:
            name, below = _attribute(message.message(each), graph, depth, tensors)
            attributes.append(name)
            captured += below
    graph.external_data += [each.external for each in tensors if each.external is not None]
    names = tuple(inputs), tuple(outputs), tuple(captured), tuple(attributes)
    return OnnxNode(operator, domain, *names, own_name, tuple(tensors))


def _attribute(
    message: MessageReader, graph: OnnxGraph, depth: int, tensors: list[OnnxTensor]
) -> tuple[str, list[str]]:
    """Read an attribute: its name, and the names that its graphs take from
    the graph around them.
    """
    name = ""
    captured: list[str] = []
    for each in message:
        if each.number == 1:
            name = message.text(each)
        elif each.number in (6, 11):
            below = _graph(message.message(each), depth + 1)
            graph.graphs_below.append(below)
            names = _names_from_outside(below)
            message.keep(len(names))
            captured += names
        elif each.number in (5, 10):
            tensors.append(read_tensor(message.message(each)))
    return name, captured


def _names_from_outside(graph: OnnxGraph) -> list[str]:
    """Return the names that a graph reads, and that nothing in it defines."""
    inside = {tensor.name for tensor in graph.inputs} | graph.initializers.keys()
    read: list[str] = []
    for node in graph.nodes:
        inside.update(node.outputs)
        read += node.reads()
    read += [tensor.name for tensor in graph.outputs]
    return [name for name in read if name and name not in inside]


def _initializer(message: MessageReader, graph: OnnxGraph) -> None:
    tensor = read_tensor(message)
    graph.initializers[tensor.name] = tensor
    if tensor.external is not None:
        graph.external_data.append(tensor.external)


def _sparse_initializer(message: MessageReader, graph: OnnxGraph) -> None:
    for each in message:
        if each.number == 1:
            tensor = read_tensor(message.message(each))
            graph.initializers[tensor.name] = tensor
            graph.sparse_initializers.add(tensor.name)


# TypeProto: which field is set says which type it is.
_TYPES = {1: "tensor", 4: "sequence", 5: "map", 7: "opaque", 8: "sparse tensor", 9: "optional"}


class _Axis(NamedTuple):
    """A dim: its size, or -1 and its name."""

    size: int
    name: str


_Shape = tuple[_Axis, ...] | None


def _value(message: MessageReader) -> OnnxValue:
    """Read a ``ValueInfoProto``."""
    name, type_name, element_type, shape = "", "untyped", 0, None
    for each in message:
        if each.number == 1:
            name = message.text(each)
        elif each.number == 2:  # protobuf merges several
            type_name, element_type, shape = _type(
                message.message(each), type_name, element_type, shape
            )
    sizes = None if shape is None else tuple([axis.size for axis in shape])
    axes = tuple([axis.name for axis in shape or ()])
    return OnnxValue(name, type_name, element_type, sizes, axes)


def _type(
    message: MessageReader, type_name: str, element_type: int, shape: _Shape
) -> tuple[str, int, _Shape]:
    for each in message:
        type_name = _TYPES.get(each.number, type_name)
        if each.number == 1:
            element_type, shape = _tensor_type(message.message(each), element_type, shape)
    return type_name, element_type, shape


def _tensor_type(message: MessageReader, element_type: int, shape: _Shape) -> tuple[int, _Shape]:
    for each in message:
        if each.number == 1:
            element_type = each.value
        elif each.number == 2:
            dims = message.message(each)
            shape = tuple([_dimension(dims.message(dim)) for dim in dims if dim.number == 1])
    return element_type, shape


def _dimension(message: MessageReader) -> _Axis:
    """Return a fixed size, or -1 for a name, a negative number or nothing."""
    size, name = -1, ""
    for each in message:
        if each.number == 1:
            size, name = signed(each.value), ""
        elif each.number == 2:
            size, name = -1, message.text(each)
    return _Axis(max(size, -1), name)
