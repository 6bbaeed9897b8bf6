"""A small set of alarms that say that an endpoint needs somebody."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import MappingProxyType
from typing import Unpack

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from constructs_triton.cdk.monitoring.alarm_rules import (
    AlarmRule,
    AlarmThresholds,
    default_thresholds,
    endpoint_rules,
    variant_rules,
)
from constructs_triton.cdk.monitoring.endpoint_interface import ITritonEndpoint
from constructs_triton.cdk.monitoring.monitored_endpoint import construct_names, written_endpoint_name
from constructs_triton.cdk.validation.limit_checks import check_count, check_name
from constructs_triton.cdk.validation.property_types import check_has, check_known, check_type
from constructs_triton.errors import InvalidValueError
from constructs_triton.facts.limits import RangeLimit, TextLimit

__all__ = ["AlarmThresholds", "TritonAlarms"]

# botocore, cloudwatch, PutMetricAlarm: ResourceList, AlarmName.
_ACTIONS = RangeLimit(0, 5, "actions")
_PREFIX = TextLimit(150, min_length=1)  # of 255, beside a variant's name and the alarm's own


class TritonAlarms(Construct):
    """Alarms on errors, latency, memory, disk, model loading, capacity and idleness of an endpoint.

    ``endpoint``
        Any Triton endpoint, made here or imported. Scale it first: the alarm on its capacity needs to know.
    ``actions``
        What each alarm does when it goes off, 5 at most: ``aws_cloudwatch_actions.SnsAction(topic)``.
    ``alarm_name_prefix``
        What the alarms' names begin with; without it CloudFormation makes names up.

    The thresholds are those of ``AlarmThresholds``; each of them can be changed, or set to ``None`` to leave
    its alarm out. Raises ``InvalidValueError`` for a threshold out of range.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        endpoint: ITritonEndpoint,
        actions: Sequence[cloudwatch.IAlarmAction] = (),
        alarm_name_prefix: str | None = None,
        **thresholds: Unpack[AlarmThresholds],
    ) -> None:
        check_count("actions", actions, _ACTIONS)
        for action in actions:
            check_has("actions", action, "bind", "SnsAction(topic)")
        _check_thresholds(thresholds)
        if alarm_name_prefix is not None:
            check_name("alarm_name_prefix", alarm_name_prefix, _PREFIX)
        written = written_endpoint_name(endpoint)
        # The name as it is written refers to no resource, so that the endpoint may refer to the alarm.
        name = endpoint.endpoint_name if written is None else written
        rules = dict(_rules(endpoint, name, {**default_thresholds(), **thresholds}))
        super().__init__(scope, id)
        self._endpoint_name_is_written = written is not None
        self._prefix = alarm_name_prefix
        self._rules = rules
        self._alarms = {name: rule.create(self, name, self._name(name)) for name, rule in rules.items()}
        for alarm in self._alarms.values():
            alarm.add_alarm_action(*actions)

    @property
    def alarms(self) -> MappingProxyType[str, cloudwatch.Alarm]:
        """The alarms by the name of their variant and what they are about: ``alarms["AllTrafficDisk"]``."""
        return MappingProxyType(self._alarms)

    @property
    def rollback_alarms(self) -> tuple[cloudwatch.Alarm, ...]:
        """The alarms that tell a bad deployment within minutes: errors, and latency with an objective.

        For ``endpoint.add_rollback_alarms``, of this endpoint too. Raises ``InvalidValueError`` where neither
        the endpoint nor the alarms have a name that is written out: each would then wait for the other.
        """
        if not self._endpoint_name_is_written and self._prefix is None:
            raise InvalidValueError(
                f"{self.node.path}: alarms that roll back need a name to be known before they are made, "
                "got neither an endpoint_name nor an alarm_name_prefix; write one of them out"
            )
        return tuple(alarm for name, alarm in self._alarms.items() if self._rules[name].rolls_back)

    def _name(self, rule: str) -> str | None:
        return None if self._prefix is None else f"{self._prefix}-{rule}"


def _check_thresholds(thresholds: AlarmThresholds) -> None:
    check_known(thresholds, AlarmThresholds.__annotations__, "add_alarms()")
    for name, kind in AlarmThresholds.__annotations__.items():
        if "Duration" in str(kind):
            check_type(name, thresholds.get(name), (Duration, "Duration.minutes(10)"))


def _rules(
    endpoint: ITritonEndpoint, endpoint_name: str, thresholds: AlarmThresholds
) -> Iterator[tuple[str, AlarmRule]]:
    for prefix, variant in zip(construct_names(endpoint), endpoint.variants, strict=True):
        for rule in variant_rules(endpoint, variant, endpoint_name, thresholds):
            yield f"{prefix}{rule.name}", rule
    for rule in endpoint_rules(endpoint, endpoint_name, thresholds):
        yield rule.name, rule
