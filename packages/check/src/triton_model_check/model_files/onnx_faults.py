"""Why ONNX Runtime does not load an ONNX model.

The names of the rules (F4, I1, …) are those of ``onnx_file``. The words are close to ONNX Runtime's
own, so that a search for its message finds ours.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from graphlib import CycleError, TopologicalSorter
from itertools import chain, islice
from pathlib import Path

from triton_model_check.facts.backend_releases import OnnxRuntime, operator_attributes
from triton_model_check.model_files.model_file import FileFault
from triton_model_check.model_files.onnx_external_data import external_data_faults
from triton_model_check.model_files.onnx_graph import OnnxGraph, OnnxModel, OnnxNode, plain_domain
from triton_model_check.model_files.onnx_tensors import OnnxTensor

_TRAINING = ("ai.onnx.training", "ai.onnx.preview.training")
_INTERNAL = ("com.microsoft.nchwc", "com.microsoft.experimental")
# Built into the runtime, but not in the list of its operators.
_UNLISTED_DOMAINS = frozenset({*_TRAINING, *_INTERNAL, "com.ms.internal.nhwc", "org.pytorch.aten"})
_STRING = 8
# The runtime has definitions of its own of these, and ignores attributes that it does not know.
_ANY_ATTRIBUTE = frozenset({"LayerNormalization"})
_RECURRENT = frozenset({"GRU", "LSTM", "RNN"})
_DATA_TYPES_END = 64  # more than any version of ONNX has
_NEWEST_OPSET = 1_000
# Domains that have the operator sets of ai.onnx, and domains that have had one operator set only.
_FOLLOWERS = ("", "ai.onnx", "com.ms.internal.nhwc")
_OTHER_LIMITS = dict.fromkeys((*_TRAINING, *_INTERNAL, "com.microsoft"), 1)


def runtime_faults(
    model: OnnxModel, graph: OnnxGraph, runtime: OnnxRuntime | None, has_op_library: bool
) -> Iterator[FileFault]:
    """Yield why ``runtime`` does not load the graph, as far as its operators and names show.

    ``None`` is a runtime that is not known: only what no runtime loads is a fault.
    """
    yield from _missing_version_faults(model)
    if runtime is not None:
        yield from _version_faults(model, runtime)
    # A runtime that is not known may have operators that the known ones have not.
    if not has_op_library and runtime is not None:
        yield from _operator_faults(model, graph)
    yield from _graph_faults(graph)


def content_faults(
    path: Path, graph: OnnxGraph, runtime: OnnxRuntime | None
) -> Iterator[FileFault]:
    """Yield what is wrong with the weights, which ``runtime`` would have to read.

    The types of inputs and outputs are compared by Triton's backend.
    """
    yield from _initializer_faults(graph)
    yield from _type_faults(graph)
    yield from external_data_faults(path, graph, runtime)


def not_a_model(
    reason: str, hint: str = "export or copy the model to this file again"
) -> FileFault:
    """Return the fault of a file that is not an ONNX model."""
    return FileFault("onnx-not-a-model", reason, hint)


def invalid_graph(reason: str) -> FileFault:
    """Return the fault of a model whose graph is not valid."""
    message = f"This is an invalid model: {reason}"
    return FileFault("onnx-invalid-graph", message, "export the model again")


def no_kernel(reason: str) -> FileFault:
    """Return the fault of a model with an operator that the runtime does
    not implement on the CPU.
    """
    return unsupported_operator(f"{reason} on the CPU, for the types of its tensors")


def unsupported_operator(message: str) -> FileFault:
    """Return the fault of a model with an operator that the runtime does not implement."""
    hint = (
        "export it with another type, such as FP32, or with a newer operator set; "
        "a GPU may implement it"
    )
    return FileFault("onnx-operator", message, hint)


# F5: versions.


def _missing_version_faults(model: OnnxModel) -> Iterator[FileFault]:
    if model.ir_version is None:
        yield FileFault("onnx-version", "Missing model IR version", "export the model again")
    if not model.opsets:
        message = "Missing opset in the model"
        yield FileFault("onnx-version", message, "export the model with opset_version")


def _version_faults(model: OnnxModel, runtime: OnnxRuntime) -> Iterator[FileFault]:
    name = f"ONNX Runtime {runtime.version} of the image"
    if model.ir_version is not None and model.ir_version > runtime.max_ir_version:
        message = f"Unsupported model IR version: {model.ir_version}"
        hint = "export the model with an older onnx package, or use a newer image"
        yield FileFault(
            "onnx-version", f"{message}; {name} reads up to {runtime.max_ir_version}", hint
        )
    limits = {
        **_OTHER_LIMITS,
        **dict.fromkeys(_FOLLOWERS, runtime.max_opset),
        "ai.onnx.ml": runtime.max_ml_opset,
    }
    of_functions = (each.opsets.items() for each in model.functions.values())
    for domain, version in (*model.opsets, *chain.from_iterable(of_functions)):
        limit = limits.get(domain, version)
        if version > limit:
            message = (
                f"opset {version} of {domain or 'ai.onnx'} is too new; "
                f"{name} supports up to {limit}"
            )
            hint = (
                f"export the model with opset {limit} of "
                f"{domain or 'ai.onnx'}, or use a newer image"
            )
            yield FileFault("onnx-version", message, hint)


# F6 and F7: operators.


def _operator_faults(model: OnnxModel, graph: OnnxGraph) -> Iterator[FileFault]:
    """Yield the first operator that is neither built in nor a function of the model."""
    opsets = {plain_domain(domain): version for domain, version in model.opsets}
    for function in model.functions.values():
        for domain in function.missing_imports():
            yield invalid_graph(
                f"No opset import for domain {domain or 'ai.onnx'} in a function of the model"
            )
            return
    outer = ((_as_read(node), opsets) for node in graph.nodes)
    inner = ((node, opsets) for below in graph.graphs_below for node in below.all_nodes())
    of_functions = ((_as_read(node), each) for node, each in _nodes_of_functions(model, graph))
    faults = (_node_fault(model, *each) for each in chain(outer, inner, of_functions))
    yield from islice(filter(None, faults), 1)


def _as_read(node: OnnxNode) -> OnnxNode:
    """Return a Constant as the runtime reads it outside of subgraphs:
    the attribute may have any name.
    """
    return (
        node._replace(attributes=("value",))
        if node.operator == "Constant" and node.attributes
        else node
    )


def _nodes_of_functions(
    model: OnnxModel, graph: OnnxGraph
) -> Iterator[tuple[OnnxNode, Mapping[str, int]]]:
    """Yield the operators of the functions that the graph uses,
    with the operator sets that they import.
    """
    waiting = (
        [(node.domain, node.operator) for node in graph.all_nodes()] if model.functions else []
    )
    seen = set()
    while waiting:
        name = waiting.pop()
        if name in model.functions and name not in seen:
            seen.add(name)
            function = model.functions[name]
            waiting += [(node.domain, node.operator) for node in function.nodes]
            yield from ((node, function.opsets) for node in function.nodes)


def _node_fault(model: OnnxModel, node: OnnxNode, opsets: Mapping[str, int]) -> FileFault | None:
    domain = plain_domain(node.domain)
    function = model.functions.get((node.domain, node.operator)) if domain else None
    if function is None:
        return None if domain in _UNLISTED_DOMAINS else _operator_fault(node, domain, opsets)
    if domain not in opsets:
        return invalid_graph(f"No opset import for domain {domain}")
    if len(node.inputs) > function.inputs:
        counts = f"{len(node.inputs)} inputs, but the function has {function.inputs}"
        return invalid_graph(f"the operator {node.operator} is used with {counts}")
    return None


def _operator_fault(node: OnnxNode, domain: str, opsets: Mapping[str, int]) -> FileFault | None:
    opset, shown = opsets.get(domain, _NEWEST_OPSET), domain or "ai.onnx"
    known = operator_attributes(shown, node.operator, opset)
    if known is None:
        is_onnx = domain in ("", "ai.onnx.ml")
        message = (
            f"No Op registered for {node.operator} with domain_version of {opset} of {shown}"
            if is_onnx
            else f"{domain}:{node.operator} is not a registered function/op"
        )
        hint = (
            "set model_operations.op_library_filename to "
            "the operator's library, or export without it"
        )
        return FileFault("onnx-operator", message, hint)
    unknown = [name for name in node.attributes if name not in known]
    if unknown and node.operator not in _ANY_ATTRIBUTE:
        return invalid_graph(f"Unrecognized attribute: {unknown[0]} for operator {node.operator}")
    if node.operator in _RECURRENT and "hidden_size" not in node.attributes:
        return invalid_graph(f"the operator {node.operator} has no attribute hidden_size")
    if node.operator == "Constant" and not node.attributes:
        return invalid_graph(f'Constant node: "{node.name}" has no data attributes')
    if node.operator == "Constant" and len(node.outputs) != 1:
        return invalid_graph(
            f'Constant node: "{node.name}" has {len(node.outputs)} outputs, but needs one'
        )
    return None


# F7: the graph.


def _graph_faults(graph: OnnxGraph) -> Iterator[FileFault]:
    """Yield the first fault of the graph's names."""
    given = {each.name for each in graph.inputs} | graph.initializers.keys()
    known = given | {name for node in graph.nodes for name in node.outputs if name}
    twice = _defined_twice(graph, given)
    unknown = [
        (node.operator, name)
        for node in graph.nodes
        for name in node.reads()
        if name and name not in known
    ]
    same_names = [
        name
        for each in graph.all_graphs()
        for name in _repeated(node.name for node in _computing(each))
    ]
    absent = [each.name for each in graph.outputs if each.name not in known]
    if twice:
        yield invalid_graph(f'Duplicate definition of "{twice[0]}"')
    elif unknown:
        operator, name = unknown[0]
        yield invalid_graph(
            f'the operator {operator} reads "{name}", which is not produced by any operator'
        )
    elif absent:
        yield invalid_graph(f'the output "{absent[0]}" is not produced by any operator')
    elif same_names:
        yield invalid_graph(f"two nodes with same node name ({same_names[0]})")
    elif _has_cycle(graph):
        yield invalid_graph("the graph is not acyclic")


