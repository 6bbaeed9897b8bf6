"""What alarms of endpoints and of inference components have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, TypedDict

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from constructs_triton.cdk.metrics.metric_values import Metric
from constructs_triton.cdk.options.rollback_alarms import note_alarm
from constructs_triton.cdk.permissions.alarm_topics import (
    NotedAlarm,
    have_actions,
    let_alarms_publish,
)
from constructs_triton.cdk.scaling.target_tracking import PublishedMetric
from constructs_triton.cdk.scaling.targets import microseconds, product
from constructs_triton.cdk.validation.property_types import check_has, check_type
from constructs_triton.cdk.validation.synthesis_warning import warn_at_synthesis
from constructs_triton.cdk.validation.unique_names import check_id
from constructs_triton_core.declared_values import Value
from constructs_triton_core.facts.limits import RangeLimit, TextLimit
from constructs_triton_core.findings import Finding, Severity
from constructs_triton_core.limit_checks import check_count, check_name

_Comparison = cloudwatch.ComparisonOperator
_Missing = cloudwatch.TreatMissingData
PERCENT = RangeLimit(0, 100, "percent")
# botocore, cloudwatch, PutMetricAlarm: ResourceList, AlarmName.
_ACTIONS = RangeLimit(0, 5, "actions")
_PREFIX = TextLimit(150, min_length=1)  # of 255, beside a variant's name and the alarm's own


class SharedThresholds(TypedDict, total=False):
    """The thresholds that endpoints and inference components have."""

    error_rate_percent: Annotated[
        float | None,
        Value(
            "Maximum percentage, 0 to 100, of requests with a 5xx response, or without a 2xx "
            "response of the container, in three of five minutes.",
            default=1,
            limit=PERCENT,
        ),
    ]
    model_latency_objective: Annotated[
        Duration | None,
        Value(
            "Maximum 99th percentile of the container's response time, in three of five minutes.",
            default_text="no alarm",
            example="Duration.millis(300)",
        ),
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class AlarmRule:
    """One alarm before it is created.

    ``rolls_back`` is whether the alarm detects a bad deployment within minutes.
    """

    name: str
    description: str
    metric: Metric
    threshold: float
    comparison: cloudwatch.ComparisonOperator = _Comparison.GREATER_THAN_THRESHOLD
    evaluation_periods: float = 5
    datapoints_to_alarm: float | None = None  # all of the periods
    missing: cloudwatch.TreatMissingData = _Missing.NOT_BREACHING
    rolls_back: bool = False

    def create(
        self, scope: Construct, id: str, alarm_name: str | None, whose: str
    ) -> cloudwatch.Alarm:
        """Create the alarm. ``whose`` ends its description,
        which is all that an email or a pager shows.
        """
        return NotedAlarm(
            scope,
            id,
            metric=self.metric.to_cdk(),
            alarm_name=alarm_name,
            alarm_description=f"{self.description} {whose}",
            threshold=self.threshold,
            comparison_operator=self.comparison,
            evaluation_periods=self.evaluation_periods,
            datapoints_to_alarm=self.datapoints_to_alarm or self.evaluation_periods,
            treat_missing_data=self.missing,
        )


class AlarmSet(Construct):
    """An alarm for each rule, whose name becomes the id and follows the prefix
    of the alarm's name.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        rules: Mapping[str, AlarmRule],
        actions: Sequence[cloudwatch.IAlarmAction],
        alarm_name_prefix: str | None,
        *,
        whose: str,
    ) -> None:
        check_id(scope, id)
        super().__init__(scope, id)
        self._rules = rules
        self._prefix = prefix = alarm_name_prefix
        self._alarms = {
            name: rule.create(self, name, None if prefix is None else f"{prefix}-{name}", whose)
            for name, rule in rules.items()
        }
        for name, alarm in self._alarms.items():
            if prefix is None:
                note_alarm(alarm, rules[name].metric)
            if actions:
                alarm.add_alarm_action(*actions)
        self._roll_back = False
        let_alarms_publish(self, list(self._alarms.values()))
        warn_at_synthesis(self, self._sends_nothing)

    @property
    def alarms(self) -> MappingProxyType[str, cloudwatch.Alarm]:
        """The alarms by name: the rule's, after the variant's if it has one,
        such as ``"AllTrafficDisk"``.
        """
        return MappingProxyType(self._alarms)

    @property
    def rollback_alarms(self) -> tuple[cloudwatch.Alarm, ...]:
        """The alarms that detect a bad update: errors, and latency if it has an objective.

        Pass them to ``add_rollback_alarms`` of the endpoint or the component, or of another one.
        """
        self._roll_back = True
        return tuple(alarm for name, alarm in self._alarms.items() if self._rules[name].rolls_back)

    def _sends_nothing(self) -> Finding | None:
        """Return a warning if no alarm has an action, and none rolls an update back."""
        if self._roll_back or have_actions(list(self._alarms.values())):
            return None
        return Finding(
            "alarms-without-actions",
            Severity.WARNING,
            "actions",
            "the alarms have no actions, so nothing is sent when they go off",
            "set actions=[aws_cloudwatch_actions.SnsAction(topic)], or acknowledge this if you "
            "watch the state of the alarms in another way, such as an EventBridge rule",
        )


def check_alarm_options(
    actions: Sequence[cloudwatch.IAlarmAction], alarm_name_prefix: str | None
) -> None:
    """Check the actions and the prefix of alarms.

    Raises:
        InvalidValueError: more than 5 actions, an action of the wrong type, or a prefix that is too
            long.
    """
    check_type("actions", actions, (Sequence, "[aws_cloudwatch_actions.SnsAction(topic)]"))
    check_count("actions", actions, _ACTIONS)
    for action in actions:
        check_has("actions", action, "bind", "aws_cloudwatch_actions.SnsAction(topic)")
    if alarm_name_prefix is not None:
        check_name("alarm_name_prefix", alarm_name_prefix, _PREFIX)


def error_rules(
    metrics: PublishedMetric, percent: float | None, causes: Iterable[tuple[str, str, str]]
) -> Iterator[AlarmRule]:
    """Yield an alarm for each cause: the rule's name, the metric's name and the description."""
    if percent is None:
        return
    for name, metric_name, description in causes:
        yield AlarmRule(
            name=name,
            description=description,
            # Each error counts 1 and each other request 0, so the average is the error rate.
            metric=metrics(metric_name, statistic="Average"),
            threshold=product("error_rate_percent", percent, 0.01),
            datapoints_to_alarm=3,
            rolls_back=True,
        )


def latency_rules(metrics: PublishedMetric, objective: Duration | None) -> Iterator[AlarmRule]:
    """Yield the alarm on the latency, if it has an objective."""
    if objective is not None:
        yield AlarmRule(
            name="ModelLatency",
            description=(
                "More than one request in a hundred takes longer than the latency objective."
            ),
            metric=metrics("ModelLatency", statistic="p99"),
            threshold=microseconds("model_latency_objective", objective),
            datapoints_to_alarm=3,
            rolls_back=True,
        )
