"""Describes an ONNX model: its signature as Triton's ONNX Runtime backend reads it, and its faults.

The names of the rules (F4, I1, …) group what the backend (src/onnxruntime.cc,
src/onnxruntime_utils.cc of onnxruntime_backend r24.10) and ONNX Runtime do: F is the file, I the
signature, A the completion of the configuration. Each rule was confirmed with the real server.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from graphlib import CycleError
from pathlib import Path
from typing import BinaryIO

from constructs_triton_core.untrusted.budget import OverBudgetError
from triton_model_check.facts.backend_releases import onnx_runtime
from triton_model_check.facts.published import load
from triton_model_check.model_files.model_file import ModelFile, ModelTensor
from triton_model_check.model_files.onnx_external_data import used_external_data
from triton_model_check.model_files.onnx_faults import (
    invalid_graph,
    no_kernel,
    not_a_model,
    onnx_faults,
)
from triton_model_check.model_files.onnx_graph import OnnxGraph, OnnxModel, OnnxValue, read_model
from triton_model_check.model_files.onnx_shapes import Inference, infer
from triton_model_check.model_files.protobuf_wire import MessageFile, MessageReader, WireError
from triton_model_check.model_files.wrong_content import recognize

_DATA_TYPES: dict[int, str] = {
    int(each): name for each, name in load("names")["onnx_data_types"].items()
}
"""``TensorProto.DataType`` and Triton's name for it. Triton has no name for the others."""

_FIRST_IR_WITH_OVERRIDABLE_INITIALIZERS = 4
_MOST_EXPANDED_NODES = 250_000


def describe_onnx(
    path: Path,
    file: BinaryIO,
    image_version: str | None,
    *,
    has_op_library: bool = False,
    on_cpu: bool = False,
) -> ModelFile:
    """Describe an open ONNX file.

    ``image_version`` decides which operator sets and types the runtime supports; ``None`` is the
    newest known image. With an image whose runtime is not known, versions and operators are not
    checked. ``has_op_library`` is whether the configuration names a library of custom
    operators, and ``on_cpu`` whether the model runs on the CPU only.
    """
    message = MessageFile(file).root()
    try:
        model = read_model(message)
    except WireError as error:
        return _not_a_model(path, file, "Protobuf parsing failed", str(error))
    except OverBudgetError as error:
        return ModelFile(path, "onnx", not_checked=(f"content not checked: {error}",))
    if model.graph is None:
        return _not_a_model(path, file, "ModelProto does not have a graph")
    runtime = onnx_runtime(image_version)
    faults = tuple(onnx_faults(path, model, model.graph, runtime, has_op_library))
    described = _signature(path, model, model.graph)
    if faults:
        return replace(described, faults=faults)
    release = ""
    if runtime is not None and on_cpu and not has_op_library:
        release = runtime.version
    inferred = _with_inference(described, _inference(model, model.graph, message, release))
    if runtime is not None:
        return inferred
    return replace(inferred, not_checked=(*inferred.not_checked, _unknown_runtime(image_version)))


def _unknown_runtime(image_version: str | None) -> str:
    """Say what is not checked without the limits of the image's runtime."""
    return (
        "operator sets, IR version and operators not checked: "
        f"the ONNX Runtime of image {image_version} is not known"
    )


def _not_a_model(path: Path, file: BinaryIO, message: str, reason: str = "") -> ModelFile:
    """F4: name what the file is in place of a model, if it is known."""
    wrong = recognize(file)
    if wrong is not None:
        fault = not_a_model(f"{message}: it is {wrong.description}", wrong.hint)
    else:
        fault = not_a_model(f"{message}: {reason}" if reason else message)
    return ModelFile(path, "onnx", faults=(fault,))


def _signature(path: Path, model: OnnxModel, graph: OnnxGraph) -> ModelFile:
    """I1 and I2: the inputs and outputs, with the shapes that the file declares."""
    inputs = [_tensor(each) for each in graph.inputs if each.name not in graph.initializers]
    if (model.ir_version or 0) >= _FIRST_IR_WITH_OVERRIDABLE_INITIALIZERS:
        overridable = [each for each in graph.inputs if each.name in graph.initializers]
        inputs += [_tensor(each, is_optional=True) for each in overridable]
    outputs = tuple(_tensor(each) for each in graph.outputs)
    data_files = dict.fromkeys(each.location for each in used_external_data(graph) if each.location)
    return ModelFile(
        path,
        "onnx",
        tuple(inputs),
        outputs,
        versions=_versions(model),
        data_files=tuple(data_files),
    )