def _defined_twice(graph: OnnxGraph, given: Set[str]) -> list[str]:
    # The runtime turns each Constant into an initializer, where the same name twice is no error.
    names = [name for node in _computing(graph) for name in node.outputs if name]
    names += _repeated(each.name for each in graph.inputs)
    repeated = set(_repeated(names))
    if not repeated and given.isdisjoint(names):
        return []
    return [name for name in dict.fromkeys(names) if name in repeated or name in given]


def _computing(graph: OnnxGraph) -> Iterator[OnnxNode]:
    return (node for node in graph.nodes if node.operator != "Constant")


def _repeated(names: Iterable[str]) -> list[str]:
    listed = [name for name in names if name]
    if len(set(listed)) == len(listed):
        return []
    return [name for name, count in Counter(listed).items() if count > 1]


def _initializer_faults(graph: OnnxGraph) -> Iterator[FileFault]:
    read = {name for node in graph.all_nodes() for name in node.reads()}
    read |= {each.name for each in graph.outputs}
    for each in graph.all_graphs():
        for name, tensor in each.initializers.items():
            has_data = name in read and name not in each.sparse_initializers
            yield from _tensor_faults(f'the initializer "{name}"', tensor, has_data=has_data)
        for name, tensor in each.constants():
            yield from _tensor_faults(f'the constant "{name}"', tensor, has_data=name in read)


