"""What a scaling policy must satisfy before it joins the tree."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from aws_cdk import Duration, TimeZone
from aws_cdk import aws_applicationautoscaling as appscaling

from constructs_triton.cdk.metrics.metric_definitions import metric_definition
from constructs_triton.cdk.scaling.targets import check_capacity
from constructs_triton.cdk.validation.limit_checks import check_name, check_range
from constructs_triton.cdk.validation.property_types import PropertyType, check_type
from constructs_triton.cdk.validation.tokens import is_concrete
from constructs_triton.errors import InvalidValueError
from constructs_triton.facts.limits import COOLDOWN_SECONDS, SCALING_POLICY_NAME, RangeLimit

__all__ = [
    "TrackedMetric",
    "check_policy",
    "check_published",
    "check_schedule",
    "check_schedule_times",
    "check_step_options",
    "check_steps",
    "check_unguarded",
    "check_untracked",
]

_DURATION: PropertyType = (Duration, "Duration.seconds(300)")
_POLICY_KINDS: dict[str, PropertyType] = {
    "scale_in_cooldown": _DURATION,
    "scale_out_cooldown": _DURATION,
    "disable_scale_in": (bool, "True"),
    "policy_name": (str, '"busy-gpus"'),
}
_STEP_KINDS: dict[str, PropertyType] = {
    "cooldown": _DURATION,
    "adjustment_type": (appscaling.AdjustmentType, "AdjustmentType.CHANGE_IN_CAPACITY"),
    "metric_aggregation_type": (appscaling.MetricAggregationType, "MetricAggregationType.AVERAGE"),
    "evaluation_periods": ((int, float), "3"),
    "datapoints_to_alarm": ((int, float), "2"),
    "min_adjustment_magnitude": ((int, float), "1"),
}
# CDK takes a mapping wherever it takes a structure.
_STEP: PropertyType = ((appscaling.ScalingInterval, dict), "ScalingInterval(change=1, lower=10)")
_TIME: PropertyType = (datetime, "datetime(2030, 1, 31, tzinfo=UTC)")
_SCHEDULE_KINDS: dict[str, PropertyType] = {
    "schedule": (appscaling.Schedule, 'Schedule.cron(hour="8", minute="0")'),
    "start_time": _TIME,
    "end_time": _TIME,
    "time_zone": (TimeZone, 'TimeZone.of("Europe/Berlin")'),
}
_LEAST_STEPS = 2
# botocore, application-autoscaling, ScheduledActionName.
_NOT_IN_ACTION_NAMES = re.compile(r"[:/|\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class TrackedMetric:
    """What a policy keeps a metric at.

    ``target_value`` is in the metric's own range, which for utilisations is 100 times ``units``: the GPUs or
    vCPUs of one instance.
    """

    policy_id: str
    metric_name: str
    target_value: float
    units: float = 1


def check_published(metric_name: str, *, is_asynchronous: bool) -> None:
    """Raise ``InvalidValueError`` for a metric that this kind of endpoint never publishes.

    A policy on it would be accepted, and never fire. Source: SageMaker developer guide, "Alarms and logs for
    tracking metrics from asynchronous endpoints".
    """
    is_of_queue = not metric_definition(metric_name).has_variant_dimension
    if is_of_queue == is_asynchronous:
        return
    kind, other = "a real-time", "scale_on_invocations_per_instance, or an asynchronous endpoint"
    if is_asynchronous:
        kind, other = "an asynchronous", "scale_on_backlog"
    raise InvalidValueError(
        f"{metric_name}: is not published, so that a policy on it would never fire, "
        f"got {kind} endpoint; use {other}"
    )


def check_policy(id: str, options: Mapping[str, object]) -> None:
    """Raise ``InvalidValueError`` for cool-downs or a name that Application Auto Scaling would refuse."""
    _check_kinds(id, options, _POLICY_KINDS)
    for name in ("scale_in_cooldown", "scale_out_cooldown"):
        cooldown = options.get(name)
        if isinstance(cooldown, Duration) and not cooldown.is_unresolved():
            check_range(f"{id}.{name}", cooldown.to_seconds(), COOLDOWN_SECONDS)
    policy_name = options.get("policy_name")
    if isinstance(policy_name, str):
        check_name(f"{id}.policy_name", policy_name, SCALING_POLICY_NAME)


def check_untracked(id: str, other: TrackedMetric | None) -> None:
    """Raise ``InvalidValueError`` where another policy keeps the same metric at a target.

    Source: Application Auto Scaling user guide, "Target tracking scaling policies".
    """
    if other is not None:
        raise InvalidValueError(
            f'{id}: metric {other.metric_name} has a policy already, got "{other.policy_id}" and "{id}"; '
            "give that one the target, or track another metric"
        )


def check_steps(steps: Sequence[appscaling.ScalingInterval]) -> None:
    """Raise ``InvalidValueError`` for fewer steps than make a difference, and for what is no step."""
    check_type("scaling_steps", steps, ((list, tuple), "[ScalingInterval(change=1, lower=10), ...]"))
    for position, step in enumerate(steps):
        check_type(f"scaling_steps[{position}]", step, _STEP)
    if len(steps) < _LEAST_STEPS:
        raise InvalidValueError(
            f"scaling_steps: must be at least {_LEAST_STEPS}, got {len(steps)}; "
            "one may have a change of 0, where nothing is to be done"
        )


def check_step_options(id: str, options: Mapping[str, object]) -> None:
    """Raise ``InvalidValueError`` for options of a step policy that are of another class."""
    _check_kinds(id, options, _STEP_KINDS)


def check_unguarded(id: str, *, is_guarded: bool) -> None:
    """Raise ``InvalidValueError`` for a step policy under ``scaling_guard``.

    Its alarm calls the policy by an ARN that a registered-again policy does not have any more, and nobody
    would tell the alarm after a rollback.
    """
    if is_guarded:
        raise InvalidValueError(
            f"{id}: a policy of steps, which a capacity of zero needs too, cannot be kept by scaling_guard, "
            "got scaling_guard=True; keep a metric at its target with at least one instance, or leave the "
            "guard out"
        )


def check_schedule(
    id: str, min_capacity: float | None, max_capacity: float | None, *, is_asynchronous: bool
) -> None:
    """Raise ``InvalidValueError`` for a schedule that changes nothing, or sets bounds that are none."""
    if is_concrete(id) and _NOT_IN_ACTION_NAMES.search(id):
        raise InvalidValueError(
            f'{id}: names the scheduled action, so that it cannot hold : / |, got "{id}"; rename it'
        )
    if min_capacity is None and max_capacity is None:
        raise InvalidValueError(
            f"{id}: a schedule changes min_capacity, max_capacity or both, got neither; give one of them"
        )
    for name, value in (("min_capacity", min_capacity), ("max_capacity", max_capacity)):
        if value is not None:
            check_range(f"{id}.{name}", value, RangeLimit(None, None))
    least = 0 if is_asynchronous else 1
    lower = least if min_capacity is None else min_capacity
    check_capacity(
        lower, max(lower, 1) if max_capacity is None else max_capacity, is_asynchronous=is_asynchronous
    )


def check_schedule_times(id: str, times: Mapping[str, object]) -> None:
    """Raise ``InvalidValueError`` where a schedule, or the time it holds from or to, is of another class."""
    if times.get("schedule") is None:
        raise InvalidValueError(f"{id}.schedule: is needed, got none; write {_SCHEDULE_KINDS['schedule'][1]}")
    _check_kinds(id, times, _SCHEDULE_KINDS)


def _check_kinds(id: str, options: Mapping[str, object], kinds: Mapping[str, PropertyType]) -> None:
    for name, kind in kinds.items():
        check_type(f"{id}.{name}", options.get(name), kind)