def _tensor(value: OnnxValue, *, is_optional: bool = False) -> ModelTensor:
    return ModelTensor(
        value.name,
        _DATA_TYPES.get(value.element_type, ""),
        value.shape,
        is_optional,
        axes=value.axes,
    )


def _versions(model: OnnxModel) -> dict[str, str]:
    opsets = {domain or "ai.onnx": str(version) for domain, version in model.opsets}
    return {"ir": str(model.ir_version or 0), **opsets}


# I4: the outputs have the shapes that the runtime infers.


def _inference(
    model: OnnxModel, graph: OnnxGraph, message: MessageReader, cpu_release: str
) -> Inference:
    reason = next(_unknown_to_inference(model, graph), None)
    return infer(message, cpu_release) if reason is None else Inference(not_checked=reason)


def _unknown_to_inference(model: OnnxModel, graph: OnnxGraph) -> Iterator[str]:
    """Yield why only ONNX Runtime itself can infer all shapes of this model."""
    if model.functions:
        yield from _unbounded_functions(model)
    for node in graph.all_nodes():
        is_standard = node.domain in ("", "ai.onnx", "ai.onnx.ml")
        if not is_standard and (node.domain, node.operator) not in model.functions:
            yield (
                "output shapes not checked: they depend on the operator "
                f"{node.domain}:{node.operator}"
            )


def _unbounded_functions(model: OnnxModel) -> Iterator[str]:
    """Shape inference replaces each function by its content."""
    try:
        nodes = model.count_expanded_nodes()
    except CycleError:
        yield "operators and output shapes not checked: a function of the model uses itself"
        return
    if nodes > _MOST_EXPANDED_NODES:
        reason = f"the functions of the model expand to more than {_MOST_EXPANDED_NODES} operators"
        yield f"operators and output shapes not checked: {reason}"


def _with_inference(described: ModelFile, inference: Inference) -> ModelFile:
    if inference.fault is not None:
        return replace(described, faults=(invalid_graph(inference.fault),))
    if inference.missing_kernel is not None:
        return replace(described, faults=(no_kernel(inference.missing_kernel),))
    outputs = tuple(_with_shape(each, inference) for each in described.outputs)
    has_batch = _has_batch_dimension(described.inputs, outputs, inference.batched)
    absolute = [name for name in described.data_files if name.startswith("/")]
    not_checked = tuple(
        f'the external data "{name}" is at an absolute path, not checked' for name in absolute
    )
    not_checked += (inference.not_checked,) if inference.not_checked else ()
    return replace(
        described,
        outputs=outputs,
        has_batch_dimension=has_batch,
        has_inferred_shapes=all(each.has_certain_shape for each in outputs),
        not_checked=not_checked,
    )


def _with_shape(output: ModelTensor, inference: Inference) -> ModelTensor:
    """Return the output with what inference found of its shape and type."""
    if output.name in inference.unclear:
        return replace(output, shape=None)
    if inference.shapes is None:
        return output
    number = inference.types.get(output.name)
    return replace(
        output,
        data_type=output.data_type if number is None else _DATA_TYPES.get(number, ""),
        shape=inference.shapes.get(output.name, output.shape),
        has_certain_shape=True,
    )


def _has_batch_dimension(
    inputs: tuple[ModelTensor, ...], outputs: tuple[ModelTensor, ...], batched: Mapping[str, bool]
) -> bool | None:
    """A2: every required input and every output begins with a dimension of variable size.

    ``batched`` is whether outputs of unclear shapes do so, where it is certain.
    """
    if not all(each.is_batched for each in inputs if not each.is_optional):
        return False
    found = [batched.get(each.name, _is_batched_output(each)) for each in outputs]
    if False in found:
        return False
    return None if None in found else True


def _is_batched_output(output: ModelTensor) -> bool | None:
    is_known = output.has_certain_shape or output.shape is not None
    return output.is_batched if is_known else None