def _tensor_faults(subject: str, tensor: OnnxTensor, *, has_data: bool) -> Iterator[FileFault]:
    if not 0 < tensor.data_type < _DATA_TYPES_END:
        yield invalid_graph(f"{subject} has no valid data type")
    elif has_data:
        reason = _data_fault(tensor)
        if reason:
            yield invalid_graph(f"{subject} {reason}")


def _data_fault(tensor: OnnxTensor) -> str:
    """Return why the data of an initializer does not fit its type and dims, or ""."""
    if tensor.elements == -1:
        return "has a negative dim"
    if tensor.external is not None or tensor.elements is None:
        return ""
    if tensor.raw_bytes is not None and tensor.data_type == _STRING:
        return "has raw bytes, but its type is STRING"
    if tensor.raw_bytes is not None:
        is_wrong = tensor.size not in (None, tensor.raw_bytes)
        return (
            f"has {tensor.raw_bytes} bytes, but its type and dims need {tensor.size}"
            if is_wrong
            else ""
        )
    if tensor.values not in (None, tensor.elements):
        return f"has {tensor.values} elements, but its dims need {tensor.elements}"
    return ""


def _has_cycle(graph: OnnxGraph) -> bool:
    producer = {
        name: index for index, node in enumerate(graph.nodes) for name in node.outputs if name
    }
    needed = {
        index: [producer[name] for name in node.reads() if name in producer]
        for index, node in enumerate(graph.nodes)
    }
    if all(before < index for index, nodes in needed.items() for before in nodes):
        return False  # the order in which exporters write operators
    order = TopologicalSorter(needed)
    try:
        order.prepare()
    except CycleError:
        return True
    return False


# F9: types.

_NOT_TENSOR_HINTS = {
    "sequence": "export it as a tensor; for scikit-learn, convert with options={'zipmap': False}",
    "map": "export it as a tensor; for scikit-learn, convert with options={'zipmap': False}",
}


def not_a_tensor(reason: str, type_name: str = "sequence") -> FileFault:
    """Return the fault of a model with an input or output of a type that Triton does not have."""
    hint = _NOT_TENSOR_HINTS.get(type_name, "export it as a tensor")
    return FileFault("onnx-not-a-tensor", f"Unsupported ONNX Type: {reason}", hint)


def _type_faults(graph: OnnxGraph) -> Iterator[FileFault]:
    for side, values in (("input", graph.inputs), ("output", graph.outputs)):
        for each in values:
            if each.type_name == "tensor" and not 0 < each.element_type < _DATA_TYPES_END:
                yield invalid_graph(
                    f'Invalid tensor data type {each.element_type} of the {side} "{each.name}"'
                )
            # The runtime infers the type of an output that has none.
            elif each.type_name != "tensor" and (side, each.type_name) != ("output", "untyped"):
                reason = f'the {side} "{each.name}" is a {each.type_name}'
                yield not_a_tensor(reason, each.type_name)
