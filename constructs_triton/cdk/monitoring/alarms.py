"""Alarms for an endpoint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
from constructs_triton.cdk.monitoring.monitored_endpoint import construct_names, literal_endpoint_name
from constructs_triton.cdk.validation.limit_checks import check_count, check_name
from constructs_triton.cdk.validation.property_types import check_has, check_known, check_type
from constructs_triton.errors import InvalidValueError
from constructs_triton.facts.limits import RangeLimit, TextLimit

__all__ = ["AlarmThresholds", "TritonAlarms", "check_alarm_options", "create_alarms"]

# botocore, cloudwatch, PutMetricAlarm: ResourceList, AlarmName.
_ACTIONS = RangeLimit(0, 5, "actions")
_PREFIX = TextLimit(150, min_length=1)  # of 255, beside a variant's name and the alarm's own


class TritonAlarms(Construct):
    """Alarms on errors, latency, memory, disk, model loading, capacity and idleness of an endpoint.

    ``endpoint``
        A Triton endpoint, created in this app or imported. Set up its scaling first: only then is there an
        alarm on its capacity.
    ``actions``
        At most 5 actions of each alarm, such as ``aws_cloudwatch_actions.SnsAction(topic)``. Default: none.
    ``alarm_name_prefix``
        Prefix of the alarms' names, 1 to 150 characters. Default: CloudFormation generates the names.

    The other properties are the thresholds of ``AlarmThresholds``, with their units and defaults. Set a
    threshold to ``None`` to leave its alarm out.

    Raises:
        InvalidValueError: a threshold out of range, more than 5 actions, or a property of the wrong type.
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
        check_alarm_options(actions, alarm_name_prefix)
        _check_thresholds(thresholds)
        literal_name = literal_endpoint_name(endpoint)
        # A literal name does not refer to the endpoint's resource, so the endpoint may refer to the alarm.
        name = endpoint.endpoint_name if literal_name is None else literal_name
        rules = dict(_rules(endpoint, name, {**default_thresholds(), **thresholds}))
        super().__init__(scope, id)
        self._has_literal_endpoint_name = literal_name is not None
        self._prefix = alarm_name_prefix
        self._rules = rules
        self._alarms = create_alarms(self, rules, actions, alarm_name_prefix)

    @property
    def alarms(self) -> MappingProxyType[str, cloudwatch.Alarm]:
        """The alarms by the names of their variant and rule, such as ``alarms["AllTrafficDisk"]``."""
        return MappingProxyType(self._alarms)

    @property
    def rollback_alarms(self) -> tuple[cloudwatch.Alarm, ...]:
        """The alarms that detect a bad deployment: errors, and latency if it has an objective.

        Pass them to ``endpoint.add_rollback_alarms``, of the same endpoint or another one.

        Raises:
            InvalidValueError: neither the endpoint nor the alarms have a literal name, so they would depend
                on each other.
        """
        if not self._has_literal_endpoint_name and self._prefix is None:
            raise InvalidValueError(
                f"{self.node.path}: rollback alarms and the endpoint would depend on each other; set "
                "alarm_name_prefix on the alarms, or endpoint_name on the endpoint"
            )
        return tuple(alarm for name, alarm in self._alarms.items() if self._rules[name].rolls_back)


def check_alarm_options(actions: Sequence[cloudwatch.IAlarmAction], alarm_name_prefix: str | None) -> None:
    """Check the actions and the prefix of alarms.

    Raises:
        InvalidValueError: more than 5 actions, an action of the wrong type, or a prefix that is too long.
    """
    check_type("actions", actions, (Sequence, "[SnsAction(topic)]"))
    check_count("actions", actions, _ACTIONS)
    for action in actions:
        check_has("actions", action, "bind", "SnsAction(topic)")
    if alarm_name_prefix is not None:
        check_name("alarm_name_prefix", alarm_name_prefix, _PREFIX)


def create_alarms(
    scope: Construct,
    rules: Mapping[str, AlarmRule],
    actions: Sequence[cloudwatch.IAlarmAction],
    alarm_name_prefix: str | None,
) -> dict[str, cloudwatch.Alarm]:
    """Create the alarm of each rule. The names of the rules become ids, and follow the prefix."""
    prefix = alarm_name_prefix
    alarms = {
        name: rule.create(scope, name, None if prefix is None else f"{prefix}-{name}")
        for name, rule in rules.items()
    }
    for alarm in alarms.values():
        alarm.add_alarm_action(*actions)
    return alarms


def _check_thresholds(thresholds: AlarmThresholds) -> None:
    check_known(thresholds, AlarmThresholds.__annotations__, "add_alarms()")
    for name, annotation in AlarmThresholds.__annotations__.items():
        if "Duration" in str(annotation):
            check_type(name, thresholds.get(name), (Duration, "Duration.minutes(10)"))


def _rules(
    endpoint: ITritonEndpoint, endpoint_name: str, thresholds: AlarmThresholds
) -> Iterator[tuple[str, AlarmRule]]:
    for prefix, variant in zip(construct_names(endpoint), endpoint.variants, strict=True):
        for rule in variant_rules(endpoint, variant, endpoint_name, thresholds):
            yield f"{prefix}{rule.name}", rule
    for rule in endpoint_rules(endpoint, endpoint_name, thresholds):
        yield rule.name, rule
