"""The configuration of a PyTorch model, compared with its TorchScript.

Source: pytorch_backend r24.10.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from constructs_triton_core.spelling import did_you_mean, quoted
from triton_model_check.checks.model_under_check import ModelUnderCheck
from triton_model_check.checks.rules import Problem, rule, warning
from triton_model_check.fixes.steps import meant, put, unsafe
from triton_model_check.model_config.schema import data_type_name
from triton_model_check.model_files.model_file import ModelFile

if TYPE_CHECKING:
    from triton_model_check.model_config.locations import FieldPath

_VALIDATE = "pytorch_backend ModelInstanceState::ValidateInputs"


def _files(model: ModelUnderCheck) -> list[ModelFile]:
    """Return the model files whose ``forward`` has tensors as arguments,
    and not one dictionary of them.
    """
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
    if not model.model_files:
        return
    for field in ("input", "output"):
        if model.config is None or not getattr(model.config, field):
            message = f"model configuration must contain at least one {field}, none were specified"
            hint = f"write {field}s in config.pbtxt, with name, data_type and dims"
            yield Problem(message, hint=hint)


@rule("torchscript-input-count", "pytorch", needs_files=True, source=_VALIDATE)
def input_count(model: ModelUnderCheck) -> Iterator[Problem]:
    """The configuration has as many inputs as ``forward`` has arguments.

    Batch inputs, sequence controls and states count.
    """
    if model.config is None or not model.config.input:
        return
    expected = _input_count(model.config)
    for file in _files(model):
        names = [argument.name for argument in file.inputs]
        if expected != len(names):
            message = f"configuration expects {expected} inputs, model provides {len(names)}"
            hint = f"write an input for each argument of forward: {quoted(names)}"
            yield Problem(message, ("input",), hint)


def _input_count(config: Any) -> int:
    """Return the number of arguments that the backend passes to ``forward``."""
    sequence = config.sequence_batching
    controls = sum(len(control_input.control) for control_input in sequence.control_input)
    return len(config.input) + len(config.batch_input) + controls + len(sequence.state)


@warning("torchscript-input-name", "pytorch", needs_files=True, source=_VALIDATE)
def input_name(model: ModelUnderCheck) -> Iterator[Problem]:
    """Either all inputs have the names of arguments of ``forward``, or none has.

    If one name differs, the backend ignores all names and passes inputs in the order of the
    configuration.
    """
    given = [] if model.config is None else [tensor.name for tensor in model.config.input]
    for file in _files(model):
        arguments = [argument.name for argument in file.inputs]
        unknown = [index for index, name in enumerate(given) if name not in arguments]
        is_mixed = 0 < len(unknown) < len(given)
        if not is_mixed:
            continue

        index = unknown[0]
        name = given[index]
        message = f'"{name}" is not an argument of forward, so that all names are ignored'
        free = [argument for argument in arguments if argument not in given]
        hint = did_you_mean(name, free, f"use the arguments {quoted(arguments)}")
        fix = meant(hint, instead_of=name)
        yield Problem(message, ("input", index, "name"), hint, fix=fix)


@warning(
    "torchscript-input-type",
    "pytorch",
    needs_files=True,
    when=("input",),
    source="torch.jit.trace stores the inputs that it was called with",
)
def input_type(model: ModelUnderCheck) -> Iterator[Problem]:
    """The inputs of a traced model have the data types that it was traced with.

    The backend does not compare them when it loads the model, so the first request fails if the
    code does not accept the type. Scripted models, and models traced before PyTorch 2.1, do not
    contain these types.
    """
    for file in _files(model):
        if len(file.traced_types) != _input_count(model.config):
            continue
        for index, argument in enumerate(_argument_numbers(model.config, file)):
            if argument >= len(file.traced_types):
                continue
            given = data_type_name(model.config.input[index].data_type)
            traced = file.traced_types[argument]
            if given not in (traced, "TYPE_INVALID"):
                name = file.inputs[argument].name
                message = (
                    f'the model was traced with {traced} for the argument "{name}", got {given}'
                )
                place = ("input", index, "data_type")
                yield Problem(message, place, f"write {traced}", fix=unsafe(put(traced)))


def _argument_numbers(config: Any, file: ModelFile) -> list[int]:
    """Return the number of the argument that each input becomes. Source: GetNamingConvention."""
    given = [tensor.name for tensor in config.input]
    arguments = [argument.name for argument in file.inputs]
    if all(name in arguments for name in given):
        return [arguments.index(name) for name in given]

    numbers = [_number_in(name) for name in given]
    if all(number is not None for number in numbers):
        return [number for number in numbers if number is not None]
    return list(range(len(given)))


def _number_in(name: str) -> int | None:
    """Return the number of the argument in a name such as ``INPUT__0``."""
    _, mark, number = name.rpartition("__")
    is_number = bool(mark) and number.isdecimal() and len(number) < 5
    return int(number) if is_number else None


@warning(
    "torchscript-device",
    "pytorch",
    needs_files=True,
    source="torch.jit.trace records devices as constants",
    hint="trace the model on the device that serves it, or create tensors with device=x.device",
)
def device(model: ModelUnderCheck) -> Iterator[Problem]:
    """The code of a model that runs on a GPU does not name the CPU.

    A tensor that the code creates on the CPU cannot be combined with inputs on the GPU: each
    request fails.
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


@warning(
    "backend-pytorch-names",
    "pytorch",
    source="triton pytorch_backend, model_instance_state.cc",
    hint="name all of them INPUT__0, INPUT__1, OUTPUT__0 and so on, in the order of forward()",
)
def pytorch_names(model: ModelUnderCheck) -> Iterator[Problem]:
    """Either all tensors of a PyTorch model are named ``name__index``, or none is.

    Triton passes tensors with other names in the order of the configuration. If only some names
    have an index, the order is not what most people expect. The control inputs of sequences need an
    index in every release. With states, every tensor and every state needs one from 23.07 on;
    before, a state without one counts as the first tensor.
    """
    if model.config is None or model.config.runtime == "model.py":
        return
    yield from _pytorch_sequence_names(model)
    names = [tensor.name for _, _, tensor in model.tensors]
    following = [name for name in names if name.rpartition("__")[2].isdigit() and "__" in name]
    if following and len(following) < len(names):
        message = f'only some tensors are named name__index, for example "{following[0]}"'
        yield Problem(message, ("input",))


def _pytorch_sequence_names(model: ModelUnderCheck) -> Iterator[Problem]:
    """Yield the names of control inputs and states without an index.

    Source: pytorch_backend, ValidateBooleanSequenceControl and GetNamingConvention, read in the
    releases from 21.08 to 26.05.
    """
    if model.config.platform == "torch_aoti":
        return  # Another format of models, of which no rule is known about sequences.
    sequence = model.config.sequence_batching
    named: list[tuple[FieldPath, str]] = []
    for index, control in enumerate(sequence.control_input):
        named.append((("sequence_batching", "control_input", index), control.name))
    for index, state in enumerate(sequence.state):
        place = ("sequence_batching", "state", index)
        named.append(((*place, "input_name"), state.input_name))
        named.append(((*place, "output_name"), state.output_name))

    for field, name in named:
        if not _has_pytorch_index(name):
            message = f"input '{name}' does not follow <name>__<index> naming convention"
            yield Problem(message, field, f'rename it, for example to "{name}__1"')


def _has_pytorch_index(name: str) -> bool:
    """Whether only digits follow the first two underscores."""
    return name.partition("__")[2].isdigit()
