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
from triton_model_check.facts.backend_releases import OnnxRuntime, onnx_runtime
from triton_model_check.facts.published import load
from triton_model_check.model_files.model_file import FileFault, ModelFile, ModelTensor
from triton_model_check.model_files.onnx_certain_weights import certain_weight_bytes
from triton_model_check.model_files.onnx_external_data import external_bytes, used_external_data
from triton_model_check.model_files.onnx_faults import (
    content_faults,
    invalid_graph,
    no_kernel,
    not_a_model,
    runtime_faults,
)
from triton_model_check.model_files.onnx_graph import OnnxGraph, OnnxModel, OnnxValue, read_model
from triton_model_check.model_files.onnx_shapes import Inference, infer
from triton_model_check.model_files.onnx_verdict import as_loaded, ask_about, described_by, refusal
from triton_model_check.model_files.protobuf_wire import MessageFile, MessageReader, WireError
from triton_model_check.model_files.wrong_content import recognize
from triton_model_check.onnx_runtimes.asking import Asking, minor_release
from triton_model_check.onnx_runtimes.runtime import NotAsked, RuntimeVerdict, find_runtime

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
    graph_level: int = 0,
    asking: Asking = "never",
) -> ModelFile:
    """Describe an open ONNX file.

    ``image_version`` decides which operator sets and types the runtime supports; ``None`` is the
    newest known image. With an image whose runtime is not known, versions and operators are not
    checked. ``has_op_library`` is whether the configuration names a library of custom operators,
    and ``on_cpu`` whether the model runs on the CPU only. ``graph_level`` is
    ``optimization.graph.level``, and ``asking`` whether ONNX Runtime itself is asked.
    """
    message = MessageFile(file).root()
    runtime = onnx_runtime(image_version)
    try:
        model = read_model(message)
    except WireError as error:
        return _not_a_model(path, file, "Protobuf parsing failed", str(error))
    except OverBudgetError as error:
        described = ModelFile(path, "onnx", not_checked=(f"content not checked: {error}",))
        return described if has_op_library else _read_by_runtime(described, runtime, asking)
    if model.graph is None:
        return _not_a_model(path, file, "ModelProto does not have a graph")
    graph_faults = tuple(runtime_faults(model, model.graph, runtime, has_op_library))
    other_faults = tuple(content_faults(path, model.graph, runtime))
    described = _signature(path, model, model.graph)
    lines: tuple[str, ...] = ()
    if runtime is None:
        lines = (_unknown_runtime(image_version),)
    elif not other_faults and not has_op_library and asking != "never":
        verdict = _verdict(described, file, minor_release(runtime.version), graph_level, asking)
        if isinstance(verdict, NotAsked):
            lines = (verdict.reason,)
        elif verdict.is_not_implemented and not on_cpu:
            lines = (f"operators not checked on a GPU: ONNX Runtime on the CPU: {verdict.error}",)
        else:
            return _decided(described, graph_faults, verdict)

    if graph_faults or other_faults:
        return replace(described, faults=(*graph_faults, *other_faults))
    release = ""
    if runtime is not None and not has_op_library:
        release = runtime.version
    inference = _inference(model, model.graph, message, release)
    if inference.missing_kernel is not None and not on_cpu:
        reason = f"{inference.missing_kernel} on the CPU, for the types of its tensors"
        lines = lines or (f"operators not checked on a GPU: {reason}",)
        inference = replace(inference, missing_kernel=None)
    if inference.doubtful_kernel:
        reason = f"ONNX Runtime {release} may refuse it on the CPU: {inference.doubtful_kernel}"
        lines = (*lines, f"operators not checked: {reason}")
    return _with_lines(_with_inference(described, inference), lines, asking)


def _unknown_runtime(image_version: str | None) -> str:
    """Say what is not checked without the limits of the image's runtime."""
    return (
        "operator sets, IR version and operators not checked: "
        f"the ONNX Runtime of image {image_version} is not known"
    )


