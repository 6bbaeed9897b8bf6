"""Checks of scaling policies, before anything is added to the construct tree."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from aws_cdk import Annotations, Duration, TimeZone
from aws_cdk import aws_applicationautoscaling as appscaling
from constructs import Construct

from constructs_triton.cdk.metrics.metric_definitions import metric_definition
from constructs_triton.cdk.scaling.targets import check_capacity
from constructs_triton.cdk.validation.limit_checks import check_unit
from constructs_triton.cdk.validation.property_types import PropertyType, check_type
from constructs_triton.cdk.validation.schedule_expressions import schedule_problem
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.limits import RangeLimit
from constructs_triton_core.findings import Finding, Severity
from constructs_triton_core.limit_checks import check_range
from constructs_triton_core.tokens import is_token

STEP_TYPES: dict[str, PropertyType] = {
    "cooldown": (Duration, "Duration.seconds(300)"),
    "adjustment_type": (appscaling.AdjustmentType, "AdjustmentType.CHANGE_IN_CAPACITY"),
    "metric_aggregation_type": (appscaling.MetricAggregationType, "MetricAggregationType.AVERAGE"),
    "evaluation_periods": ((int, float), "3"),
    "datapoints_to_alarm": ((int, float), "2"),
    "min_adjustment_magnitude": ((int, float), "1"),
}
# The CDK accepts a dict in place of any struct.
_STEP: PropertyType = ((appscaling.ScalingInterval, dict), "ScalingInterval(change=1, lower=10)")
_TIME: PropertyType = (datetime, "datetime(2030, 1, 31, tzinfo=UTC)")
_SCHEDULE_TYPES: dict[str, PropertyType] = {
    "schedule": (appscaling.Schedule, 'Schedule.cron(hour="8", minute="0")'),
    "start_time": _TIME,
    "end_time": _TIME,
    "time_zone": (TimeZone, 'TimeZone.of("Europe/Berlin")'),
}
_MIN_STEPS = 2
# botocore, application-autoscaling, ScheduledActionName.
_NOT_IN_ACTION_NAMES = re.compile(r"[:/|\x00-\x1f\x7f-\x9f]")


@dataclass(frozen=True, slots=True)
class TrackedMetric:
    """A metric and the target at which a policy keeps it.

    ``target_value`` is in the metric's own unit. For a utilization it is from 0 to 100 times
    ``units``, the number of GPUs or vCPUs of one instance.
    """

    policy_id: str
    metric_name: str
    target_value: float
    units: float = 1


def check_published(metric_name: str, *, is_asynchronous: bool) -> None:
    """Check that a real-time or asynchronous endpoint publishes a metric.

    CloudFormation would accept a policy on another metric, but it would never act. Source:
    SageMaker developer guide, "Alarms and logs for tracking metrics from asynchronous endpoints".
    """
    is_of_queue = not metric_definition(metric_name).has_variant_dimension
    if is_of_queue == is_asynchronous:
        return
    endpoint, other = "a real-time", "scale_on_invocations_per_instance, or set async_inference"
    if is_asynchronous:
        endpoint, other = "an asynchronous", "scale_on_backlog"
    raise InvalidValueError(
        f"{metric_name}: {endpoint} endpoint does not publish this metric, "
        f"so a policy would never act; use {other}"
    )


def check_untracked(id: str, other: TrackedMetric | None) -> None:
    """Check that no other policy keeps the same metric at a target.

    Source: Application Auto Scaling user guide, "Target tracking scaling policies".
    """
    if other is not None:
        raise InvalidValueError(
            f'{id}: policy "{other.policy_id}" already tracks metric {other.metric_name}; '
            f'change the target of "{other.policy_id}", or track another metric'
        )


def check_steps(steps: Sequence[appscaling.ScalingInterval]) -> None:
    """Check the steps of a step scaling policy."""
    check_type(
        "scaling_steps", steps, ((list, tuple), "[ScalingInterval(change=1, lower=10), ...]")
    )
    for position, step in enumerate(steps):
        check_type(f"scaling_steps[{position}]", step, _STEP)
    if len(steps) < _MIN_STEPS:
        raise InvalidValueError(
            f"scaling_steps: must have at least {_MIN_STEPS} steps, got {len(steps)}; "
            f"add a step where the count should not change, such as {_missing_step(steps)}"
        )


def _missing_step(steps: Sequence[appscaling.ScalingInterval]) -> str:
    """Return a step that completes a single one; the CDK requires ascending bounds."""
    intervals = [step for step in steps if isinstance(step, appscaling.ScalingInterval)]
    if len(intervals) == 1:
        [only] = intervals
        if only.lower is not None:
            return f"ScalingInterval(upper={only.lower:g}, change=0) before the others"
        if only.upper is not None:
            return f"ScalingInterval(lower={only.upper:g}, change=0) after the others"
    return "ScalingInterval(upper=10, change=0)"


def check_unguarded(id: str, *, is_guarded: bool) -> None:
    """Check that an endpoint with ``scaling_guard`` has no step policy.

    The alarm of a step policy contains the policy's ARN. A policy that the guard registers again
    has another ARN, and after a rollback the alarm would still contain the old one.
    """
    if is_guarded:
        raise InvalidValueError(
            f"{id}: scaling_guard does not support step policies, which min_capacity=0 needs too; "
            "use a target tracking policy with min_capacity of at least 1, or remove scaling_guard"
        )


def check_schedule(
    id: str, min_capacity: float | None, max_capacity: float | None, least: RangeLimit
) -> None:
    """Check the name and the bounds of a scheduled action. ``least`` is the limit of the minimum.

    Raises:
        InvalidValueError: a character that names cannot contain, no bounds, or bounds out of range.
    """
    if not is_token(id) and _NOT_IN_ACTION_NAMES.search(id):
        raise InvalidValueError(
            f"{id}: the id becomes the name of the scheduled action "
            'and cannot contain ":", "/" or "|"; rename it'
        )
    if min_capacity is None and max_capacity is None:
        raise InvalidValueError(
            f"{id}: the schedule changes nothing; set min_capacity, max_capacity or both"
        )
    for name, value in (("min_capacity", min_capacity), ("max_capacity", max_capacity)):
        if value is not None:
            check_range(f"{id}.{name}", value, RangeLimit(None, None))
    if least.minimum == 0 and max_capacity == 0:
        _check_stop(id, min_capacity)
        return
    lower = (least.minimum or 0) if min_capacity is None else min_capacity
    check_capacity(lower, max(lower, 1) if max_capacity is None else max_capacity, least)


def _check_stop(id: str, min_capacity: float | None) -> None:
    # A maximum of 0 keeps requests from starting anything until another schedule raises it.
    if not is_token(min_capacity) and min_capacity != 0:
        got = "no min_capacity" if min_capacity is None else f"{min_capacity:g}"
        raise InvalidValueError(
            f"{id}.min_capacity: must be 0 with max_capacity 0, got {got}; set it to 0"
        )


def check_schedule_times(id: str, times: Mapping[str, object]) -> None:
    """Check a schedule, and the types of its start and end time."""
    if times.get("schedule") is None:
        raise InvalidValueError(
            f"{id}.schedule: is required; write {_SCHEDULE_TYPES['schedule'][1]}"
        )
    check_types(id, times, _SCHEDULE_TYPES)
    schedule = times["schedule"]
    if isinstance(schedule, appscaling.Schedule):
        check_expression(f"{id}.schedule", schedule.expression_string)


def check_expression(property: str, expression: str) -> None:
    """Check the form of a schedule's expression; CDK tokens pass.

    Raises:
        InvalidValueError: AWS refuses the expression.
    """
    problem = "" if is_token(expression) else schedule_problem(expression)
    if problem:
        raise InvalidValueError(
            f'{property}: {problem}, got "{expression}"; write one value for each field, such as '
            'cron(hour="20", minute="0")'
        )


def check_types(id: str, options: Mapping[str, object], types: Mapping[str, PropertyType]) -> None:
    """Check the types of the options of a policy or a schedule."""
    for name, expected in types.items():
        value = options.get(name)
        check_type(f"{id}.{name}", value, expected)
        if isinstance(value, Duration) and value.is_unresolved():
            check_unit(f"{id}.{name}", value, "seconds")


def warn_of_unsettled_concurrency(scaling: Construct) -> None:
    """Warn about concurrency scaling of a multi-model endpoint."""
    Annotations.of(scaling).add_warning_v2(
        "constructs-triton:concurrency-of-many-models",
        "scale_on_concurrent_requests: AWS does not say whether multi-model endpoints publish "
        "ConcurrentRequestsPerModel, and a policy without data never adds instances; use "
        "scale_on_invocations_per_instance, "
        "or acknowledge this if you see the metric in CloudWatch",
    )


def sequence_finding(path: str, models: Sequence[str], count: float, unit: str) -> Finding | None:
    """Return a warning if the requests of a sequence may reach several instances or copies.

    ``path`` is the property that sets the number, and ``count`` the largest number, of instances or
    copies.
    """
    if not models or is_token(count) or count <= 1:
        return None
    names = ", ".join(f'"{name}"' for name in models)
    return Finding(
        "sequence-on-several-instances",
        Severity.WARNING,
        path,
        f"model {names} keeps the state of a sequence, but SageMaker sends each request to any of "
        f"up to {count:g} {unit}",
        "use one, or several variants of one instance and choose one by the sequence with "
        "TargetVariant, or carry the state in the requests; "
        "acknowledge this if a sequence is one request",
    )
