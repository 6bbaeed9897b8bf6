"""Dynamic batching, sequence batching and the response cache.

Source: triton core, ValidateModelConfig.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from triton_model_check.checks.model_under_check import ModelUnderCheck
from triton_model_check.checks.rules import Problem, rule, warning
from triton_model_check.fixes.steps import put, remove, safe, unsafe
from triton_model_check.model_config.schema import data_type_name
from triton_model_check.model_config.target import SAGEMAKER

_VALIDATE = "triton core ValidateModelConfig"
_CONTROLS = "triton core GetBooleanSequenceControlProperties"
_START, _READY, _END, _CORRID = range(4)
_VALUE_LISTS = ("int32_false_true", "fp32_false_true", "bool_false_true")
_ANY_VALUES = "either 'int32_false_true', 'fp32_false_true' or 'bool_false_true'"
_CORRELATION_TYPES = {
    4: "TYPE_UINT32",
    5: "TYPE_UINT64",
    8: "TYPE_INT32",
    9: "TYPE_INT64",
    13: "TYPE_STRING",
}


@warning(
    "scheduler-dynamic-batching",
    when=("dynamic_batching",),
    source="triton model configuration documentation: dynamic batcher",
    hint="set max_batch_size to at least 1, or remove dynamic_batching",
)
def dynamic_batching(model: ModelUnderCheck) -> Iterator[Problem]:
    """``dynamic_batching`` needs a ``max_batch_size`` of at least 1.

    With 0 Triton never forms a batch. The rule skips models whose backend may set
    ``max_batch_size``.
    """
    config = model.config
    if (
        config.HasField("dynamic_batching")
        and config.max_batch_size == 0
        and not model.completes_tensors
    ):
        message = "max_batch_size: must be at least 1 when dynamic_batching is set, got 0"
        yield Problem(message, ("dynamic_batching",), fix=unsafe(remove()))


@rule(
    "scheduler-preferred-batch-size",
    when=("dynamic_batching", "sequence_batching"),
    source=_VALIDATE,
)
def preferred_batch_size(model: ModelUnderCheck) -> Iterator[Problem]:
    """Each preferred batch size is between 1 and ``max_batch_size``.

    This applies to dynamic batching and to the ``oldest`` strategy of sequence batching.
    """
    config = model.config
    dynamic = config.dynamic_batching
    oldest = config.sequence_batching.oldest
    for place, name, sizes in (
        (("dynamic_batching",), "dynamic batching preferred size", dynamic.preferred_batch_size),
        (
            ("sequence_batching", "oldest"),
            "sequence batching preferred batch size",
            oldest.preferred_batch_size,
        ),
    ):
        for index, size in enumerate(sizes):
            if not 1 <= size <= config.max_batch_size:
                must = "must be positive" if size < 1 else "must be <= max batch size"
                message = f"{name} {must}, got {size}"
                hint = _batch_size_hint(size, config.max_batch_size)
                field = (*place, "preferred_batch_size")
                yield Problem(message, (*field, index), hint, fix=unsafe(remove()))


def _batch_size_hint(size: int, max_batch_size: int) -> str:
    if size < 1:
        return "remove it from preferred_batch_size"
    if max_batch_size < 1:
        return f"set max_batch_size to {size}, or remove preferred_batch_size"
    return f"raise max_batch_size from {max_batch_size} to {size}, or lower preferred_batch_size"


@rule("scheduler-priority", when=("dynamic_batching",), source=_VALIDATE)
def priority(model: ModelUnderCheck) -> Iterator[Problem]:
    """With ``priority_levels``, the default level and the levels of queue policies are in range.

    Levels count from 1. ``default_priority_level`` is then required.
    """
    batching = model.config.dynamic_batching
    levels = batching.priority_levels
    if levels == 0:
        return
    default = batching.default_priority_level
    if not 1 <= default <= levels:
        hint = f"set default_priority_level to a level from 1 to {levels}"
        message = f"default priority level must be in range [1, {levels}], got {default}"
        yield Problem(message, ("dynamic_batching", "default_priority_level"), hint)
    for level in sorted(batching.priority_queue_policy):
        if not 1 <= level <= levels:
            place = ("dynamic_batching", "priority_queue_policy", str(level))
            message = (
                "priority queue policy must have priority level in range [1, "
                f"{levels}], got {level}"
            )
            yield Problem(message, place, f"set the key to a level from 1 to {levels}")


@warning(
    "scheduler-priority-default",
    when=("dynamic_batching",),
    source="triton core ValidateModelConfig",
    hint="set priority_levels, or remove default_priority_level",
)
def priority_default(model: ModelUnderCheck) -> Iterator[Problem]:
    """``default_priority_level`` needs ``priority_levels``.

    Without ``priority_levels`` it has no effect.
    """
    batching = model.config.dynamic_batching
    if batching.default_priority_level and not batching.priority_levels:
        place = ("dynamic_batching", "default_priority_level")
        message = "default_priority_level has no effect without priority_levels"
        yield Problem(message, place, fix=safe(remove()))


@rule(
    "scheduler-preserve-ordering",
    when=("dynamic_batching",),
    source=_VALIDATE,
    hint="remove preserve_ordering, or set priority_levels: 1",
)
def preserve_ordering(model: ModelUnderCheck) -> Iterator[Problem]:
    """``preserve_ordering`` excludes several priority levels and the timeout action DELAY.

    With either of them a later request could overtake an earlier one.
    """
    batching = model.config.dynamic_batching
    if not batching.preserve_ordering:
        return
    place = ("dynamic_batching", "preserve_ordering")
    if batching.priority_levels > 1:
        message = "Only one priority level is allowed when 'preserve_ordering' is true"
        yield Problem(f"{message}, got {batching.priority_levels}", place, fix=unsafe(remove()))
    policies = (batching.default_queue_policy, *batching.priority_queue_policy.values())
    if any(
        policy.default_timeout_microseconds and policy.timeout_action == 1 for policy in policies
    ):
        message = (
            "Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true"
        )
        hint = "remove preserve_ordering, or set timeout_action: REJECT"
        yield Problem(message, place, hint, fix=unsafe(remove()))


@rule(
    "scheduler-response-cache",
    when=("response_cache",),
    source=_VALIDATE,
    hint="remove response_cache",
)
def response_cache(model: ModelUnderCheck) -> Iterator[Problem]:
    """A model with sequence batching and a decoupled model have no response cache.

    If the server is started without a cache, the model loads and its responses are not cached.
    """
    config = model.config
    if not config.response_cache.enable:
        return
    for conflicts, what in (
        (config.HasField("sequence_batching"), "sequence batching scheduler"),
        (config.model_transaction_policy.decoupled, "'decoupled' transaction policy"),
    ):
        if conflicts:
            message = f"Response Cache does not currently support model with {what}"
            yield Problem(message, ("response_cache",), fix=safe(remove()))


@warning(
    "scheduler-no-response-cache",
    when=("response_cache",),
    source="triton documentation, Response Cache",
    hint=(
        'set SAGEMAKER_TRITON_ADDITIONAL_ARGS to "--cache-config=local,size=1073741824", which is '
        "1 GiB, or remove response_cache"
    ),
    platforms=SAGEMAKER,
)
def no_response_cache(model: ModelUnderCheck) -> Iterator[Problem]:
    """A model with ``response_cache`` needs a server that is started with a cache.

    Without ``--cache-config`` the model loads, and its responses are not cached.
    """
    has_cache = model.target.has_response_cache
    if not model.config.response_cache.enable or has_cache:
        return
    message = "responses are only cached if the endpoint starts the server with a cache"
    if has_cache is False:
        message = "responses are not cached, because the server is started without a cache"
    yield Problem(message, ("response_cache",), fix=unsafe(remove()))


# --- sequence batching ----------------------------------------------------------------------------


@rule("scheduler-control-name", "sequence", source=_CONTROLS)
def control_name(model: ModelUnderCheck) -> Iterator[Problem]:
    """Each ``control_input`` has its own name.

    One tensor cannot carry the controls of two entries.
    """
    names = [control.name for control in model.config.sequence_batching.control_input]
    counts = Counter(names)
    for index, name in enumerate(names):
        place = ("sequence_batching", "control_input", index)
        if not name:
            message = "sequence batching control tensor must have a name"
            yield Problem(message, place, "add name, with the name of the model's input tensor")
        elif counts[name] > 1 and index == names.index(name):
            message = f'sequence batching control tensor "{name}" is specified {counts[name]} times'
            yield Problem(message, place, "give each control_input its own name")


@rule("scheduler-control-twice", "sequence", source=_CONTROLS, hint="remove one of the two")
def control_twice(model: ModelUnderCheck) -> Iterator[Problem]:
    """Each kind of control has one tensor.

    The kinds are START, READY, END and CORRID.
    """
    seen: set[int] = set()
    for place, control in _controls(model):
        if control.kind in seen:
            yield Problem(
                f"sequence batching specifies multiple {_kind_name(control)} tensors", place
            )
        seen.add(control.kind)


@rule("scheduler-control-values", "sequence", source=_CONTROLS)
def control_values(model: ModelUnderCheck) -> Iterator[Problem]:
    """START, READY and END have exactly one pair of false and true values; CORRID has none.

    The pair is the value of ``int32_false_true``, ``fp32_false_true`` or ``bool_false_true``.
    """
    for place, control in _controls(model):
        given = [name for name in _VALUE_LISTS if len(getattr(control, name))]
        if control.kind == _CORRID:
            if given:
                yield _values_of_corrid(place, given)
        elif len(given) != 1:
            yield _not_one_pair(place, control, given)
        elif len(getattr(control, given[0])) != 2:
            yield _not_two_values(place, control, given[0])


def _values_of_corrid(place: tuple[str | int, ...], given: list[str]) -> Problem:
    """Return the problem of a CORRID control that has values; ``given`` names their fields."""
    message = (
        f"sequence batching must not specify {_ANY_VALUES} for CONTROL_SEQUENCE_CORRID, "
        f"got {given[0]}"
    )
    hint = f"remove {given[0]}, and set data_type"
    return Problem(message, place, hint, fix=safe(*map(remove, given)))


def _not_one_pair(place: tuple[str | int, ...], control: Any, given: list[str]) -> Problem:
    """Return the problem of a control without values, or with several pairs of them."""
    message = f"sequence batching must specify {_ANY_VALUES} for {_kind_name(control)}"
    if not given:
        hint = "add int32_false_true: [ 0, 1 ]"
        return Problem(message, place, hint, fix=unsafe(put("[ 0, 1 ]", "int32_false_true")))

    message = f"{message}, got {' and '.join(given)}"
    return Problem(message, place, f"keep only {given[0]}", fix=unsafe(*map(remove, given[1:])))


def _not_two_values(place: tuple[str | int, ...], control: Any, name: str) -> Problem:
    """Return the problem of a control whose field ``name`` has another number of values."""
    values = getattr(control, name)
    message = f"sequence batching control '{name}' must have exactly 2 entries, got {len(values)}"
    example = "[ false, true ]" if name == "bool_false_true" else "[ 0, 1 ]"
    return Problem(message, place, f"write {name}: {example}", fix=unsafe(put(example, name)))


@rule(
    "scheduler-correlation-type", "sequence", source="triton core GetTypedSequenceControlProperties"
)
def correlation_type(model: ModelUnderCheck) -> Iterator[Problem]:
    """The correlation id is a 32-bit or 64-bit integer, or a string.

    ``data_type`` is required for it.
    """
    for place, control in _controls(model):
        if control.kind == _CORRID and control.data_type not in _CORRELATION_TYPES:
            hint = f"set data_type to one of {', '.join(_CORRELATION_TYPES.values())}"
            got = data_type_name(control.data_type)
            message = f"unexpected data type for control CONTROL_SEQUENCE_CORRID, got {got}"
            yield Problem(message, place, hint)


@rule(
    "scheduler-slot-utilization",
    "sequence",
    source=_VALIDATE,
    hint="write a fraction between 0 and 1",
)
def slot_utilization(model: ModelUnderCheck) -> Iterator[Problem]:
    """``minimum_slot_utilization`` is between 0 and 1.

    With 0, which is the default, Triton does not wait for other sequences.
    """
    value = model.config.sequence_batching.direct.minimum_slot_utilization
    if value < 0 or value > 1:
        place = ("sequence_batching", "direct", "minimum_slot_utilization")
        yield Problem(
            "sequence batching minimum slot utilization "
            f"must be in range [0.0, 1.0], got {value:g}",
            place,
        )


def _controls(model: ModelUnderCheck) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    for index, entry in enumerate(model.config.sequence_batching.control_input):
        for position, control in enumerate(entry.control):
            yield ("sequence_batching", "control_input", index, "control", position), control


def _kind_name(control: Any) -> str:
    value = control.DESCRIPTOR.fields_by_name["kind"].enum_type.values_by_number.get(control.kind)
    return value.name if value else str(control.kind)
