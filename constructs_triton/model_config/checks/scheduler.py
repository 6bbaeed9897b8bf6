"""Dynamic batching, sequence batching and the response cache. Source: triton core, ValidateModelConfig."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from constructs_triton.findings import Severity
from constructs_triton.model_config.model_under_check import ModelUnderCheck
from constructs_triton.model_config.rules import Problem, rule

__all__: list[str] = []

_VALIDATE = "triton core ValidateModelConfig"
_CONTROLS = "triton core GetBooleanSequenceControlProperties"
_START, _READY, _END, _CORRID = range(4)
_VALUE_LISTS = ("int32_false_true", "fp32_false_true", "bool_false_true")
_CORRELATION_TYPES = {4: "TYPE_UINT32", 5: "TYPE_UINT64", 8: "TYPE_INT32", 9: "TYPE_INT64", 13: "TYPE_STRING"}


@rule(
    "scheduler-dynamic-batching",
    when=("dynamic_batching",),
    severity=Severity.WARNING,
    source="triton model configuration documentation: dynamic batcher",
    hint="raise max_batch_size, or remove dynamic_batching",
)
def dynamic_batching(model: ModelUnderCheck) -> Iterator[Problem]:
    """``dynamic_batching`` stands with a ``max_batch_size`` of at least 1.

    Without it no batch is ever formed. Not judged where the backend may raise ``max_batch_size`` itself.
    """
    config = model.config
    if config.HasField("dynamic_batching") and config.max_batch_size == 0 and not model.completes_tensors:
        message = "max_batch_size: must be at least 1 when dynamic_batching is set, got 0"
        yield Problem(message, ("dynamic_batching",))


@rule("scheduler-preferred-batch-size", when=("dynamic_batching", "sequence_batching"), source=_VALIDATE)
def preferred_batch_size(model: ModelUnderCheck) -> Iterator[Problem]:
    """Each preferred batch size is between 1 and ``max_batch_size``.

    Holds for dynamic batching and for the oldest strategy of sequence batching.
    """
    config = model.config
    for place, sizes in (
        (("dynamic_batching",), config.dynamic_batching.preferred_batch_size),
        (("sequence_batching", "oldest"), config.sequence_batching.oldest.preferred_batch_size),
    ):
        for index, size in enumerate(sizes):
            if not 1 <= size <= config.max_batch_size:
                message = f"preferred_batch_size must be between 1 and max_batch_size, got {size}"
                hint = _batch_size_hint(size, config.max_batch_size)
                yield Problem(message, (*place, "preferred_batch_size", index), hint)


def _batch_size_hint(size: int, max_batch_size: int) -> str:
    if size < 1:
        return "remove it"
    if max_batch_size < 1:
        return f"max_batch_size is {max_batch_size}: raise it to {size}, or leave preferred_batch_size out"
    return f"max_batch_size is {max_batch_size}: raise it to {size}, or lower this one"


@rule("scheduler-priority", when=("dynamic_batching",), source=_VALIDATE)
def priority(model: ModelUnderCheck) -> Iterator[Problem]:
    """With ``priority_levels`` the default level and the levels of queue policies are among them.

    Levels count from 1, and the default level must be given.
    """
    batching = model.config.dynamic_batching
    levels = batching.priority_levels
    if levels == 0:
        return
    if not 1 <= batching.default_priority_level <= levels:
        message = (
            f"default_priority_level must be between 1 and {levels}, got {batching.default_priority_level}"
        )
        yield Problem(message, ("dynamic_batching", "default_priority_level"), "give one of the levels")
    for level in sorted(batching.priority_queue_policy):
        if not 1 <= level <= levels:
            place = ("dynamic_batching", "priority_queue_policy", str(level))
            yield Problem(f"a queue policy is for level {level} of {levels}", place, "give one of the levels")


@rule(
    "scheduler-priority-default",
    when=("dynamic_batching",),
    severity=Severity.WARNING,
    source="triton core ValidateModelConfig",
    hint="set priority_levels, or remove it",
)
def priority_default(model: ModelUnderCheck) -> Iterator[Problem]:
    """``default_priority_level`` stands with ``priority_levels``.

    Alone it has no effect.
    """
    batching = model.config.dynamic_batching
    if batching.default_priority_level and not batching.priority_levels:
        place = ("dynamic_batching", "default_priority_level")
        yield Problem("default_priority_level has no effect without priority_levels", place)


@rule(
    "scheduler-preserve-ordering",
    when=("dynamic_batching",),
    source=_VALIDATE,
    hint="remove preserve_ordering",
)
def preserve_ordering(model: ModelUnderCheck) -> Iterator[Problem]:
    """``preserve_ordering`` goes with one priority level and no delayed time-outs.

    Both would let a later request overtake an earlier one.
    """
    batching = model.config.dynamic_batching
    if not batching.preserve_ordering:
        return
    place = ("dynamic_batching", "preserve_ordering")
    if batching.priority_levels > 1:
        yield Problem(f"preserve_ordering allows one priority level, got {batching.priority_levels}", place)
    policies = (batching.default_queue_policy, *batching.priority_queue_policy.values())
    if any(policy.default_timeout_microseconds and policy.timeout_action == 1 for policy in policies):
        yield Problem("preserve_ordering does not go with timeout_action DELAY", place)


@rule("scheduler-response-cache", when=("response_cache",), source=_VALIDATE, hint="disable response_cache")
def response_cache(model: ModelUnderCheck) -> Iterator[Problem]:
    """The response cache goes with neither sequence batching nor decoupled models.

    A cache that the server was not started with is no error: the model loads and is not cached.
    """
    config = model.config
    if not config.response_cache.enable:
        return
    for conflicts, what in (
        (config.HasField("sequence_batching"), "sequence_batching"),
        (config.model_transaction_policy.decoupled, "a decoupled model"),
    ):
        if conflicts:
            yield Problem(f"response_cache does not go with {what}", ("response_cache",))


# --- sequence batching ------------------------------------------------------------------------------------


@rule("scheduler-control-name", "sequence", source=_CONTROLS)
def control_name(model: ModelUnderCheck) -> Iterator[Problem]:
    """Each control input has a name of its own.

    One tensor cannot carry the controls of two entries.
    """
    names = [control.name for control in model.config.sequence_batching.control_input]
    counts = Counter(names)
    for index, name in enumerate(names):
        place = ("sequence_batching", "control_input", index)
        if not name:
            yield Problem("a control_input has no name", place, "give it the name of the tensor")
        elif counts[name] > 1 and index == names.index(name):
            yield Problem(f'control_input "{name}" is given {counts[name]} times', place, "join the entries")


@rule("scheduler-control-twice", "sequence", source=_CONTROLS, hint="keep one of them")
def control_twice(model: ModelUnderCheck) -> Iterator[Problem]:
    """Each kind of control is given once.

    START, READY, END and CORRID each have one tensor.
    """
    seen: set[int] = set()
    for place, control in _controls(model):
        if control.kind in seen:
            yield Problem(f"{_kind_name(control)} is given twice", place)
        seen.add(control.kind)


@rule("scheduler-control-values", "sequence", source=_CONTROLS)
def control_values(model: ModelUnderCheck) -> Iterator[Problem]:
    """START, READY and END have exactly one pair of false and true values; CORRID has none.

    The pair stands in ``int32_false_true``, ``fp32_false_true`` or ``bool_false_true``.
    """
    for place, control in _controls(model):
        given = [name for name in _VALUE_LISTS if len(getattr(control, name))]
        if control.kind == _CORRID:
            if given:
                yield Problem(
                    f"CONTROL_SEQUENCE_CORRID has no values, got {given[0]}", place, "use data_type"
                )
        elif len(given) != 1:
            got = " and ".join(given) or "none"
            message = f"{_kind_name(control)} needs one of the lists of false and true values, got {got}"
            yield Problem(message, place, "write int32_false_true: [ 0, 1 ]")
        elif len(getattr(control, given[0])) != 2:
            yield Problem(f"{given[0]} needs exactly 2 values", place, f"write {given[0]}: [ 0, 1 ]")


@rule("scheduler-correlation-type", "sequence", source="triton core GetTypedSequenceControlProperties")
def correlation_type(model: ModelUnderCheck) -> Iterator[Problem]:
    """The correlation id is a 32 or 64 bit integer or a string.

    ``data_type`` must be given for it.
    """
    for place, control in _controls(model):
        if control.kind == _CORRID and control.data_type not in _CORRELATION_TYPES:
            hint = f"write one of {', '.join(_CORRELATION_TYPES.values())}"
            yield Problem("CONTROL_SEQUENCE_CORRID has an unfit data_type", place, hint)


@rule("scheduler-slot-utilization", "sequence", source=_VALIDATE, hint="write a fraction between 0 and 1")
def slot_utilization(model: ModelUnderCheck) -> Iterator[Problem]:
    """``minimum_slot_utilization`` is a fraction.

    Zero, which is the default, never waits for other sequences.
    """
    value = model.config.sequence_batching.direct.minimum_slot_utilization
    if value < 0 or value > 1:
        place = ("sequence_batching", "direct", "minimum_slot_utilization")
        yield Problem(f"minimum_slot_utilization must be between 0 and 1, got {value:g}", place)


def _controls(model: ModelUnderCheck) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    for index, entry in enumerate(model.config.sequence_batching.control_input):
        for position, control in enumerate(entry.control):
            yield ("sequence_batching", "control_input", index, "control", position), control


def _kind_name(control: Any) -> str:
    value = control.DESCRIPTOR.fields_by_name["kind"].enum_type.values_by_number.get(control.kind)
    return value.name if value else str(control.kind)
