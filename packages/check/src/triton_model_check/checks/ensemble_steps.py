"""An ensemble and the models of its steps. Source: triton core, ValidateEnsembleConfig."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from constructs_triton_core.spelling import did_you_mean, quoted
from triton_model_check.checks.ensemble import STEPS, ensemble_rule
from triton_model_check.checks.model_under_check import ModelUnderCheck
from triton_model_check.checks.rules import Problem, warning
from triton_model_check.fixes.steps import meant, put, unsafe
from triton_model_check.model.ensemble_graph import Step
from triton_model_check.model_config.schema import data_type_name

_DEPENDENCIES = "triton core ConnectDependencyGraph"
_MAPPING = "triton core ValidateTensorMapping"
_NORMALIZE = "triton core InferenceRequest::Normalize"
_CONSISTENCY = "triton core ValidateTensorConsistency"


def steps(model: ModelUnderCheck) -> Iterator[tuple[Step, ModelUnderCheck]]:
    """Yield the steps whose models are in the repository and have a configuration,
    with these models.
    """
    for step in model.graph.steps:
        step_model = model.context.models.get(step.model_name)
        if step_model is not None and step_model.final_config is not None:
            yield step, step_model


@ensemble_rule("ensemble-unknown-model", source=_DEPENDENCIES)
def unknown_model(model: ModelUnderCheck) -> Iterator[Problem]:
    """The model of every step is in the repository.

    On a multi-model endpoint it must be in the archive of the ensemble; packing puts it there.
    """
    for step in model.graph.steps:
        if step.model_name and step.model_name not in model.context.folders:
            others = [name for name in model.context.folders if name != model.name]
            otherwise = "add its folder beside the folder of the ensemble"
            hint = did_you_mean(step.model_name, others, otherwise, used=others)
            message = f"step {step.index + 1}: ensemble contains models that are not available"
            message += f', got "{step.model_name}"'
            used = model.context.used_as_parts
            fix = meant(hint, instead_of=step.model_name, used=used)
            yield Problem(message, (*STEPS, step.index, "model_name"), hint, fix=fix)


@ensemble_rule("ensemble-model-cycle", source="triton core CircularDependencyCheck")
def model_cycle(model: ModelUnderCheck) -> Iterator[Problem]:
    """No ensemble is a step of itself, directly or through other ensembles.

    Otherwise ensembles may be nested. A cycle is reported once, at the first of its ensembles by
    name.
    """
    cycle = model.context.ensemble_cycles.get(model.name, ())
    if len(cycle) == 1:
        yield Problem(
            "circular dependency between ensembles: this one is a step of itself",
            STEPS,
            "remove that step",
        )
    elif cycle:
        message = f"circular dependency between ensembles: {quoted(cycle)} lead back to each other"
        yield Problem(message, STEPS, "remove a step of one of them")


@ensemble_rule("ensemble-step-version", source="triton core CheckNode", needs_files=True)
def step_version(model: ModelUnderCheck) -> Iterator[Problem]:
    """The version of a step's model is loaded.

    ``-1`` means the newest version. If ``model_version`` is left out, it means version 0, not the
    newest.
    """
    for step in model.graph.steps:
        step_model = model.context.models.get(step.model_name)
        if step_model is None or step_model.folder.config_fault or step.model_version == -1:
            continue
        loaded = [
            step_model.folder.version_directories[name] for name in step_model.versions_to_load
        ]
        if not loaded or step.model_version in loaded:
            continue
        versions = ", ".join(map(str, sorted(version for version in loaded if version is not None)))
        place = (*STEPS, step.index, "model_version")
        message = (
            f"{step.title}: required version {step.model_version} is not loaded, got {versions}"
        )
        yield Problem(message, place, "write model_version: -1", fix=unsafe(put("-1")))


@ensemble_rule("ensemble-batch-size", source="triton core ValidateEnsembleConfig")
def batch_size(model: ModelUnderCheck) -> Iterator[Problem]:
    """The ``max_batch_size`` of a step's model is 0 or at least that of the ensemble.

    A model with 0 receives the batch axis as part of the shape.
    """
    wanted = model.config.max_batch_size
    for step, step_model in steps(model):
        size = step_model.final_config.max_batch_size
        if size != 0 and size < wanted:
            hint = f"set max_batch_size to {size} in the ensemble, or to {wanted} in the model"
            message = (
                f"ensemble allows maximum batch size {wanted}, "
                f"but it contains {step.title} which only "
            )
            message += f"allows maximum batch size to be {size}"
            fix = unsafe(put(str(size), path=("max_batch_size",)))
            yield Problem(message, (*STEPS, step.index), hint, fix=fix)


@ensemble_rule("ensemble-unknown-tensor", source=_MAPPING)
def unknown_tensor(model: ModelUnderCheck) -> Iterator[Problem]:
    """The keys of ``input_map`` and ``output_map`` are inputs and outputs of the step's model.

    The rule skips models whose backend completes inputs and outputs.
    """
    for step in model.graph.steps:
        step_model = model.context.models.get(step.model_name)
        if step_model is None or step_model.completes_tensors:
            continue
        if step_model.config is None and step_model.folder.has_config:  # it cannot be read
            continue
        yield from _unknown_keys(model, step, "input", step_model.final_config)
        yield from _unknown_keys(model, step, "output", step_model.final_config)


def _unknown_keys(
    model: ModelUnderCheck, step: Step, field: str, step_config: Any
) -> Iterator[Problem]:
    """Yield a problem for each key of ``input_map`` or ``output_map`` that names no tensor.

    ``field`` is ``"input"`` or ``"output"``, and ``step_config`` the configuration of the model.
    """
    given = step.input_map if field == "input" else step.output_map
    direction = "to" if field == "input" else "from"
    names = dict.fromkeys(tensor.name for tensor in getattr(step_config, field, ()))
    free = [name for name in names if name not in given]
    otherwise = "add it to the model"
    if names:
        otherwise = f"write one of the model's {field}s: {quoted(names)}"

    graph = model.graph
    ensemble_tensors = {*graph.inputs, *graph.outputs, *graph.tensors}
    for key in sorted(set(given) - names.keys()):
        tensor = given[key]
        is_swapped = key in ensemble_tensors and tensor in free
        if is_swapped:
            hint = f'swap the two: key: "{tensor}" value: "{key}"'
        else:
            hint = did_you_mean(key, free, otherwise)
        message = (
            f"{step.title} {field}_map: "
            f'ensemble tensor "{tensor}" is mapped {direction} non-existing {field} "{key}"'
        )
        place = (*STEPS, step.index, f"{field}_map", key)
        fix = meant(hint, "key", instead_of=key, used=given)
        yield Problem(message, place, hint, fix=fix)


@ensemble_rule(
    "ensemble-unmapped-input",
    source=_MAPPING,
    hint="add it to input_map, or set optional: true in the model",
)
def unmapped_input(model: ModelUnderCheck) -> Iterator[Problem]:
    """Every input of a step's model is mapped, unless it is optional.

    Outputs may be left out.
    """
    for step, step_model in steps(model):
        if not step.input_map:
            continue
        for tensor in step_model.final_config.input:
            if tensor.name and tensor.name not in step.input_map and not tensor.optional:
                what = f'input "{tensor.name}" is not mapped to any ensemble tensors'
                yield Problem(f"{step.title} input_map: {what}", (*STEPS, step.index, "input_map"))


# --- types and shapes along each tensor -----------------------------------------------------------


class Declaration(NamedTuple):
    """One declaration of a tensor; ``dims`` without and ``full_dims`` with the batch axis."""

    owner: str
    data_type: int
    dims: tuple[int, ...]
    full_dims: tuple[int, ...]
    place: tuple[str | int, ...]


def declarations(model: ModelUnderCheck) -> Iterator[tuple[str, Declaration]]:
    """Yield every tensor with each of its declarations, in the order in which Triton reads them.

    Those of the ensemble come first. Triton applies ``reshape`` only to them, and uses the first
    one of two inputs or outputs with the same name.
    """
    batching = model.config.max_batch_size > 0
    for field in ("input", "output"):
        known: set[str] = set()
        for index, tensor in enumerate(getattr(model.config, field)):
            dims = tensor.reshape.shape if tensor.HasField("reshape") else tensor.dims
            if tensor.dims and tensor.name not in known:
                yield (
                    tensor.name,
                    _declaration("the ensemble", tensor, dims, batching, (field, index)),
                )
            known.add(tensor.name)
    for step, step_model in steps(model):
        if step_model.completes_tensors and step_model.final_config.max_batch_size == 0:
            continue  # the backend may enable batching, so its shapes are unknown
        for field, given in (("input", step.input_map), ("output", step.output_map)):
            for tensor in getattr(step_model.final_config, field):
                if tensor.name in given and tensor.dims and tensor.data_type:
                    place = (*STEPS, step.index, f"{field}_map", tensor.name)
                    is_batching = step_model.final_config.max_batch_size > 0
                    yield (
                        given[tensor.name],
                        _declaration(
                            f'model "{step.model_name}"', tensor, tensor.dims, is_batching, place
                        ),
                    )


def _declaration(
    owner: str, tensor: Any, dims: Any, batching: bool, place: tuple[str | int, ...]
) -> Declaration:
    plain = tuple(dims)
    return Declaration(owner, tensor.data_type, plain, (-1, *plain) if batching else plain, place)


# Three rules need the pairs of a model, one after the other.
@lru_cache(maxsize=1)
def pairs(model: ModelUnderCheck) -> list[tuple[str, Declaration, Declaration]]:
    """Return each further declaration of a tensor with the first one."""
    first: dict[str, Declaration] = {}
    found = []
    for tensor, declaration in declarations(model):
        if tensor in first:
            found.append((tensor, first[tensor], declaration))
        else:
            first[tensor] = declaration
    return found


def matches(left: Sequence[int], right: Sequence[int]) -> bool:
    """Whether two shapes agree; ``-1`` agrees with any size."""
    return len(left) == len(right) and all(
        -1 in (a, b) or a == b for a, b in zip(left, right, strict=True)
    )


@ensemble_rule(
    "ensemble-data-type",
    source=_CONSISTENCY,
    hint="make the data types equal; Triton does not convert them",
)
def data_type(model: ModelUnderCheck) -> Iterator[Problem]:
    """A tensor has the same data type in every declaration.

    The declarations are in the ensemble, in the model that writes it, and in the models that read
    it.
    """
    for tensor, one, other in pairs(model):
        if one.data_type and one.data_type != other.data_type:
            names = data_type_name(one.data_type), data_type_name(other.data_type)
            message = (
                f'ensemble tensor "{tensor}": inconsistent data type: {names[0]} is inferred from '
            )
            message += f"{one.owner} while {names[1]} is inferred from {other.owner}"
            yield Problem(message, other.place)


@ensemble_rule(
    "ensemble-shape", source=_CONSISTENCY, hint="make the shapes equal, with -1 for a variable size"
)
def shape(model: ModelUnderCheck) -> Iterator[Problem]:
    """A tensor has the same shape in every declaration, with or without the batch axis.

    ``-1`` agrees with any size; whether the real sizes agree shows only at run time.
    """
    for tensor, one, other in pairs(model):
        if not matches(one.dims, other.dims) and not matches(one.full_dims, other.full_dims):
            message = (
                f'ensemble tensor "{tensor}": inconsistent shape: '
                f"{list(one.full_dims)} is inferred "
            )
            message += (
                f"from {one.owner} while {list(other.full_dims)} is inferred from {other.owner}"
            )
            yield Problem(message, other.place)


@warning(
    "ensemble-batch-axis",
    "ensemble",
    source=_CONSISTENCY,
    hint="set max_batch_size in the model where it is 0, or add -1 as the first dim of its tensor",
)
def batch_axis(model: ModelUnderCheck) -> Iterator[Problem]:
    """Between a model with batching and one without, the shapes agree including the batch axis.

    Triton also loads shapes that agree without the batch axis, but at run time the tensor has one
    more.
    """
    for tensor, one, other in pairs(model):
        batching = len(one.full_dims) - len(one.dims), len(other.full_dims) - len(other.dims)
        mixed = batching[0] != batching[1] and matches(one.dims, other.dims)
        if mixed and not matches(one.full_dims, other.full_dims):
            message = (
                f'tensor "{tensor}" has a batch axis only in one of {one.owner} and {other.owner}'
            )
            yield Problem(message, other.place)


@warning("ensemble-batch-exceeded", "ensemble", source=_NORMALIZE)
def batch_exceeded(model: ModelUnderCheck) -> Iterator[Problem]:
    """A model that batches gets no more rows than its ``max_batch_size`` from a model that does
    not.

    Between a decoder that writes any number of frames and a detector, for example, the first dim of
    the decoder becomes the batch of the detector. Triton refuses a request with more rows. In an
    ensemble that batches itself, its own ``max_batch_size`` limits them.
    """
    if model.config.max_batch_size > 0:
        return
    writers = _writers_of_any_number(model)
    for step, step_model in steps(model):
        size = step_model.final_config.max_batch_size
        for tensor in step_model.final_config.input if size else ():
            name = step.input_map.get(tensor.name, "")
            writer = writers.get(name)
            if writer is not None and len(writer.dims) == len(tensor.dims) + 1:
                message = (
                    f'tensor "{name}": {writer.owner} writes any number of rows, and model '
                    f'"{step.model_name}" takes at most {size} of them in a request'
                )
                hint = (
                    f'write max_batch_size: 0 in model "{step.model_name}" and -1 as the first dim '
                    "of its tensors, so that it takes any number of rows"
                )
                yield Problem(message, (*STEPS, step.index, "input_map", tensor.name), hint)


def _writers_of_any_number(model: ModelUnderCheck) -> dict[str, Declaration]:
    """Return the outputs of models without batching whose first dim is -1, by the tensor."""
    found: dict[str, Declaration] = {}
    for tensor, declaration in declarations(model):
        is_output = declaration.place[:1] == STEPS[:1] and "output_map" in declaration.place
        is_unbatched = declaration.dims == declaration.full_dims
        if is_output and is_unbatched and declaration.dims[0] == -1:
            found[tensor] = declaration
    return found


@ensemble_rule(
    "ensemble-decoupled-branches",
    source="triton core ValidateEnsembleConfig",
    hint="read from only one decoupled model in each step",
)
def decoupled_branches(model: ModelUnderCheck) -> Iterator[Problem]:
    """Neither a step nor the ensemble's outputs mix tensors of different decoupled models.

    Each of these models may send a different number of responses.
    """
    decoupled = model.context.decoupled.intersection(model.folder.step_models)
    for step in model.graph.joins_decoupled_branches(decoupled) if decoupled else ():
        message = f"{step.title} receives inputs originated from different decoupled models"
        yield Problem(message, (*STEPS, step.index))
    if decoupled and model.graph.has_outputs_of_different_branches(decoupled):
        message = "the outputs of the ensemble originate from different decoupled models"
        yield Problem(
            message, ("output",), "write all outputs in steps after the same decoupled model"
        )
