"""Whether the operators of an ONNX model are valid, as the ``onnx`` package checks each of them.

It runs in the process of ``onnx_inference``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from onnx import onnx_ml_pb2 as proto
from onnx.onnx_cpp2py_export import checker, defs

# These contain graphs, which the check of one operator does not know the names of.
_WITH_GRAPHS = frozenset({"If", "Loop", "Scan", "SequenceMap"})
# ONNX Runtime has a definition of LayerNormalization of its own, and ignores unknown attributes.
_NOT_CHECKED = _WITH_GRAPHS | {"Constant", "LayerNormalization"}
# Those whose operators the check finds under the name that the node has.
_STANDARD_DOMAINS = frozenset({"", "ai.onnx.ml"})
# The runtime replaces it by the operators of its function, also where the package deprecated it.
_DEPRECATED_BUT_LOADED = re.compile("GroupNormalization is deprecated")
# The fields of a tensor that have its elements.
_ELEMENTS = tuple(
    f"{kind}_data" for kind in ("double", "float", "int32", "int64", "raw", "string", "uint64")
)


def invalid_operator(model: Any) -> str | None:
    """Return why an operator of the model is not valid, or ``None``."""
    context = checker.CheckerContext()
    context.ir_version = model.ir_version or proto.IR_VERSION_2017_11_3
    context.opset_imports = _imported(model)
    scope = checker.LexicalScopeContext()
    for node in _nodes_to_check(model):
        try:
            checker.check_node(_with_elements(node).SerializeToString(), context, scope)
        except checker.ValidationError as error:
            if not _DEPRECATED_BUT_LOADED.search(str(error)):
                return str(error).split("\n", 1)[0]
    return _missing_attribute(model)


def _missing_attribute(model: Any) -> str | None:
    """Return which attribute an operator with graphs lacks;
    the check of one operator covers the others.
    """
    versions = [own.version for own in model.opset_import if own.domain in ("", "ai.onnx")]
    opset = versions[0] if versions else 0
    if not opset:
        return None
    for node in model.graph.node:
        if node.op_type in _WITH_GRAPHS and not node.domain:
            given = {attribute.name for attribute in node.attribute}
            schema = defs.get_schema(node.op_type, opset)
            for name, attribute in schema.attributes.items():
                if attribute.required and name not in given:
                    return f"Required attribute '{name}' is missing in operator {node.op_type}"
    return None


def _imported(model: Any) -> dict[str, int]:
    """Return the operator sets of a model: the version of each domain."""
    return {imported.domain: imported.version for imported in model.opset_import}


def _nodes_to_check(model: Any) -> Iterator[Any]:
    """Yield the operators that the package knows; the runtime has further ones in the same domains.

    It does not check a Constant, but turns it into an initializer, which the check of a sparse one
    resembles.
    """
    functions = {(function.domain, function.name) for function in model.functions}
    imported = _imported(model)
    domains = _STANDARD_DOMAINS & imported.keys()
    for node in model.graph.node:
        if node.domain not in domains or (node.domain, node.op_type) in functions:
            continue
        if node.op_type in _NOT_CHECKED and not _is_sparse(node):
            continue
        if defs.has_schema(node.op_type, imported[node.domain], node.domain):
            yield node


def _is_sparse(node: Any) -> bool:
    """Whether an operator has a sparse tensor as an attribute."""
    sparse = proto.AttributeProto.SPARSE_TENSOR
    return any(attribute.type == sparse for attribute in node.attribute)


def _with_elements(node: Any) -> Any:
    """Return the operator with an element in each tensor whose own are in another file or were not
    read.

    The check looks at them, and at the shape that they must fit.
    """
    if not any(map(_is_elsewhere, node.attribute)):
        return node
    filled = proto.NodeProto()
    filled.CopyFrom(node)
    for attribute in filled.attribute:
        for tensor in filter(is_external, (attribute.t, *attribute.tensors)):
            _fill(tensor)
        for sparse in (attribute.sparse_tensor, *attribute.sparse_tensors):
            if is_external(sparse.values) or is_external(sparse.indices):
                _fill_sparse(sparse)
    return filled


def _is_elsewhere(attribute: Any) -> bool:
    """Whether the elements of a tensor of an attribute are in another file, or were not read."""
    tensors = [attribute.t, *attribute.tensors]
    for sparse in (attribute.sparse_tensor, *attribute.sparse_tensors):
        tensors += [sparse.values, sparse.indices]
    return any(map(is_external, tensors))


def _fill_sparse(sparse: Any) -> None:
    """Give a sparse tensor one element, and the index of it, if it has any, else none."""
    _fill(sparse.values)
    count = sparse.values.dims[0]
    index = proto.TensorProto(
        data_type=sparse.indices.data_type, dims=[count], int64_data=[0] * count
    )
    sparse.indices.CopyFrom(index)


def _fill(tensor: Any) -> None:
    """Give a tensor one element if a field has any, else none."""
    size = int(any(getattr(tensor, name) for name in _ELEMENTS) and 0 not in tensor.dims)
    tensor.dims[:] = [size] * (len(tensor.dims) or 1)
    tensor.ClearField("data_location")
    tensor.ClearField("external_data")


def is_external(tensor: Any) -> bool:
    return bool(tensor.data_location == proto.TensorProto.EXTERNAL)