def describe_ort(
    path: Path,
    image_version: str | None,
    *,
    has_op_library: bool = False,
    on_cpu: bool = False,
    graph_level: int = 0,
    asking: Asking = "never",
) -> ModelFile:
    """Describe a file in ONNX Runtime's own format, which only the runtime reads.

    The options are those of ``describe_onnx``.
    """
    not_read = ModelFile(path, "ort", not_checked=("content not checked",))
    runtime = onnx_runtime(image_version)
    if runtime is None or has_op_library or asking == "never":
        return not_read
    release = minor_release(runtime.version)
    asked = find_runtime(release, asking)
    if isinstance(asked, NotAsked):
        line = f"ONNX Runtime {release} was not asked: {asked.reason}"
        return replace(not_read, not_checked=(*not_read.not_checked, line))
    answer = asked.ask_about_file(path, path.stat().st_size, graph_level)
    if isinstance(answer, NotAsked):
        line = f"ONNX Runtime {release} has not answered: {answer.reason}"
        return replace(not_read, not_checked=(*not_read.not_checked, line))
    if answer.is_not_implemented and not on_cpu:
        line = f"operators not checked on a GPU: ONNX Runtime on the CPU: {answer.error}"
        return replace(not_read, not_checked=(line,))
    return replace(described_by(path, answer), format="ort")


def _read_by_runtime(
    described: ModelFile, runtime: OnnxRuntime | None, asking: Asking
) -> ModelFile:
    """Describe a file with more values than are read here, such as one of many trees."""
    if runtime is None:
        return described
    asked = find_runtime(minor_release(runtime.version), asking)
    if isinstance(asked, NotAsked):
        return described
    answer = asked.ask_about_file(described.path, described.path.stat().st_size)
    return described if isinstance(answer, NotAsked) else described_by(described.path, answer)


def _decided(
    described: ModelFile, graph_faults: tuple[FileFault, ...], verdict: RuntimeVerdict
) -> ModelFile:
    """Return the description by the runtime's verdict; for a refusal our own words are clearer."""
    if verdict.error:
        return replace(described, faults=graph_faults or (refusal(verdict),))
    return as_loaded(_with_notes(described), verdict)


def _verdict(
    described: ModelFile, file: BinaryIO, release: str, level: int, asking: Asking
) -> RuntimeVerdict | NotAsked:
    """Return what the ONNX Runtime of the image says, or why it was not asked."""
    asked = find_runtime(release, asking)
    name = f"ONNX Runtime {release}"
    if isinstance(asked, NotAsked):
        return NotAsked(f"{name} was not asked: {asked.reason}")
    answer = ask_about(asked, described.path, file, described, level)
    if isinstance(answer, NotAsked):
        return NotAsked(f"{name} has not answered: {answer.reason}")
    return answer


def _with_lines(described: ModelFile, lines: tuple[str, ...], asking: Asking) -> ModelFile:
    """Add why the runtime has not decided.

    By default this is said only where something else is not checked: what the checker finds itself
    is as reliable for the other models.
    """
    if asking == "auto" and not described.not_checked and not described.faults:
        lines = tuple(line for line in lines if "was not asked" not in line)
    return replace(described, not_checked=(*described.not_checked, *lines))


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
    inputs = []
    overridable = []
    for tensor in graph.inputs:
        if tensor.name in graph.initializers:
            overridable.append(_tensor(tensor, is_optional=True))
        else:
            inputs.append(_tensor(tensor))
    if (model.ir_version or 0) >= _FIRST_IR_WITH_OVERRIDABLE_INITIALIZERS:
        inputs += overridable

    locations = [external.location for external in used_external_data(graph)]
    return ModelFile(
        path,
        "onnx",
        tuple(inputs),
        tuple(_tensor(tensor) for tensor in graph.outputs),
        versions=_versions(model),
        data_files=tuple(dict.fromkeys(location for location in locations if location)),
        external_bytes=external_bytes(path, graph),
        certain_weight_bytes=certain_weight_bytes(graph),
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
    """Return the description with what the inference of shapes found."""
    if inference.fault is not None:
        return replace(described, faults=(invalid_graph(inference.fault),))
    if inference.missing_kernel is not None:
        return replace(described, faults=(no_kernel(inference.missing_kernel),))
    outputs = tuple(_with_shape(each, inference) for each in described.outputs)
    has_batch = _has_batch_dimension(described.inputs, outputs, inference.batched)
    described = _with_notes(described)
    not_checked = described.not_checked
    not_checked += (inference.not_checked,) if inference.not_checked else ()
    return replace(
        described,
        outputs=outputs,
        has_batch_dimension=has_batch,
        has_inferred_shapes=all(each.has_certain_shape for each in outputs),
        not_checked=not_checked,
    )


def _with_notes(described: ModelFile) -> ModelFile:
    absolute = [name for name in described.data_files if name.startswith("/")]
    not_checked = tuple(
        f'the external data "{name}" is at an absolute path, not checked' for name in absolute
    )
    return replace(described, not_checked=not_checked)


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
