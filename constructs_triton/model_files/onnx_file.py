"""Describes an ONNX model: its signature as the ONNX Runtime backend sees it, and why it does not load.

Rules and their names (F4, I1, …) are from the ONNX Runtime backend r24.10 (src/onnxruntime.cc and
src/onnxruntime_utils.cc) and ONNX Runtime, each asked of the real server.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from constructs_triton.facts.onnx_operators import operator_attributes
from constructs_triton.facts.onnxruntime import OnnxRuntime, onnx_runtime
from constructs_triton.model_files.model_file import FileFault, ModelFile, ModelTensor
from constructs_triton.model_files.onnx_graph import (
    ExternalData,
    OnnxGraph,
    OnnxModel,
    OnnxNode,
    OnnxValue,
    read_model,
)
from constructs_triton.model_files.onnx_shapes import infer_outputs, invalid_node, is_onnx_installed
from constructs_triton.model_files.protobuf_wire import MessageFile, MessageReader, WireError

__all__ = ["describe_onnx"]

_DATA_TYPES = {
    1: "TYPE_FP32",
    2: "TYPE_UINT8",
    3: "TYPE_INT8",
    4: "TYPE_UINT16",
    5: "TYPE_INT16",
    6: "TYPE_INT32",
    7: "TYPE_INT64",
    8: "TYPE_STRING",
    9: "TYPE_BOOL",
    10: "TYPE_FP16",
    11: "TYPE_FP64",
    12: "TYPE_UINT32",
    13: "TYPE_UINT64",
    16: "TYPE_BF16",
}
"""``TensorProto.DataType`` and Triton's name for it; the others have none."""

_ONNX_DOMAINS = frozenset({"", "ai.onnx"})
# Built into the runtime, but not in the list of its operators.
_UNLISTED_DOMAINS = frozenset(
    {
        "ai.onnx.training",
        "ai.onnx.preview.training",
        "com.microsoft.nchwc",
        "com.microsoft.experimental",
        "com.ms.internal.nhwc",
        "org.pytorch.aten",
    }
)
_NEWEST = 1_000
_FIRST_IR_WITH_OVERRIDABLE_INITIALIZERS = 4


def describe_onnx(
    path: Path, file: BinaryIO, image_version: str | None, *, has_op_library: bool = False
) -> ModelFile:
    """Describe an open ONNX file.

    ``image_version`` decides which operator sets and types the runtime knows; ``None`` is the newest.
    ``has_op_library`` is whether the configuration names a library of custom operators.
    """
    runtime = onnx_runtime(image_version)
    message = MessageFile(file).root()
    try:
        model = read_model(message)
    except WireError as error:
        return ModelFile(path, "onnx", faults=(_not_onnx(str(error)),))
    if model.graph is None:
        return ModelFile(path, "onnx", faults=(_no_graph(),))
    inputs, outputs = _signature(model, model.graph)
    faults = tuple(_faults(path, model, model.graph, runtime, has_op_library))
    is_inferred = not faults and is_onnx_installed()
    if is_inferred:
        faults = tuple(_operator_faults(message))
        shapes = infer_outputs(message)
        outputs = tuple(replace(each, shape=shapes.get(each.name, each.shape)) for each in outputs)
    return ModelFile(
        path,
        "onnx",
        inputs,
        outputs,
        has_batch_dimension=_has_batch_dimension(inputs, outputs),
        versions=_versions(model),
        faults=faults,
        has_inferred_shapes=is_inferred,
        not_checked=() if is_inferred or faults else (_NOT_INFERRED,),
    )


_NOT_INFERRED = "operators and output shapes not checked: run `pip install 'constructs-triton[onnx]'`"


def _has_batch_dimension(inputs: tuple[ModelTensor, ...], outputs: tuple[ModelTensor, ...]) -> bool:
    """A2: every required input and every output begins with a dimension that is not fixed."""
    tensors = (*(each for each in inputs if not each.is_optional), *outputs)
    return all(each.shape and each.shape[0] == -1 for each in tensors)


def _operator_faults(message: MessageReader) -> Iterator[FileFault]:
    reason = invalid_node(message)
    if reason is not None:
        yield FileFault("onnx-invalid-graph", f"is an invalid model: {reason}", "export the model again")


