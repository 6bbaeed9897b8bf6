"""Alarms for an inference component."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import TypedDict, Unpack

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from constructs_triton.cdk.monitoring.alarm_rules import AlarmRule
from constructs_triton.cdk.monitoring.alarms import check_alarm_options, create_alarms
from constructs_triton.cdk.monitoring.component_interface import IInferenceComponent
from constructs_triton.cdk.scaling.targets import microseconds, product
from constructs_triton.cdk.validation.limit_checks import check_range
from constructs_triton.cdk.validation.property_types import check_known
from constructs_triton.facts.limits import RangeLimit

__all__ = ["ComponentAlarmThresholds", "TritonComponentAlarms"]

_PERCENT = RangeLimit(0, 100, "percent")


class ComponentAlarmThresholds(TypedDict, total=False):
    """Thresholds of the alarms. Set one to ``None`` to leave its alarm out.

    ``error_rate_percent``
        Maximum percentage, 0 to 100, of requests with a 5xx response, or without a 2xx response of the
        container, in three of five minutes. Default: 1.
    ``model_latency_objective``
        Maximum 99th percentile of the container's response time, in three of five minutes. A duration.
        Default: no alarm.
    ``gpu_memory_percent``
        Maximum percentage, 0 to 100, of the memory of the reserved GPUs in use, for five minutes. Default:
        90.
    ``no_capacity_minutes``
        Number of minutes of the last hour in which requests found no copy. A component that scales from zero
        needs about ten to wake up. Default: 30.
    """

    error_rate_percent: float | None
    model_latency_objective: Duration | None
    gpu_memory_percent: float | None
    no_capacity_minutes: float | None


_DEFAULTS: ComponentAlarmThresholds = {
    "error_rate_percent": 1,
    "model_latency_objective": None,
    "gpu_memory_percent": 90,
    "no_capacity_minutes": 30,
}


class TritonComponentAlarms(Construct):
    """Alarms on errors, latency, GPU memory and missing copies of an inference component.

    ``component``
        An inference component, created in this app or imported.
    ``actions``
        At most 5 actions of each alarm, such as ``aws_cloudwatch_actions.SnsAction(topic)``. Default: none.
    ``alarm_name_prefix``
        Prefix of the alarms' names, 1 to 150 characters. Alarms that roll updates back need it. Default:
        CloudFormation generates the names.

    The other properties are the thresholds of ``ComponentAlarmThresholds``.

    Raises:
        InvalidValueError: a threshold out of range, more than 5 actions, or a property of the wrong type.
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
        check_known(thresholds, ComponentAlarmThresholds.__annotations__, "add_alarms()")
        rules = {rule.name: rule for rule in _rules(component, {**_DEFAULTS, **thresholds})}
        super().__init__(scope, id)
        self._rules = rules
        self._alarms = create_alarms(self, rules, actions, alarm_name_prefix)

    @property
    def alarms(self) -> MappingProxyType[str, cloudwatch.Alarm]:
        """The alarms by the names of their rules, such as ``alarms["ServerErrors"]``."""
        return MappingProxyType(self._alarms)

    @property
    def rollback_alarms(self) -> tuple[cloudwatch.Alarm, ...]:
        """The alarms that detect a bad update, for ``component.add_rollback_alarms``."""
        return tuple(alarm for name, alarm in self._alarms.items() if self._rules[name].rolls_back)


def _rules(component: IInferenceComponent, thresholds: ComponentAlarmThresholds) -> Iterator[AlarmRule]:
    yield from _error_rules(component, thresholds["error_rate_percent"])
    objective = thresholds["model_latency_objective"]
    if objective is not None:
        yield AlarmRule(
            name="ModelLatency",
            description="More than one request in a hundred takes longer than the latency objective.",
            metric=component.metric("ModelLatency", statistic="p99"),
            threshold=microseconds("model_latency_objective", objective),
            datapoints_to_alarm=3,
            rolls_back=True,
        )
    percent = thresholds["gpu_memory_percent"]
    if percent is not None and component.uses_gpus is not False:
        check_range("gpu_memory_percent", percent, _PERCENT)
        yield AlarmRule(
            name="GpuMemory",
            description="The memory of the component's GPUs is almost full.",
            metric=component.metric("GPUMemoryUtilizationNormalized", statistic="Maximum"),
            threshold=percent,
        )
    yield from _capacity_rules(component, thresholds["no_capacity_minutes"])


def _error_rules(component: IInferenceComponent, percent: float | None) -> Iterator[AlarmRule]:
    if percent is None:
        return
    check_range("error_rate_percent", percent, _PERCENT)
    causes = {
        "ServerErrors": ("Invocation5XXErrors", "The component responds with 5xx."),
        "ModelErrors": ("InvocationModelErrors", "The container does not respond with 2xx."),
    }
    for name, (metric_name, description) in causes.items():
        yield AlarmRule(
            name=name,
            description=description,
            # Each error counts 1 and each other request 0, so the average is the error rate.
            metric=component.metric(metric_name, statistic="Average"),
            threshold=product("error_rate_percent", percent, 0.01),
            datapoints_to_alarm=3,
            rolls_back=True,
        )


def _capacity_rules(component: IInferenceComponent, minutes: float | None) -> Iterator[AlarmRule]:
    if minutes is not None:
        check_range("no_capacity_minutes", minutes, RangeLimit(1, 60, "minutes"))
        yield AlarmRule(
            name="NoCapacity",
            description="Requests find no copy of the component: it does not wake up, or has no instances.",
            metric=component.metric("NoCapacityInvocationFailures"),
            threshold=0,
            evaluation_periods=60,
            datapoints_to_alarm=minutes,
        )
