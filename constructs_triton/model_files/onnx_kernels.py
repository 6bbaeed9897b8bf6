"""Finds operators of an ONNX model that ONNX Runtime does not implement on the CPU for their types.

It runs in the process of ``onnx_inference``, on a model with inferred types.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import onnx

from constructs_triton.facts.onnx_kernels import has_kernel

__all__ = ["missing_kernel"]

_DOMAINS = {"": "ai.onnx", "ai.onnx": "ai.onnx", "ai.onnx.ml": "ai.onnx.ml"}
# The runtime turns a Constant into an initializer before it looks for kernels.
_WITHOUT_KERNEL = frozenset({"Constant"})
_TENSORS = {number: name.lower() for name, number in onnx.TensorProto.DataType.items() if number}
_FIRST_OPSET_WITH_CASTS = 6

_Types = Mapping[str, str]


def missing_kernel(model: Any, release: str) -> str | None:
    """Return which operator of the model has no implementation in ONNX Runtime ``release``, or ``None``."""
    opsets = {each.domain: each.version for each in model.opset_import}
    opsets.setdefault("", opsets.get("ai.onnx", 0))
    functions = {(each.domain, each.name) for each in model.functions}
    known: set[tuple[object, ...]] = set()
    for node, types in _nodes(model.graph, {}):
        use = (
            node.domain,
            node.op_type,
            *(types.get(name, name) for name in (*node.input, "|", *node.output)),
        )
        if use in known:
            continue
        known.add(use)
        if (node.domain, node.op_type) not in functions and not _is_implemented(node, types, opsets, release):
            since = _schema(node, opsets).since_version
            return f"Could not find an implementation for {node.op_type}({since})"
    return None


def _is_implemented(node: Any, types: _Types, opsets: Mapping[str, int], release: str) -> bool:
    """Return whether there is a kernel, or this is not known."""
    schema = _schema(node, opsets)
    if schema is None:
        return True
    bound = _bound_types(schema, node, types)
    choices = [bound]
    if "float16" in bound.values() and opsets[""] >= _FIRST_OPSET_WITH_CASTS:
        # The runtime casts to float where it has no kernel for float16.
        choices.append({name: "float" if given == "float16" else given for name, given in bound.items()})
    operator = (_DOMAINS[node.domain], node.op_type, schema.since_version)
    is_kernel = any(has_kernel(*operator, each, release) for each in choices)
    return is_kernel or _is_function(schema, opsets.get(node.domain, opsets[""]))


def _is_function(schema: Any, opset: int) -> bool:
    """Return whether the runtime replaces the operator by others, whose kernels are not checked.

    It uses a fixed function only if none of its operators has changed since it was written.
    """
    if any(since <= opset for since in schema.context_dependent_function_opset_versions):
        return True
    written = max((since for since in schema.function_opset_versions if since <= opset), default=0)
    if not written:
        return False
    body = onnx.FunctionProto()
    body.ParseFromString(schema.get_function_with_opset_version(written))
    return all(_since(node.op_type, written) == _since(node.op_type, opset) for node in body.node)


def _since(operator: str, opset: int) -> int:
    return int(onnx.defs.get_schema(operator, opset).since_version)


def _nodes(graph: Any, outside: _Types) -> Iterator[tuple[Any, _Types]]:
    """Yield each operator with the types of the values that it can read."""
    types = {**outside}
    types.update(
        (each.name, _type_name(each.type)) for each in (*graph.input, *graph.value_info, *graph.output)
    )
    types.update((each.name, _tensor_name(each.data_type)) for each in graph.initializer)
    for node in graph.node:
        yield node, types
        for attribute in node.attribute:
            for below in (attribute.g, *attribute.graphs) if attribute.HasField("g") else attribute.graphs:
                yield from _nodes(below, types)


def _type_name(given: Any) -> str:
    """Return the name that kernels have for a type, or "" if there is none."""
    if given.HasField("sequence_type"):
        element = _type_name(given.sequence_type.elem_type)
        return f"seq(tensor({element}))" if element else ""
    return _tensor_name(given.tensor_type.elem_type) if given.HasField("tensor_type") else ""


def _tensor_name(number: int) -> str:
    return _TENSORS.get(number, "")


def _schema(node: Any, opsets: Mapping[str, int]) -> Any:
    domain = "" if node.domain == "ai.onnx" else node.domain
    version = opsets.get(domain, 0)
    if domain not in _DOMAINS or not version or node.op_type in _WITHOUT_KERNEL:
        return None
    try:
        return onnx.defs.get_schema(node.op_type, version, domain)
    except onnx.defs.SchemaError:
        return None


def _bound_types(schema: Any, node: Any, types: _Types) -> _Types:
    """Return the known types of the node by type constraint and by argument."""
    bound: dict[str, str] = {}
    for arguments, names in ((schema.inputs, node.input), (schema.outputs, node.output)):
        for index, name in enumerate(names):
            argument = arguments[min(index, len(arguments) - 1)]
            if not name or (not argument.is_homogeneous and index >= len(arguments) - 1):
                continue
            if types.get(name):
                bound.setdefault(argument.type_str, types[name])
                bound.setdefault(argument.name, types[name])
    return bound