def _not_onnx(reason: str) -> FileFault:
    return FileFault(
        "onnx-not-a-model",
        f"is not an ONNX model: Protobuf parsing failed ({reason})",
        "export the model to this file again; a compressed, truncated or downloaded page in its place does not load",
    )


def _no_graph() -> FileFault:
    return FileFault("onnx-not-a-model", "does not have a graph", "export the model to this file again")


def _versions(model: OnnxModel) -> dict[str, str]:
    return {
        "ir": str(model.ir_version),
        **{domain or "ai.onnx": str(version) for domain, version in model.opsets},
    }


# The signature.


def _signature(model: OnnxModel, graph: OnnxGraph) -> tuple[tuple[ModelTensor, ...], tuple[ModelTensor, ...]]:
    inputs = [_tensor(each) for each in graph.inputs if each.name not in graph.initializers]
    if model.ir_version >= _FIRST_IR_WITH_OVERRIDABLE_INITIALIZERS:
        overridable = [each for each in graph.inputs if each.name in graph.initializers]
        inputs += [_tensor(each, is_optional=True) for each in overridable]
    return tuple(inputs), tuple(_tensor(each) for each in graph.outputs)


def _tensor(value: OnnxValue, *, is_optional: bool = False) -> ModelTensor:
    return ModelTensor(value.name, _DATA_TYPES.get(value.element_type, ""), value.shape, is_optional)


# Why the runtime refuses the file.


def _faults(
    path: Path, model: OnnxModel, graph: OnnxGraph, runtime: OnnxRuntime, has_op_library: bool
) -> Iterator[FileFault]:
    yield from _version_faults(model, runtime)
    if not has_op_library:
        yield from _unknown_operators(model, graph)
    yield from _graph_faults(graph)
    yield from _type_faults(graph)
    for external in _used(graph):
        yield from _external_faults(path, external, runtime)


def _version_faults(model: OnnxModel, runtime: OnnxRuntime) -> Iterator[FileFault]:
    if model.ir_version > runtime.max_ir_version:
        yield FileFault(
            "onnx-version",
            f"has IR version {model.ir_version}, and the image's ONNX Runtime {runtime.version} reads up to "
            f"{runtime.max_ir_version}",
            "export the model with an older onnx package, or use a newer image",
        )
    if not model.opsets:
        yield FileFault("onnx-version", "imports no operator set", "export the model again")
    limits = {"": runtime.max_opset, "ai.onnx": runtime.max_opset, "ai.onnx.ml": runtime.max_ml_opset}
    for domain, version in model.opsets:
        if version > limits.get(domain, version):
            yield FileFault(
                "onnx-version",
                f"uses operator set {version} of {domain or 'ai.onnx'}, and the image's ONNX Runtime "
                f"{runtime.version} supports up to {limits[domain]}",
                f"export the model with opset_version={limits[domain]}, or use a newer image",
            )


def _unknown_operators(model: OnnxModel, graph: OnnxGraph) -> Iterator[FileFault]:
    """F6 and F7: every operator is built in, with attributes that it has, or one of the model's functions."""
    opsets = {"ai.onnx" if domain in _ONNX_DOMAINS else domain: version for domain, version in model.opsets}
    for node in _all_nodes(graph):
        domain = "ai.onnx" if node.domain in _ONNX_DOMAINS else node.domain
        if (node.domain, node.operator) in model.functions or domain in _UNLISTED_DOMAINS:
            continue
        known = operator_attributes(domain, node.operator, opsets.get(domain, _NEWEST))
        unknown = [] if known is None else [name for name in node.attributes if name not in known]
        if known is None:
            yield _unknown_operator(f"{domain}:{node.operator} is not a registered function/op")
            return
        if unknown:
            yield _invalid(f"Unrecognized attribute: {unknown[0]} for operator {node.operator}")
            return


def _unknown_operator(message: str) -> FileFault:
    hint = "set model_operations.op_library_filename to the library of the operator, or export without it"
    return FileFault("onnx-operator", message, hint)


