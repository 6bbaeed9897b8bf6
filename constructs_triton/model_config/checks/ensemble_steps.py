"""What joins an ensemble to the models of its steps. Source: triton core, ValidateEnsembleConfig."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from constructs_triton.findings import Severity
from constructs_triton.model_config.checks.ensemble import STEPS
from constructs_triton.model_config.ensemble import Step
from constructs_triton.model_config.model_under_check import ModelUnderCheck
from constructs_triton.model_config.rules import Problem, rule
from constructs_triton.model_config.schema import data_type_name
from constructs_triton.spelling import did_you_mean, quoted

__all__: list[str] = []

_DEPENDENCIES = "triton core ConnectDependencyGraph"
_MAPPING = "triton core ValidateTensorMapping"
_CONSISTENCY = "triton core ValidateTensorConsistency"


def steps(model: ModelUnderCheck) -> Iterator[tuple[Step, ModelUnderCheck]]:
    """The steps whose models can be judged, with these."""
    for step in model.graph.steps:
        step_model = model.context.models.get(step.model_name)
        if step_model is not None and step_model.config is not None:
            yield step, step_model


@rule("ensemble-unknown-model", "ensemble", source=_DEPENDENCIES)
def unknown_model(model: ModelUnderCheck) -> Iterator[Problem]:
    """The model of every step is in the repository.

    In a multi-model endpoint it must lie in the ensemble's own archive; packing puts it there.
    """
    for step in model.graph.steps:
        if step.model_name and step.model_name not in model.context.folders:
            there = [name for name in model.context.folders if name != model.name]
            hint = did_you_mean(step.model_name, there, "add its folder beside the ensemble's")
            message = f'step {step.index + 1}: no such model, got "{step.model_name}"'
            yield Problem(message, (*STEPS, step.index, "model_name"), hint)


@rule(
    "ensemble-model-cycle", "ensemble", source="triton core CircularDependencyCheck", hint="break the cycle"
)
def model_cycle(model: ModelUnderCheck) -> Iterator[Problem]:
    """No ensemble is a step of itself, directly or through others.

    Nested ensembles are fine otherwise.
    """
    reached: set[str] = set()
    waiting = list(model.folder.step_models)
    while waiting:
        name = waiting.pop()
        if name in model.context.folders and name not in reached:
            reached.add(name)
            waiting.extend(model.context.folders[name].step_models)
    if model.name in reached:
        yield Problem("the ensemble is a step of itself", STEPS)


@rule("ensemble-step-version", "ensemble", source="triton core CheckNode", needs_files=True)
def step_version(model: ModelUnderCheck) -> Iterator[Problem]:
    """The version that a step asks for is loaded; ``-1`` takes the newest.

    Left out, ``model_version`` means 0, not the newest.
    """
    for step in model.graph.steps:
        step_model = model.context.models.get(step.model_name)
        if step_model is None or step_model.folder.config_fault or step.model_version == -1:
            continue
        loaded = [step_model.folder.version_directories[name] for name in step_model.versions_to_load]
        if not loaded or step.model_version in loaded:
            continue
        got = (
            f"asks for version {step.model_version}"
            if step.model_version
            else "asks for version 0, as by leaving it out"
        )
        there = ", ".join(
            str(version) for version in sorted(number for number in loaded if number is not None)
        )
        place = (*STEPS, step.index, "model_version")
        yield Problem(f"{step.title} {got}; loaded: {there}", place, "write model_version: -1")


@rule("ensemble-batch-size", "ensemble", source="triton core ValidateEnsembleConfig")
def batch_size(model: ModelUnderCheck) -> Iterator[Problem]:
    """A step's ``max_batch_size`` is 0 or at least the ensemble's.

    A step that does not batch takes the batch axis as an ordinary one.
    """
    wanted = model.config.max_batch_size
    for step, step_model in steps(model):
        size = step_model.config.max_batch_size
        if size != 0 and size < wanted:
            hint = f"lower the ensemble's to {size}, or raise the model's to {wanted}"
            message = f"{step.title} has max_batch_size {size}, the ensemble {wanted}"
            yield Problem(message, (*STEPS, step.index), hint)


@rule("ensemble-unknown-tensor", "ensemble", source=_MAPPING)
def unknown_tensor(model: ModelUnderCheck) -> Iterator[Problem]:
    """The keys of ``input_map`` and ``output_map`` are inputs and outputs of the step's model.

    Not judged where the model's backend completes its inputs and outputs.
    """
    for step, step_model in steps(model):
        if step_model.completes_tensors:
            continue
        for field, given in (("input", step.input_map), ("output", step.output_map)):
            names = [tensor.name for tensor in getattr(step_model.config, field)]
            for key in sorted(given):
                if key not in names:
                    message = f'{step.title} {field}_map: the model has no {field} "{key}"'
                    hint = did_you_mean(key, names, f"it has {quoted(names)}")
                    yield Problem(message, (*STEPS, step.index, f"{field}_map", key), hint)


@rule("ensemble-unmapped-input", "ensemble", source=_MAPPING, hint="map it, or make it optional")
def unmapped_input(model: ModelUnderCheck) -> Iterator[Problem]:
    """Every input of a step's model is mapped, unless it is optional.

    Outputs may be left out.
    """
    for step, step_model in steps(model):
        if not step.input_map:
            continue
        for tensor in step_model.config.input:
            if tensor.name and tensor.name not in step.input_map and not tensor.optional:
                place = (*STEPS, step.index, "input_map")
                yield Problem(f'{step.title} input_map: input "{tensor.name}" is not mapped', place)


# --- types and shapes along each tensor -------------------------------------------------------------------


class End(NamedTuple):
    """A tensor as one model declares it; ``dims`` without and ``full_dims`` with the batch axis."""

    owner: str
    data_type: int
    dims: tuple[int, ...]
    full_dims: tuple[int, ...]
    place: tuple[str | int, ...]


def ends(model: ModelUnderCheck) -> Iterator[tuple[str, End]]:
    """Every tensor with each declaration of it, the ensemble's own first, as the server goes through them.

    A ``reshape`` counts for the ensemble's own inputs and outputs and not for those of the steps.
    """
    batching = model.config.max_batch_size > 0
    for field in ("input", "output"):
        for index, tensor in enumerate(getattr(model.config, field)):
            dims = tensor.reshape.shape if tensor.HasField("reshape") else tensor.dims
            if tensor.dims:
                yield tensor.name, _end("the ensemble", tensor, dims, batching, (field, index))
    for step, step_model in steps(model):
        if step_model.completes_tensors and step_model.config.max_batch_size == 0:
            continue  # the backend may make it batch: its shapes are not known
        for field, given in (("input", step.input_map), ("output", step.output_map)):
            for tensor in getattr(step_model.config, field):
                if tensor.name in given and tensor.dims and tensor.data_type:
                    place = (*STEPS, step.index, f"{field}_map", tensor.name)
                    is_batching = step_model.config.max_batch_size > 0
                    yield (
                        given[tensor.name],
                        _end(f'"{step.model_name}"', tensor, tensor.dims, is_batching, place),
                    )


def _end(owner: str, tensor: Any, dims: Any, batching: bool, place: tuple[str | int, ...]) -> End:
    plain = tuple(dims)
    return End(owner, tensor.data_type, plain, (-1, *plain) if batching else plain, place)


def pairs(model: ModelUnderCheck) -> Iterator[tuple[str, End, End]]:
    """Each later declaration of a tensor beside the first."""
    first: dict[str, End] = {}
    for tensor, end in ends(model):
        if tensor in first:
            yield tensor, first[tensor], end
        else:
            first[tensor] = end


def matches(left: Sequence[int], right: Sequence[int]) -> bool:
    """Whether two shapes agree, ``-1`` with anything."""
    return len(left) == len(right) and all(-1 in (a, b) or a == b for a, b in zip(left, right, strict=True))


@rule("ensemble-data-type", "ensemble", source=_CONSISTENCY, hint="make them equal; nothing is converted")
def data_type(model: ModelUnderCheck) -> Iterator[Problem]:
    """A tensor has the same type wherever it is declared.

    In the ensemble, where it is written, and where it is read.
    """
    for tensor, one, other in pairs(model):
        if one.data_type and one.data_type != other.data_type:
            names = data_type_name(one.data_type), data_type_name(other.data_type)
            message = f'tensor "{tensor}" is {names[0]} for {one.owner} and {names[1]} for {other.owner}'
            yield Problem(message, other.place)


@rule("ensemble-shape", "ensemble", source=_CONSISTENCY, hint="make them equal, or -1 where they vary")
def shape(model: ModelUnderCheck) -> Iterator[Problem]:
    """A tensor has the same shape wherever it is declared: as declared, or with the batch axis before it.

    ``-1`` agrees with anything, and is found out at run time.
    """
    for tensor, one, other in pairs(model):
        if not matches(one.dims, other.dims) and not matches(one.full_dims, other.full_dims):
            message = (
                f'tensor "{tensor}" has shape {list(one.full_dims)} for {one.owner} '
                f"and {list(other.full_dims)} for {other.owner}"
            )
            yield Problem(message, other.place)


@rule(
    "ensemble-batch-axis",
    "ensemble",
    severity=Severity.WARNING,
    source=_CONSISTENCY,
    hint="give the model that does not batch the batch axis, as -1",
)
def batch_axis(model: ModelUnderCheck) -> Iterator[Problem]:
    """Where one model batches and the next does not, the shapes agree with the batch axis.

    The server also lets pass what agrees without it; at run time the axis is one too many.
    """
    for tensor, one, other in pairs(model):
        batching = len(one.full_dims) - len(one.dims), len(other.full_dims) - len(other.dims)
        mixed = batching[0] != batching[1] and matches(one.dims, other.dims)
        if mixed and not matches(one.full_dims, other.full_dims):
            message = f'tensor "{tensor}" has a batch axis for only one of {one.owner} and {other.owner}'
            yield Problem(message, other.place)


@rule(
    "ensemble-decoupled-branches",
    "ensemble",
    source="triton core ValidateEnsembleConfig",
    hint="join them in one model",
)
def decoupled_branches(model: ModelUnderCheck) -> Iterator[Problem]:
    """No step joins tensors from differently decoupled models.

    One side may answer many times and the other once.
    """
    decoupled = {name for name in model.folder.step_models if model.context.is_decoupled(name)}
    for step in model.graph.joins_decoupled_branches(decoupled) if decoupled else ():
        yield Problem(f"{step.title} joins differently decoupled branches", (*STEPS, step.index))
