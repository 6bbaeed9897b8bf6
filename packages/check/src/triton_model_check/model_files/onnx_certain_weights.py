"""Which weights of an ONNX model certainly are in the memory of a GPU.

ONNX Runtime replaces what it can compute at load, removes what no output needs, and gives some
operators to the CPU, with their weights. A matrix product of floating-point numbers with something
that depends on an input is none of these: onnxruntime core/optimizer/constant_folding.cc folds only
nodes whose inputs are all constant, and core/providers/cuda has a kernel for it in each release.
"""

from __future__ import annotations

from collections.abc import Iterator

from triton_model_check.model_files.onnx_graph import OnnxGraph, OnnxNode, plain_domain
from triton_model_check.model_files.onnx_tensors import OnnxTensor

_PRODUCTS = frozenset({"Gemm", "MatMul"})
_FLOATING_POINT = frozenset({1, 10})
"""The numbers of FLOAT and FLOAT16 in ``TensorProto.DataType``."""
_READ_NO_CONTENT = frozenset({"Shape", "Size"})
"""Operators whose result does not need their input, so that its producer may be removed."""


def certain_weight_bytes(graph: OnnxGraph) -> int:
    """Return the bytes of the weights of the matrix products of a graph.

    Weights of graphs below it do not count: a branch may never be needed. Initializers with the
    same place in a file count once.
    """
    weights: dict[object, int] = {}
    for tensor in _weights(graph):
        external = tensor.external
        place = tensor.name if external is None else (external.location, external.offset)
        weights[place] = max(tensor.size or 0, weights.get(place, 0))
    return sum(weights.values())


def _weights(graph: OnnxGraph) -> Iterator[OnnxTensor]:
    """Yield the weights of matrix products, which certainly are in the memory of a GPU."""
    variable = _variable_names(graph)
    inputs = {value.name for value in graph.inputs}
    for node in _needed_nodes(graph):
        if node.operator not in _PRODUCTS or plain_domain(node.domain):
            continue
        factors = node.inputs[:2]
        if variable.isdisjoint(factors):
            continue
        for name in factors:
            tensor = graph.initializers.get(name)
            if tensor is None or name in inputs or name in graph.sparse_initializers:
                continue  # an initializer that is an input can be replaced by the caller
            if tensor.data_type in _FLOATING_POINT and tensor.size:
                yield tensor


def _variable_names(graph: OnnxGraph) -> set[str]:
    """Return the tensors that depend on an input, so that they are not computed at load."""
    found = {value.name for value in graph.inputs} - graph.initializers.keys()
    for node in graph.nodes:
        if node.operator not in _READ_NO_CONTENT and not found.isdisjoint(node.reads()):
            found.update(node.outputs)
    return found


def _needed_nodes(graph: OnnxGraph) -> list[OnnxNode]:
    """Return the operators that an output needs."""
    needed = {value.name for value in graph.outputs}
    nodes = []
    for node in reversed(graph.nodes):
        if needed.isdisjoint(node.outputs):
            continue
        nodes.append(node)
        if node.operator not in _READ_NO_CONTENT:
            needed.update(node.reads())
    return nodes
