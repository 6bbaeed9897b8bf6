"""What the ONNX Runtime of an image says of a model file: a refusal, or the outputs it infers.

The model is copied without its weights first, which takes as long as its graph. A refusal of that
copy is confirmed with the file itself. Both agree on all models of ``dev/onnx_corpus``, valid and
broken, with eight releases from 1.15 to 1.32, except for weights of a wrong length, which
``onnx_faults`` finds.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from constructs_triton_core.untrusted.budget import OverBudgetError
from triton_model_check.model_files.model_file import FileFault, ModelFile, ModelTensor
from triton_model_check.model_files.onnx_declared_weights import without_weights
from triton_model_check.model_files.onnx_faults import (
    invalid_graph,
    not_a_tensor,
    unsupported_operator,
)
from triton_model_check.model_files.onnx_generated import generated_bytes
from triton_model_check.model_files.protobuf_wire import MessageFile
from triton_model_check.onnx_runtimes.runtime import (
    NotAsked,
    Runtime,
    RuntimeVerdict,
    SessionTensor,
)

__all__ = ["as_loaded", "ask_about", "described_by", "refusal"]


def ask_about(
    runtime: Runtime, path: Path, file: BinaryIO, described: ModelFile, level: int
) -> RuntimeVerdict | NotAsked:
    """Ask about a model file. ``level`` is ``optimization.graph.level`` of the configuration."""
    has_declared_weights = False
    generated = 0
    answer: RuntimeVerdict | NotAsked
    try:
        content, has_declared_weights = without_weights(MessageFile(file).root(), path.parent)
        generated = generated_bytes(MessageFile(file).root())
        answer = runtime.ask(content, level, generated)
    except (OverBudgetError, OSError) as error:
        answer = NotAsked(str(error))

    # The runtime may refuse the copy because of the weights that it only declares.
    is_uncertain = isinstance(answer, NotAsked) or (answer.error and has_declared_weights)
    if not is_uncertain:
        return answer

    confirmed = runtime.ask_about_file(path, _size(path, described), level, generated)
    return answer if isinstance(confirmed, NotAsked) else confirmed


def _size(path: Path, described: ModelFile) -> int:
    """Return the bytes of a file and of its external data."""
    data_files = [path.parent / name for name in described.data_files]
    return sum(file.stat().st_size for file in (path, *data_files) if file.is_file())


def refusal(verdict: RuntimeVerdict) -> FileFault:
    """Return the fault of a model that the runtime does not load, with the runtime's message."""
    if verdict.is_not_implemented:
        return unsupported_operator(f"ONNX Runtime {verdict.version}: {verdict.error}")
    return invalid_graph(f"ONNX Runtime {verdict.version} refuses it: {verdict.error}")


def as_loaded(described: ModelFile, verdict: RuntimeVerdict) -> ModelFile:
    """Return the description with the outputs that the runtime infers."""
    inferred = {output.name: _tensor(output) for output in verdict.outputs}
    outputs = tuple(
        replace(inferred[output.name], axes=output.axes) for output in described.outputs
    )
    return _complete(replace(described, outputs=outputs))


def described_by(path: Path, verdict: RuntimeVerdict) -> ModelFile:
    """Return the description of a file that only the runtime has read."""
    if verdict.error:
        return ModelFile(path, "onnx", faults=(refusal(verdict),))

    for found in (*verdict.inputs, *verdict.optional_inputs, *verdict.outputs):
        if not found.kind.startswith("tensor("):
            fault = not_a_tensor(f'the tensor "{found.name}" is a {found.kind}')
            return ModelFile(path, "onnx", faults=(fault,))

    inputs = [_tensor(found) for found in verdict.inputs]
    for found in verdict.optional_inputs:
        inputs.append(replace(_tensor(found), is_optional=True))
    outputs = tuple(_tensor(found) for found in verdict.outputs)
    return _complete(ModelFile(path, "onnx", tuple(inputs), outputs))


def _tensor(found: SessionTensor) -> ModelTensor:
    return ModelTensor(found.name, found.data_type, found.dims, has_certain_shape=True)


def _complete(described: ModelFile) -> ModelFile:
    """Add what Triton concludes from the shapes: whether the model takes batches.

    It does if each required input and each output has a batch dimension.
    """
    required = [tensor for tensor in described.inputs if not tensor.is_optional]
    is_batched = all(tensor.is_batched for tensor in (*required, *described.outputs))
    return replace(described, has_batch_dimension=is_batched, has_inferred_shapes=True)
