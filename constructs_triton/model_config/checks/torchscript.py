"""The configuration of a PyTorch model, compared with its TorchScript. Source: pytorch_backend r24.10."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from constructs_triton.findings import Severity
from constructs_triton.model_config.model_under_check import ModelUnderCheck
from constructs_triton.model_config.rules import Problem, rule
from constructs_triton.model_files.model_file import ModelFile
from constructs_triton_client.spelling import did_you_mean, quoted

__all__: list[str] = []

_VALIDATE = "pytorch_backend ModelInstanceState::ValidateInputs"


def _files(model: ModelUnderCheck) -> list[ModelFile]:
    """Return the model files whose ``forward`` has tensors as arguments, and not one dictionary of them."""
    return [
        file
        for file in model.model_files
        if file.inputs and not file.faults and not file.inputs[0].data_type.startswith("Dict[")
    ]


@rule("torchscript-no-tensors", "pytorch", needs_files=True, source=_VALIDATE)
def no_tensors(model: ModelUnderCheck) -> Iterator[Problem]:
    """The configuration of a TorchScript model has inputs and outputs.

    TorchScript does not name data types and shapes, so the backend completes nothing.
    """
    for field in ("input", "output") if model.model_files else ():
        if model.config is None or not getattr(model.config, field):
            message = f"model configuration must contain at least one {field}, none were specified"
            yield Problem(message, hint=f"write {field}s in config.pbtxt, with name, data_type and dims")


@rule("torchscript-input-count", "pytorch", needs_files=True, source=_VALIDATE)
def input_count(model: ModelUnderCheck) -> Iterator[Problem]:
    """The configuration has as many inputs as ``forward`` has arguments.

    Batch inputs, sequence controls and states count.
    """
    for file in _files(model) if model.config is not None and model.config.input else ():
        names = [each.name for each in file.inputs]
        expected = _input_count(model.config)
        if expected != len(names):
            message = f"configuration expects {expected} inputs, model provides {len(names)}"
            hint = f"write an input for each argument of forward: {quoted(names)}"
            yield Problem(message, ("input",), hint)


def _input_count(config: Any) -> int:
    controls = sum(len(each.control) for each in config.sequence_batching.control_input)
    return len(config.input) + len(config.batch_input) + controls + len(config.sequence_batching.state)


@rule("torchscript-input-name", "pytorch", needs_files=True, severity=Severity.WARNING, source=_VALIDATE)
def input_name(model: ModelUnderCheck) -> Iterator[Problem]:
    """Either all inputs have the names of arguments of ``forward``, or none has.

    If one name differs, the backend ignores all names and passes inputs in the order of the configuration.
    """
    inputs = [] if model.config is None else list(model.config.input)
    for file in _files(model):
        names = [each.name for each in file.inputs]
        unknown = [index for index, each in enumerate(inputs) if each.name not in names]
        if 0 < len(unknown) < len(inputs):
            index = unknown[0]
            message = f'"{inputs[index].name}" is not an argument of forward, so that all names are ignored'
            hint = did_you_mean(inputs[index].name, names, f"use the arguments {quoted(names)}")
            yield Problem(message, ("input", index, "name"), hint)


@rule(
    "torchscript-device",
    "pytorch",
    needs_files=True,
    severity=Severity.WARNING,
    source="torch.jit.trace records devices as constants",
    hint="trace the model on the device that serves it, or create tensors with device=x.device",
)
def device(model: ModelUnderCheck) -> Iterator[Problem]:
    """The code of a model that runs on a GPU does not name the CPU.

    A tensor that the code creates on the CPU cannot be combined with inputs on the GPU: each request fails.
    """
    if not model.target.gpu_count or _runs_on_cpu(model.config):
        return
    for file in model.model_files:
        if "cpu" in file.devices:
            message = 'the code contains torch.device("cpu"), but the model runs on a GPU'
            yield Problem(message, path=model.place_of(file.path))


def _runs_on_cpu(config: Any | None) -> bool:
    groups = [] if config is None else config.instance_group
    return any(group.kind == group.KIND_CPU for group in groups)
