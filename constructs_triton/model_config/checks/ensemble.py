"""The graph that an ensemble draws by itself. Source: triton core, ValidateEnsembleSchedulingConfig."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from constructs_triton.model_config.model_under_check import ModelUnderCheck
from constructs_triton.model_config.rules import Problem, rule
from constructs_triton.spelling import did_you_mean, quoted

__all__: list[str] = []

_VALIDATE = "triton core ValidateEnsembleSchedulingConfig"
_BUILD = "triton core BuildEnsembleGraph"
STEPS = ("ensemble_scheduling", "step")


@rule("ensemble-field", "ensemble", source=_VALIDATE, hint="remove it; set it on the steps' own models")
def field(model: ModelUnderCheck) -> Iterator[Problem]:
    """An ensemble has no instance group, no optimization and no warm-up.

    It runs nothing itself.
    """
    config = model.config
    for name, given in (
        ("instance_group", bool(config.instance_group)),
        ("optimization", config.HasField("optimization")),
        ("model_warmup", bool(config.model_warmup)),
    ):
        if given:
            yield Problem(f"an ensemble has no {name}", (name,))


@rule("ensemble-no-step", "ensemble", source=_VALIDATE, hint="add a step")
def no_step(model: ModelUnderCheck) -> Iterator[Problem]:
    """An ensemble has at least one step.

    It cannot pass its input through.
    """
    if model.config.HasField("ensemble_scheduling") and not model.graph.steps:
        yield Problem("ensemble_scheduling has no step", ("ensemble_scheduling",))


@rule("ensemble-step-incomplete", "ensemble", source=_BUILD, hint="add it")
def step_incomplete(model: ModelUnderCheck) -> Iterator[Problem]:
    """Each step names a model and maps at least one input and one output.

    Outputs that nobody needs may be left out, but not all of them.
    """
    for step in model.graph.steps:
        for name in ("model_name", "input_map", "output_map"):
            if not getattr(step, name):
                yield Problem(f"{step.title} has no {name}", (*STEPS, step.index))


@rule("ensemble-written-twice", "ensemble", source=_BUILD, hint="give each its own tensor")
def written_twice(model: ModelUnderCheck) -> Iterator[Problem]:
    """A tensor is written by one output of one step.

    There is no merging: two writers would race.
    """
    for tensor, steps in model.graph.producers.items():
        if len(steps) > 1:
            writers = " and ".join(dict.fromkeys(step.title for step in steps))
            yield Problem(
                f'tensor "{tensor}" is written {len(steps)} times, by {writers}', (*STEPS, steps[1].index)
            )


@rule("ensemble-unused-input", "ensemble", source=_VALIDATE)
def unused_input(model: ModelUnderCheck) -> Iterator[Problem]:
    """Every input of the ensemble is used by a step.

    A key given twice in an ``input_map`` counts once, the last value wins: a common cause.
    """
    graph = model.graph
    if not graph.steps:
        return
    for name in graph.unused_inputs:
        hint = did_you_mean(name, graph.unproduced, "map it to a step, or remove it")
        yield Problem(f'input "{name}" is not used by any step', ("input", graph.inputs.index(name)), hint)


@rule("ensemble-unproduced", "ensemble", source=_VALIDATE)
def unproduced(model: ModelUnderCheck) -> Iterator[Problem]:
    """Every tensor that a step reads, and every output, is written by a step or is an input.

    Names are compared exactly.
    """
    graph = model.graph
    if not graph.steps:
        return
    there = sorted({*graph.inputs, *graph.producers})
    for tensor in graph.unproduced:
        hint = did_you_mean(tensor, there, "map an output of a step to it")
        if tensor in graph.outputs:
            place: tuple[str | int, ...] = ("output", graph.outputs.index(tensor))
            message = f'output "{tensor}" is not produced, got {quoted(there)}'
        else:
            step = graph.readers[tensor][0]
            key = next(key for key, value in step.input_map.items() if value == tensor)
            place = (*STEPS, step.index, "input_map", key)
            message = (
                f'{step.title} input_map["{key}"]: nothing produces tensor "{tensor}", got {quoted(there)}'
            )
        yield Problem(message, place, hint)


@rule("ensemble-unread", "ensemble", source=_VALIDATE)
def unread(model: ModelUnderCheck) -> Iterator[Problem]:
    """Every tensor that a step writes is read by a step or is an output.

    An output that nobody needs is left out of ``output_map`` instead.
    """
    graph = model.graph
    wanted = [*graph.unproduced]
    for tensor in graph.unread:
        step = graph.producers[tensor][0]
        key = next(key for key, value in step.output_map.items() if value == tensor)
        hint = did_you_mean(tensor, wanted, f'remove "{key}" from output_map')
        message = f'{step.title} output_map["{key}"]: nothing reads tensor "{tensor}"'
        yield Problem(message, (*STEPS, step.index, "output_map", key), hint)


@rule("ensemble-cycle", "ensemble", source=_VALIDATE, hint="break the cycle")
def cycle(model: ModelUnderCheck) -> Iterator[Problem]:
    """No tensor depends on itself.

    The order of the steps is free, since the tensors say what comes first.
    """
    waiting = model.graph.in_cycle
    if waiting:
        step = model.graph.producers[waiting[0]][0]
        yield Problem(f"tensors wait for each other: {quoted(waiting)}", (*STEPS, step.index))


@rule(
    "ensemble-writes-input",
    "ensemble",
    refuses=False,
    source="observed with triton server 2.51",
    hint="give the step's output a tensor of its own",
)
def writes_input(model: ModelUnderCheck) -> Iterator[Problem]:
    """No step writes an input of the ensemble.

    The server loads it, answers ``/ping``, and then every request hangs.
    """
    graph = model.graph
    for tensor in sorted(set(graph.inputs) & set(graph.producers)):
        step = graph.producers[tensor][0]
        yield Problem(f'{step.title} writes the ensemble\'s own input "{tensor}"', (*STEPS, step.index))


@rule(
    "ensemble-duplicate-tensor",
    "ensemble",
    source="triton core ValidateEnsembleConfig",
    refuses=False,
    hint="keep one",
)
def duplicate_tensor(model: ModelUnderCheck) -> Iterator[Problem]:
    """An ensemble declares each input and each output once.

    The server accepts it twice; requests then cannot name all of them.
    """
    for kind, names in (("input", model.graph.inputs), ("output", model.graph.outputs)):
        for name, count in Counter(names).items():
            if count > 1:
                yield Problem(f'{kind} "{name}" is declared {count} times', (kind, names.index(name) + 1))
