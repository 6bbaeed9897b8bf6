"""Finds operators of an ONNX model that ONNX Runtime does not implement on the CPU for their types.

It runs in the process of ``onnx_inference``, on a model with inferred types.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from onnx import onnx_ml_pb2 as proto
from onnx.onnx_cpp2py_export import defs

from triton_model_check.facts.backend_releases import has_kernel

_DOMAINS = {"": "ai.onnx", "ai.onnx.ml": "ai.onnx.ml"}
# The runtime turns a Constant into an initializer before it looks for kernels.
_WITHOUT_KERNEL = frozenset({"Constant"})
_TENSORS = {number: name.lower() for name, number in proto.TensorProto.DataType.items() if number}
_FIRST_OPSET_WITH_CASTS = 6

_Types = Mapping[str, str]


class _Use(NamedTuple):
    """An operator with the operator set of its domain, and the types of its tensors;
    "" is unknown.
    """

    domain: str
    operator: str
    opset: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def missing_kernel(model: Any, release: str) -> str | None:
    """Return which operator of the model has no implementation in ONNX Runtime ``release``,
    or ``None``.
    """
    opsets = {each.domain: each.version for each in model.opset_import}
    opsets.setdefault("", opsets.get("ai.onnx", 0))
    functions = {(each.domain, each.name) for each in model.functions}
    for node, types in _nodes(model.graph, {}):
        if (node.domain, node.op_type) in functions:
            continue
        domain = "" if node.domain == "ai.onnx" else node.domain
        use = _Use(
            domain,
            node.op_type,
            opsets.get(domain, 0),
            tuple([types.get(name, "") for name in node.input]),
            tuple([types.get(name, "") for name in node.output]),
        )
        if not _is_implemented(use, opsets[""], release):
            since = defs.get_schema(use.operator, use.opset, domain).since_version
            return f"Could not find an implementation for {node.op_type}({since})"
    return None


@lru_cache(maxsize=10_000)
def _is_implemented(use: _Use, standard_opset: int, release: str) -> bool:
    """Return whether there is a kernel, or this is not known."""
    schema = _schema(use)
    if schema is None:
        return True
    bound = _bound_types(schema, use)
    choices = [bound]
    if "float16" in bound.values() and standard_opset >= _FIRST_OPSET_WITH_CASTS:
        # The runtime casts to float where it has no kernel for float16.
        choices.append(
            {name: "float" if given == "float16" else given for name, given in bound.items()}
        )
    operator = (_DOMAINS[use.domain], use.operator, schema.since_version)
    is_kernel = any(has_kernel(*operator, each, release) for each in choices)
    return is_kernel or _is_function(schema, use.opset)


def _is_function(schema: Any, opset: int) -> bool:
    """Return whether the runtime replaces the operator by others, whose kernels are not checked.

    It uses a fixed function only if none of its operators has changed since it was written.
    """
    if any(since <= opset for since in schema.context_dependent_function_opset_versions):
        return True
    written = max((since for since in schema.function_opset_versions if since <= opset), default=0)
    if not written:
        return False
    body = proto.FunctionProto()
    body.ParseFromString(schema.get_function_with_opset_version(written))
    return all(_since(node.op_type, written) == _since(node.op_type, opset) for node in body.node)


def _since(operator: str, opset: int) -> int:
    return int(defs.get_schema(operator, opset).since_version)


def _nodes(graph: Any, outside: _Types) -> Iterator[tuple[Any, _Types]]:
    """Yield each operator with the types of the values that it can read."""
    types = {**outside}
    types.update(
        (each.name, _type_name(each.type))
        for each in (*graph.input, *graph.value_info, *graph.output)
    )
    types.update((each.name, _tensor_name(each.data_type)) for each in graph.initializer)
    for node in graph.node:
        yield node, types
        for attribute in node.attribute:
            for below in (
                (attribute.g, *attribute.graphs) if attribute.HasField("g") else attribute.graphs
            ):
                yield from _nodes(below, types)


def _type_name(given: Any) -> str:
    """Return the name that kernels have for a type, or "" if there is none."""
    if given.HasField("sequence_type"):
        element = _type_name(given.sequence_type.elem_type)
        return f"seq(tensor({element}))" if element else ""
    return _tensor_name(given.tensor_type.elem_type) if given.HasField("tensor_type") else ""


def _tensor_name(number: int) -> str:
    return _TENSORS.get(number, "")


def _schema(use: _Use) -> Any:
    if use.domain not in _DOMAINS or not use.opset or use.operator in _WITHOUT_KERNEL:
        return None
    try:
        return defs.get_schema(use.operator, use.opset, use.domain)
    except defs.SchemaError:
        return None


def _bound_types(schema: Any, use: _Use) -> _Types:
    """Return the known types by type constraint and by argument."""
    bound: dict[str, str] = {}
    for arguments, types in ((schema.inputs, use.inputs), (schema.outputs, use.outputs)):
        for index, given in enumerate(types):
            argument = arguments[min(index, len(arguments) - 1)]
            if not given or (not argument.is_homogeneous and index >= len(arguments) - 1):
                continue
            bound.setdefault(argument.type_str, given)
            bound.setdefault(argument.name, given)
    return bound
