"""The graph of an ensemble by itself. Source: triton core, ValidateEnsembleSchedulingConfig."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from constructs_triton_core.findings import Severity
from constructs_triton_core.spelling import did_you_mean, quoted
from triton_model_check.checks.model_under_check import ModelUnderCheck
from triton_model_check.checks.rules import Problem, rule
from triton_model_check.checks.tensors import declared_twice, has_too_many_inputs
from triton_model_check.fixes.steps import meant, remove, safe, unsafe

_VALIDATE = "triton core ValidateEnsembleSchedulingConfig"
_BUILD = "triton core BuildEnsembleGraph"
STEPS = ("ensemble_scheduling", "step")
ensemble_rule = partial(rule, scope="ensemble")


@ensemble_rule(
    "ensemble-field",
    source=_VALIDATE,
    hint="remove it from the ensemble; set it in the models of the steps",
)
def field(model: ModelUnderCheck) -> Iterator[Problem]:
    """An ensemble has no ``instance_group``, no ``optimization`` and no ``model_warmup``.

    The ensemble itself runs no code; the models of its steps do.
    """
    config = model.config
    for name, what, is_set in (
        ("instance_group", "instance group should", bool(config.instance_group)),
        ("optimization", "optimization should", config.HasField("optimization")),
        ("model_warmup", "model_warmup can", bool(config.model_warmup)),
    ):
        if is_set:
            yield Problem(f"{what} not be specified for ensemble", (name,), fix=safe(remove()))


@ensemble_rule(
    "ensemble-ragged",
    severity=Severity.WARNING,
    when=("input",),
    source="triton core backend_model.cc, read in the releases from 22.04 to 26.05",
    hint="remove it from the ensemble; set it in the models of the steps",
)
def ragged(model: ModelUnderCheck) -> Iterator[Problem]:
    """An input of an ensemble does not set ``allow_ragged_batch``.

    Only a model with a batcher of its own reads the field, and an ensemble has none. The batchers
    of the steps read the field of their own inputs.
    """
    for index, tensor in enumerate(model.config.input):
        if tensor.allow_ragged_batch:
            message = f'allow_ragged_batch of input "{tensor.name}" has no effect in an ensemble'
            place = ("input", index, "allow_ragged_batch")
            yield Problem(message, place, fix=safe(remove()))


@ensemble_rule("ensemble-no-step", source=_VALIDATE, hint="add a step to ensemble_scheduling")
def no_step(model: ModelUnderCheck) -> Iterator[Problem]:
    """An ensemble has at least one step.

    An ensemble without steps cannot return its input as output.
    """
    if model.config.HasField("ensemble_scheduling") and not model.graph.steps:
        yield Problem("must specify 'step' for ensemble", ("ensemble_scheduling",))


@ensemble_rule("ensemble-step-incomplete", source=_BUILD)
def step_incomplete(model: ModelUnderCheck) -> Iterator[Problem]:
    """Each step names a model and maps at least one input and one output.

    Outputs that no step reads may be left out, but not all of them.
    """
    for step in model.graph.steps:
        for name in ("model_name", "input_map", "output_map"):
            if not getattr(step, name):
                yield Problem(
                    f"must specify '{name}' in {step.title}",
                    (*STEPS, step.index),
                    f"add {name} to the step",
                )


@ensemble_rule("ensemble-written-twice", source=_BUILD, hint="give each output its own tensor")
def written_twice(model: ModelUnderCheck) -> Iterator[Problem]:
    """Each tensor is written by one output of one step.

    Triton does not merge tensors.
    """
    for tensor, steps in model.graph.producers.items():
        if len(steps) > 1:
            writers = " and ".join(dict.fromkeys(step.title for step in steps))
            message = (
                f'ensemble tensor "{tensor}" can appear in an output map only once, got {writers}'
            )
            yield Problem(message, (*STEPS, steps[1].index))


@ensemble_rule("ensemble-unused-input", source=_VALIDATE)
def unused_input(model: ModelUnderCheck) -> Iterator[Problem]:
    """Every input of the ensemble is used by a step.

    A common cause is a key that occurs twice in an ``input_map``: Triton uses only the last value.
    """
    graph = model.graph
    if not graph.steps:
        return
    misspelled = graph.misspelled_reads.values()
    for name in graph.unused_inputs:
        if name not in misspelled:
            hint = "map it to an input of a step, or remove it"
            place = ("input", graph.inputs.index(name))
            fix = unsafe(remove()) if len(graph.inputs) > 1 else None
            yield Problem(f'ensemble input "{name}" is not used', place, hint, fix=fix)


@ensemble_rule("ensemble-unproduced", source=_VALIDATE)
def unproduced(model: ModelUnderCheck) -> Iterator[Problem]:
    """Every tensor that a step reads, and every output, is written by a step or is an input.

    Names are case-sensitive.
    """
    graph = model.graph
    if not graph.steps:
        return
    known = sorted({*graph.inputs, *graph.producers})
    unused = graph.misspelled_reads
    reported = graph.misspelled_writes.values()
    for tensor in graph.unproduced:
        if tensor in reported:
            continue
        candidates = [unused[tensor]] if tensor in unused else known
        used = () if tensor in unused else known
        hint = did_you_mean(tensor, candidates, "map an output of a step to it", used=used)
        if tensor in graph.outputs:
            place: tuple[str | int, ...] = ("output", graph.outputs.index(tensor))
            message = f'output "{tensor}" is not written, got tensors {quoted(known)}'
        else:
            step = graph.readers[tensor][0]
            key = next(key for key, value in step.input_map.items() if value == tensor)
            place = (*STEPS, step.index, "input_map", key)
            message = f'{step.title} input_map["{key}"]: nothing writes tensor "{tensor}"'
            message += f", got tensors {quoted(known)}"
        field = "name" if tensor in graph.outputs else "value"
        yield Problem(message, place, hint, fix=meant(hint, field, instead_of=tensor, used=used))


@ensemble_rule("ensemble-unread", source=_VALIDATE)
def unread(model: ModelUnderCheck) -> Iterator[Problem]:
    """Every tensor that a step writes is read by a step or is an output.

    Leave an output that no step reads out of ``output_map``.
    """
    graph = model.graph
    similar = graph.misspelled_writes
    reported = graph.misspelled_reads.values()
    for tensor in graph.unread:
        if tensor in reported:
            continue
        step = graph.producers[tensor][0]
        key = next(key for key, value in step.output_map.items() if value == tensor)
        is_only_output = len(step.output_map) == 1
        if tensor in similar:
            hint = f'did you mean "{similar[tensor]}"?'
        elif is_only_output:
            hint = "remove the step, or add the tensor to output or to an input_map"
        else:
            hint = f'remove "{key}" from output_map'

        fix = meant(hint, "value", instead_of=tensor)
        if fix is None and not is_only_output and tensor not in similar:
            fix = unsafe(remove())
        message = f'{step.title} output_map["{key}"]: ensemble tensor "{tensor}" is unused'
        yield Problem(message, (*STEPS, step.index, "output_map", key), hint, fix=fix)


@ensemble_rule(
    "ensemble-cycle", source=_VALIDATE, hint="change a map so that no step needs its own output"
)
def cycle(model: ModelUnderCheck) -> Iterator[Problem]:
    """No tensor depends on itself.

    The steps may be in any order; Triton derives the order from the tensors.
    """
    waiting = model.graph.in_cycle
    if waiting:
        step = model.graph.producers[waiting[0]][0]
        message = (
            "ensemble tensors are not written because they depend on each other, "
            f"got {quoted(waiting)}"
        )
        yield Problem(message, (*STEPS, step.index))


@ensemble_rule(
    "ensemble-writes-input",
    rejects=False,
    source="observed with triton server 2.51",
    hint="map the step's output to another tensor name",
)
def writes_input(model: ModelUnderCheck) -> Iterator[Problem]:
    """No step writes an input of the ensemble.

    Triton loads such an ensemble and ``/ping`` succeeds, but every request hangs.
    """
    graph = model.graph
    for tensor in sorted(set(graph.inputs) & set(graph.producers)):
        step = graph.producers[tensor][0]
        yield Problem(
            f'{step.title} writes an input of the ensemble, got "{tensor}"', (*STEPS, step.index)
        )


@ensemble_rule(
    "ensemble-duplicate-tensor",
    source="observed with triton server 2.51",
    rejects=False,
    hint="remove one of the two",
)
def duplicate_tensor(model: ModelUnderCheck) -> Iterator[Problem]:
    """An ensemble declares each input once.

    Triton loads duplicates, but then every request has the wrong number of inputs. It answers with
    an output that is declared twice, which ``tensor-duplicate-output`` reports.
    """
    if has_too_many_inputs(model.config):
        yield from declared_twice("input", model.config.input)
