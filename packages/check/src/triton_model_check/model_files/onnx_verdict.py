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
from triton_model_check.model_files.protobuf_wire import MessageFile
from triton_model_check.onnx_runtimes.judge import Judge, JudgedTensor, Judgement, NotAsked

__all__ = ["as_judged", "described_by", "judged", "refusal"]


def judged(
    judge: Judge, path: Path, file: BinaryIO, described: ModelFile, level: int
) -> Judgement | NotAsked:
    """Ask about a model file. ``level`` is ``optimization.graph.level`` of the configuration."""
    has_declared = False
    answer: Judgement | NotAsked
    try:
        content, has_declared = without_weights(MessageFile(file).root(), path.parent)
        answer = judge.ask(content, level)
    except (OverBudgetError, OSError) as error:
        answer = NotAsked(str(error))
    if isinstance(answer, Judgement) and not (answer.error and has_declared):
        return answer

    confirmed = judge.ask_about_file(path, _size(path, described), level)
    return answer if isinstance(confirmed, NotAsked) else confirmed


def _size(path: Path, described: ModelFile) -> int:
    """Return the bytes of a file and of its external data."""
    paths = [path, *(path.parent / name for name in described.data_files)]
    return sum(each.stat().st_size for each in paths if each.is_file())


def refusal(judgement: Judgement) -> FileFault:
    """Return the fault of a model that the runtime does not load, with the runtime's message."""
    if judgement.is_not_implemented:
        return unsupported_operator(f"ONNX Runtime {judgement.version}: {judgement.error}")
    return invalid_graph(f"ONNX Runtime {judgement.version} refuses it: {judgement.error}")


def as_judged(described: ModelFile, judgement: Judgement) -> ModelFile:
    """Return the description with the outputs that the runtime infers."""
    by_name = {each.name: each for each in judgement.outputs}
    outputs = tuple(_tensor(by_name[each.name]) for each in described.outputs)
    return _complete(replace(described, outputs=outputs))


def described_by(path: Path, judgement: Judgement) -> ModelFile:
    """Return the description of a file that only the runtime has read."""
    if judgement.error:
        return ModelFile(path, "onnx", faults=(refusal(judgement),))
    tensors = (*judgement.inputs, *judgement.optional_inputs, *judgement.outputs)
    others = [each for each in tensors if not each.kind.startswith("tensor(")]
    if others:
        name, kind = others[0].name, others[0].kind
        return ModelFile(path, "onnx", faults=(not_a_tensor(f'the tensor "{name}" is a {kind}'),))
    inputs = tuple(_tensor(each) for each in judgement.inputs)
    optional = tuple(replace(_tensor(each), is_optional=True) for each in judgement.optional_inputs)
    outputs = tuple(_tensor(each) for each in judgement.outputs)
    return _complete(ModelFile(path, "onnx", (*inputs, *optional), outputs))


def _tensor(judged: JudgedTensor) -> ModelTensor:
    return ModelTensor(judged.name, judged.data_type, judged.dims, has_certain_shape=True)


def _complete(described: ModelFile) -> ModelFile:
    required = [each for each in described.inputs if not each.is_optional]
    is_batched = all(each.is_batched for each in (*required, *described.outputs))
    return replace(described, has_batch_dimension=is_batched, has_inferred_shapes=True)