def _graph_faults(graph: OnnxGraph) -> Iterator[FileFault]:
    made = Counter(name for node in graph.nodes for name in node.outputs if name)
    given = {each.name for each in graph.inputs} | graph.initializers.keys()
    for name, count in made.items():
        if count > 1 or name in given:
            yield _invalid(f'"{name}" is produced more than once')
            return
    known = given | made.keys()
    for node in graph.nodes:
        for name in (*node.inputs, *node.captured):
            if name and name not in known:
                yield _invalid(f'node {node.operator} reads "{name}", which nothing produces')
                return
    for each in graph.outputs:
        if each.name not in known:
            yield _invalid(f'output "{each.name}" is produced by no node')
            return
    if _has_cycle(graph):
        yield _invalid("the graph has a cycle")


def _has_cycle(graph: OnnxGraph) -> bool:
    producer = {name: index for index, node in enumerate(graph.nodes) for name in node.outputs if name}
    waiting = [
        len({producer[name] for name in (*node.inputs, *node.captured) if name in producer})
        for node in graph.nodes
    ]
    readers: dict[int, list[int]] = {}
    for index, node in enumerate(graph.nodes):
        for source in {producer[name] for name in (*node.inputs, *node.captured) if name in producer}:
            readers.setdefault(source, []).append(index)
    ready = [index for index, count in enumerate(waiting) if count == 0]
    done = 0
    while ready:
        done += 1
        for reader in readers.get(ready.pop(), ()):
            waiting[reader] -= 1
            if waiting[reader] == 0:
                ready.append(reader)
    return done < len(graph.nodes)


def _invalid(reason: str) -> FileFault:
    return FileFault("onnx-invalid-graph", f"is not a valid model: {reason}", "export the model again")


def _type_faults(graph: OnnxGraph) -> Iterator[FileFault]:
    for side, values in (("input", graph.inputs), ("output", graph.outputs)):
        for each in values:
            if each.kind != "tensor":
                yield FileFault(
                    "onnx-not-a-tensor",
                    f'Unsupported ONNX Type: {side} "{each.name}" is a {each.kind}, not a tensor',
                    _NOT_TENSOR_HINTS.get(
                        each.kind, "export the model so that it takes and returns tensors only"
                    ),
                )


_NOT_TENSOR_HINTS = {
    "sequence": "convert the model with options={'zipmap': False}, or return a tensor in place of the sequence",
    "map": "convert the model with options={'zipmap': False}",
}


def _used(graph: OnnxGraph) -> Iterable[ExternalData]:
    read = {name for node in _all_nodes(graph) for name in (*node.inputs, *node.captured)}
    read |= {each.name for each in graph.outputs}
    for each in (graph, *_graphs_below(graph)):
        yield from (data for data in each.external_data if data.initializer in read or not data.initializer)


def _external_faults(path: Path, external: ExternalData, runtime: OnnxRuntime) -> Iterator[FileFault]:
    """F8: the file is in the model's own folder and long enough."""
    location = external.location
    pure = PurePosixPath(location)
    if not location:
        yield _external_fault(external, "names no file")
        return
    if not runtime.external_data_outside_folder and (pure.is_absolute() or ".." in pure.parts):
        yield _external_fault(external, f'is in "{location}", outside the folder of the model')
        return
    try:
        size = (path.parent / location).stat().st_size
    except (OSError, ValueError):
        yield _external_fault(external, f'is in the file "{location}", which does not exist')
        return
    needed = external.offset + (external.length or 0)
    if size < needed:
        yield _external_fault(external, f'needs {needed} bytes of "{location}", which has {size}')


def _external_fault(external: ExternalData, reason: str) -> FileFault:
    return FileFault(
        "onnx-external-data",
        f'external data of "{external.initializer}" {reason}',
        "save the model and its data file together, and copy both into the version folder",
    )


def _graphs_below(graph: OnnxGraph) -> Iterator[OnnxGraph]:
    for below in graph.graphs_below:
        yield below
        yield from _graphs_below(below)


def _all_nodes(graph: OnnxGraph) -> Iterator[OnnxNode]:
    yield from graph.nodes
    for below in _graphs_below(graph):
        yield from below.nodes
