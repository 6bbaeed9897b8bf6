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
    """Yield why the runtime of the image is too old for the model."""
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
    if node.operator == "Constant" and node.attributes:
        return node._replace(attributes=("value",))
    return node


def _nodes_of_functions(
    model: OnnxModel, graph: OnnxGraph
) -> Iterator[tuple[OnnxNode, Mapping[str, int]]]:
    """Yield the operators of the functions that the graph uses,
    with the operator sets that they import.
    """
    if not model.functions:
        return
    waiting = [(node.domain, node.operator) for node in graph.all_nodes()]
    seen = set()
    while waiting:
        name = waiting.pop()
        if name not in model.functions or name in seen:
            continue
        seen.add(name)
        function = model.functions[name]
        for node in function.nodes:
            waiting.append((node.domain, node.operator))
        for node in function.nodes:
            yield node, function.opsets


def _node_fault(model: OnnxModel, node: OnnxNode, opsets: Mapping[str, int]) -> FileFault | None:
    """Return what is wrong with an operator, or with a call of a function of the model."""
    domain = plain_domain(node.domain)
    function = model.functions.get((node.domain, node.operator)) if domain else None
    if function is None:
        if domain in _UNLISTED_DOMAINS:
            return None
        return _operator_fault(node, domain, opsets)
    if domain not in opsets:
        return invalid_graph(f"No opset import for domain {domain}")
    if len(node.inputs) > function.inputs:
        counts = f"{len(node.inputs)} inputs, but the function has {function.inputs}"
        return invalid_graph(f"the operator {node.operator} is used with {counts}")
    return None


def _operator_fault(node: OnnxNode, domain: str, opsets: Mapping[str, int]) -> FileFault | None:
    """Return what is wrong with an operator; ``None`` if nothing is."""
    opset = opsets.get(domain, _NEWEST_OPSET)
    known = operator_attributes(domain or "ai.onnx", node.operator, opset)
    if known is None:
        return _unregistered(node, domain, opset)

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


def _unregistered(node: OnnxNode, domain: str, opset: int) -> FileFault:
    """Return the fault of an operator that the runtime does not have, in the runtime's words."""
    if domain in ("", "ai.onnx.ml"):
        place = f"domain_version of {opset} of {domain or 'ai.onnx'}"
        message = f"No Op registered for {node.operator} with {place}"
    else:
        message = f"{domain}:{node.operator} is not a registered function/op"
    hint = (
        "set model_operations.op_library_filename to the operator's library, or export without it"
    )
    return FileFault("onnx-operator", message, hint)


# F7: the graph.


def _graph_faults(graph: OnnxGraph) -> Iterator[FileFault]:
    """Yield the first fault of the graph's names."""
    reason = _graph_fault(graph)
    if reason:
        yield invalid_graph(reason)


def _graph_fault(graph: OnnxGraph) -> str:
    """Return the first fault in the order in which the runtime finds them, or ""."""
    given = {tensor.name for tensor in graph.inputs} | graph.initializers.keys()
    twice = _defined_twice(graph, given)
    if twice:
        return f'Duplicate definition of "{twice[0]}"'

    known = {*given}
    for node in graph.nodes:
        known.update(name for name in node.outputs if name)
    for node in graph.nodes:
        for name in node.reads():
            if name and name not in known:
                return (
                    f'the operator {node.operator} reads "{name}", '
                    "which is not produced by any operator"
                )
    for output in graph.outputs:
        if output.name not in known:
            return f'the output "{output.name}" is not produced by any operator'

    for part in graph.all_graphs():
        same_names = _repeated(node.name for node in _computing(part))
        if same_names:
            return f"two nodes with same node name ({same_names[0]})"
    return "the graph is not acyclic" if _has_cycle(graph) else ""


def _defined_twice(graph: OnnxGraph, given: Set[str]) -> list[str]:
    # The runtime turns each Constant into an initializer, where the same name twice is no error.
    names = [name for node in _computing(graph) for name in node.outputs if name]
    names += _repeated(tensor.name for tensor in graph.inputs)
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
    """Yield what is wrong with the data of initializers and constants."""
    read = {name for node in graph.all_nodes() for name in node.reads()}
    read |= {tensor.name for tensor in graph.outputs}
    for part in graph.all_graphs():
        for name, tensor in part.initializers.items():
            has_data = name in read and name not in part.sparse_initializers
            yield from _tensor_faults(f'the initializer "{name}"', tensor, has_data=has_data)
        for name, tensor in part.constants():
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
    if tensor.raw_bytes is not None:
        return _raw_data_fault(tensor)
    if tensor.values not in (None, tensor.elements):
        return f"has {tensor.values} elements, but its dims need {tensor.elements}"
    return ""


def _raw_data_fault(tensor: OnnxTensor) -> str:
    if tensor.data_type == _STRING:
        return "has raw bytes, but its type is STRING"
    if tensor.size not in (None, tensor.raw_bytes):
        return f"has {tensor.raw_bytes} bytes, but its type and dims need {tensor.size}"
    return ""


def _has_cycle(graph: OnnxGraph) -> bool:
    """Whether an operator reads, directly or through others, what it writes."""
    producer: dict[str, int] = {}
    for index, node in enumerate(graph.nodes):
        for name in node.outputs:
            if name:
                producer[name] = index

    needed: dict[int, list[int]] = {}
    is_in_order = True
    for index, node in enumerate(graph.nodes):
        needed[index] = [producer[name] for name in node.reads() if name in producer]
        is_in_order = is_in_order and all(other < index for other in needed[index])
    if is_in_order:
        return False  # the order in which exporters write operators

    try:
        TopologicalSorter(needed).prepare()
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
    """Yield each input or output that is no tensor of a known type."""
    for side, values in (("input", graph.inputs), ("output", graph.outputs)):
        for value in values:
            if value.type_name == "tensor":
                if not 0 < value.element_type < _DATA_TYPES_END:
                    place = f'the {side} "{value.name}"'
                    yield invalid_graph(f"Invalid tensor data type {value.element_type} of {place}")
                continue
            # The runtime infers the type of an output that has none.
            if (side, value.type_name) != ("output", "untyped"):
                reason = f'the {side} "{value.name}" is a {value.type_name}'
                yield not_a_tensor(reason, value.type_name)
