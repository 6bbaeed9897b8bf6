"""Alarms for an inference component."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Annotated, Unpack

from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from constructs_triton.cdk.metrics.component_metrics import component_metric
from constructs_triton.cdk.monitoring.alarm_set import (
    PERCENT,
    AlarmRule,
    AlarmSet,
    SharedThresholds,
    check_alarm_options,
    error_rules,
    latency_rules,
)
from constructs_triton.cdk.monitoring.interfaces import IInferenceComponent
from constructs_triton.cdk.validation.properties import check_properties, takes_properties
from constructs_triton.cdk.validation.same_environment import check_is_here
from constructs_triton_core.declared_values import Value, default_values
from constructs_triton_core.facts.limits import RangeLimit

_ERROR_CAUSES = (
    ("ServerErrors", "Invocation5XXErrors", "The component responds with 5xx."),
    ("ModelErrors", "InvocationModelErrors", "The container does not respond with 2xx."),
)


class ComponentAlarmThresholds(SharedThresholds, total=False):
    """Thresholds of the alarms. Set one to ``None`` to leave its alarm out."""

    gpu_memory_percent: Annotated[
        float | None,
        Value(
            "Maximum percentage, 0 to 100, of the memory of "
            "the reserved GPUs in use, for five minutes.",
            default=90,
            limit=PERCENT,
        ),
    ]
    no_capacity_minutes: Annotated[
        float | None,
        Value(
            "Number of minutes of the last hour in which requests found no copy, 1 to 60. A "
            "component that scales from zero needs about ten to wake up.",
            default=30,
            limit=RangeLimit(1, 60, "minutes"),
        ),
    ]


@takes_properties(ComponentAlarmThresholds)
class TritonComponentAlarms(AlarmSet):
    """Alarms on errors, latency, GPU memory and missing copies of an inference component.

    ``component``
        An inference component, created in this app or imported.
    ``actions``
        At most 5 actions of each alarm, such as ``aws_cloudwatch_actions.SnsAction(topic)``.
        Default: none.
    ``alarm_name_prefix``
        Prefix of the alarms' names, 1 to 150 characters. Alarms that roll updates back need it.
        Default: CloudFormation generates the names.

    The other properties are the thresholds of ``ComponentAlarmThresholds``.

    Raises:
        InvalidValueError: a threshold out of range, more than 5 actions, or a property of the wrong
            type.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        component: IInferenceComponent,
        actions: Sequence[cloudwatch.IAlarmAction] = (),
        alarm_name_prefix: str | None = None,
        **thresholds: Unpack[ComponentAlarmThresholds],
    ) -> None:
        check_alarm_options(actions, alarm_name_prefix)
        check_properties("add_alarms()", thresholds, ComponentAlarmThresholds)
        check_is_here(scope, component, "alarms", "add_alarms")
        rules = _rules(component, {**default_values(ComponentAlarmThresholds), **thresholds})
        whose = f"Inference component: {component.inference_component_name}"
        super().__init__(
            scope, id, {each.name: each for each in rules}, actions, alarm_name_prefix, whose=whose
        )


def _rules(
    component: IInferenceComponent, thresholds: ComponentAlarmThresholds
) -> Iterator[AlarmRule]:
    """Yield the alarms of a component for the thresholds that are set."""
    metric = partial(component_metric, inference_component_name=component.inference_component_name)
    yield from error_rules(metric, thresholds["error_rate_percent"], _ERROR_CAUSES)
    yield from latency_rules(metric, thresholds["model_latency_objective"])
    percent = thresholds["gpu_memory_percent"]
    if percent is not None and component.uses_gpus is not False:
        yield AlarmRule(
            name="GpuMemory",
            description="The memory of the component's GPUs is almost full.",
            metric=metric("GPUMemoryUtilizationNormalized", statistic="Maximum"),
            threshold=percent,
        )
    minutes = thresholds["no_capacity_minutes"]
    if minutes is not None:
        yield AlarmRule(
            name="NoCapacity",
            description=(
                "Requests find no copy of the component: it does not wake up, or has no instances."
            ),
            metric=metric("NoCapacityInvocationFailures"),
            threshold=0,
            evaluation_periods=60,
            datapoints_to_alarm=minutes,
        )
