"""Finds operators of an ONNX model that ONNX Runtime does not implement on the CPU for their types.

It runs in the process of ``onnx_inference``, on a model with inferred types.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from onnx import onnx_ml_pb2 as proto
from onnx.onnx_cpp2py_export import defs

from triton_model_check.facts.backend_releases import has_kernel
from triton_model_check.model_files.onnx_attributes import Missing, refused_attribute
from triton_model_check.model_files.onnx_functions import function_model

_DOMAINS = {"": "ai.onnx", "ai.onnx.ml": "ai.onnx.ml"}
# The runtime turns a Constant into an initializer before it looks for kernels.
_WITHOUT_KERNEL = frozenset({"Constant"})
_TENSORS = {number: name.lower() for name, number in proto.TensorProto.DataType.items() if number}
_FIRST_OPSET_WITH_CASTS = 6
_FIRST_WITH_KNOWN_FUNCTIONS = (1, 16)
# Types that no release asked has for any operator.
_NOT_IN_THE_RUNTIME = frozenset({"complex64", "complex128", "float8e8m0"})

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


def missing_kernel(model: Any, release: str, *, is_body: bool = False) -> Missing | None:
    """Return which operator of the model has no implementation in ONNX Runtime ``release``,
    or ``None``. One that certainly has none comes before those that may have none.

    ``is_body`` is whether these operators replace another one. Then the runtime replaces only
    operators like CastLike by others again, and not those with a fixed function.
    """
    uncertain: Missing | None = None
    for node, use, standard_opset in _uses(model):
        found = refused_attribute(node, use.opset, release)
        if found is None:
            is_implemented = _is_implemented(use, standard_opset, release)
            if not is_implemented and not (is_body and _has_fixed_function(use)):
                is_implemented = _as_function(node, use, release, is_implemented)
            if not is_implemented:
                found = Missing(_no_implementation(node, use), is_implemented is False)
        if found is not None and found.is_certain:
            return found
        uncertain = uncertain or found
    return uncertain


def single_use(model: Any) -> tuple[str, str, int, Mapping[str, str]] | None:
    """Return domain, name, operator set of the definition and bound types of the only operator.

    Return ``None`` if there are more operators, or if the package does not know the operator.
    """
    uses = [use for _, use, _ in _uses(model)]
    schema = _schema(uses[0]) if len(uses) == 1 else None
    if schema is None:
        return None
    bound = _bound_types(schema, uses[0])
    return _DOMAINS[uses[0].domain], uses[0].operator, schema.since_version, bound


def _uses(model: Any) -> Iterator[tuple[Any, _Use, int]]:
    """Yield each operator that the model does not define itself, and the standard operator set."""
    opsets = {each.domain: each.version for each in model.opset_import}
    opsets.setdefault("", opsets.get("ai.onnx", 0))
    functions = {(each.domain, each.name) for each in model.functions}
    for node, types, fixed in _nodes(model.graph, {}, frozenset()):
        if (node.domain, node.op_type) in functions or _is_folded(node, types, fixed):
            continue
        domain = "" if node.domain == "ai.onnx" else node.domain
        use = _Use(
            domain,
            node.op_type,
            opsets.get(domain, 0),
            tuple([types.get(name, "") for name in node.input]),
            tuple([types.get(name, "") for name in node.output]),
        )
        yield node, use, opsets[""]


def _is_folded(node: Any, types: _Types, fixed: Collection[str]) -> bool:
    """Return whether the runtime computes the shape of fixed sizes before it looks for kernels."""
    if node.op_type != "Shape" or node.domain not in ("", "ai.onnx"):
        return False
    return node.input[0] in fixed and types.get(node.input[0], "") not in _NOT_IN_THE_RUNTIME


def _no_implementation(node: Any, use: _Use) -> str:
    since = defs.get_schema(use.operator, use.opset, use.domain).since_version
    return f"Could not find an implementation for {node.op_type}({since})"


@lru_cache(maxsize=10_000)
def _is_implemented(use: _Use, standard_opset: int, release: str) -> bool | None:
    """Return whether there is a kernel; ``None`` if this is not known."""
    schema = _schema(use)
    if schema is None:
        return True
    bound = _bound_types(schema, use)
    operator = (_DOMAINS[use.domain], use.operator, schema.since_version)
    own = has_kernel(*operator, bound, release)
    is_half = "float16" in bound.values() and standard_opset >= _FIRST_OPSET_WITH_CASTS
    if own or not is_half or _is_function(schema, use.opset):
        return own
    # The runtime casts to float where it has no kernel for float16, and no function.
    single = {name: "float" if given == "float16" else given for name, given in bound.items()}
    cast = has_kernel("ai.onnx", "Cast", _since("Cast", standard_opset), {}, release)
    as_single = has_kernel(*operator, single, release)
    if as_single and cast:
        return True
    return own if as_single is False else None


def _as_function(node: Any, use: _Use, release: str, has_own: bool | None) -> bool | None:
    """Return whether the runtime loads the operators that replace one without a kernel.

    It is not known if they have no kernels, because another release may replace it by others.
    """
    schema = _schema(use)
    if not _is_function(schema, use.opset):
        return has_own
    if tuple(int(part) for part in release.split(".")) < _FIRST_WITH_KNOWN_FUNCTIONS:
        return None
    model = function_model(schema, node, use.opset, use.inputs)
    if model is None or missing_kernel(model, release, is_body=True) is not None:
        return None
    produced = [_type_name(each.type) for each in model.graph.output]
    pairs = zip(use.outputs, produced, strict=False)
    return True if all(wanted in ("", found) for wanted, found in pairs) else None


def _is_function(schema: Any, opset: int) -> bool:
    """Return whether the runtime replaces the operator by others.

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


def _has_fixed_function(use: _Use) -> bool:
    schema = _schema(use)
    return schema is not None and bool(schema.function_opset_versions)


def _since(operator: str, opset: int) -> int:
    return int(defs.get_schema(operator, opset).since_version)


def _nodes(
    graph: Any, outside: _Types, fixed_outside: frozenset[str]
) -> Iterator[tuple[Any, _Types, frozenset[str]]]:
    """Yield each operator with the types of values that it can read, and those of fixed sizes."""
    values = (*graph.input, *graph.value_info, *graph.output)
    fixed = fixed_outside.union(value.name for value in values if _has_fixed_sizes(value.type))
    types = {**outside}
    for value in values:
        types[value.name] = _type_name(value.type)
    for tensor in graph.initializer:
        types[tensor.name] = _tensor_name(tensor.data_type)

    for node in graph.node:
        yield node, types, fixed
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from _nodes(attribute.g, types, fixed)
            for inner in attribute.graphs:
                yield from _nodes(inner, types, fixed)


def _has_fixed_sizes(given: Any) -> bool:
    tensor = given.tensor_type
    return tensor.HasField("shape") and all(dim.HasField("dim_value") for dim in tensor.shape.dim)


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
