"""Alarms for an endpoint."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Unpack

from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from constructs_triton.cdk.monitoring.alarm_rules import (
    AlarmThresholds,
    endpoint_rules,
    variant_rules,
)
from constructs_triton.cdk.monitoring.alarm_set import AlarmRule, AlarmSet, check_alarm_options
from constructs_triton.cdk.monitoring.interfaces import ITritonEndpoint
from constructs_triton.cdk.monitoring.monitored_endpoint import (
    construct_names,
    literal_endpoint_name,
)
from constructs_triton.cdk.scaling.endpoint_variant import EndpointVariant
from constructs_triton.cdk.validation.properties import check_properties, takes_properties
from constructs_triton.cdk.validation.same_environment import check_is_here
from constructs_triton.cdk.validation.synthesis_warning import warn_at_synthesis
from constructs_triton_core.declared_values import default_values
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.findings import Finding, Severity
from constructs_triton_core.spelling import quoted

__all__ = ["AlarmThresholds", "TritonAlarms"]


@takes_properties(AlarmThresholds)
class TritonAlarms(AlarmSet):
    """Alarms on errors, latency, memory, disk, model loading, capacity and idleness of an endpoint.

    ``endpoint``
        A Triton endpoint, created in this app or imported. Set up its scaling first: only then is
        there an alarm on its capacity.
    ``actions``
        At most 5 actions of each alarm, such as ``aws_cloudwatch_actions.SnsAction(topic)``.
        Default: none.
    ``alarm_name_prefix``
        Prefix of the alarms' names, 1 to 150 characters. Default: CloudFormation generates the
        names.

    The other properties are the thresholds of ``AlarmThresholds``. Set a threshold to ``None`` to
    leave its alarm out.

    Raises:
        InvalidValueError: a threshold out of range, more than 5 actions, or a property of the wrong
            type.
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
        check_properties("add_alarms()", thresholds, AlarmThresholds)
        check_is_here(scope, endpoint, "alarms", "add_alarms")
        rules = dict(_rules(endpoint, {**default_values(AlarmThresholds), **thresholds}))
        name = literal_endpoint_name(endpoint.node, endpoint.endpoint_name)
        whose = f"Find the cause: constructs-triton diagnose {name or endpoint.endpoint_name}"
        super().__init__(scope, id, rules, actions, alarm_name_prefix, whose=whose)
        if thresholds.get("at_max_capacity_for", True) is not None:
            fixed = [each for each in endpoint.variants if each.scalable_instance_count is None]
            warn_at_synthesis(self, partial(_scaled_later, fixed))
        # A literal name does not refer to the endpoint's resource, so the endpoint may refer to the
        # alarm.
        self._has_literal_endpoint_name = name is not None

    @property
    def rollback_alarms(self) -> tuple[cloudwatch.Alarm, ...]:
        """The alarms that detect a bad deployment: errors, and latency if it has an objective.

        Pass them to ``endpoint.add_rollback_alarms``, of the same endpoint or another one.

        Raises:
            InvalidValueError: neither the endpoint nor the alarms have a literal name, so they
                would depend on each other.
        """
        if not self._has_literal_endpoint_name and self._prefix is None:
            raise InvalidValueError(
                f"{self.node.path}: rollback alarms and the endpoint would depend on each other; "
                "set alarm_name_prefix on the alarms, or endpoint_name on the endpoint"
            )
        return super().rollback_alarms


def _scaled_later(variants: Sequence[EndpointVariant]) -> Finding | None:
    """Return a warning about variants that had no scaling when their alarms were created."""
    names = [each.variant_name for each in variants if each.scalable_instance_count is not None]
    if not names:
        return None
    return Finding(
        "alarms-before-scaling",
        Severity.WARNING,
        "at_max_capacity_for",
        f"no alarm watches the capacity of variant {quoted(names)}, because its scaling was set up "
        "after the alarms",
        "call auto_scale_instance_count before add_alarms",
    )


def _rules(
    endpoint: ITritonEndpoint, thresholds: AlarmThresholds
) -> Iterator[tuple[str, AlarmRule]]:
    for prefix, variant in zip(construct_names(endpoint), endpoint.variants, strict=True):
        for rule in variant_rules(endpoint, variant, thresholds):
            yield f"{prefix}{rule.name}", rule
    for rule in endpoint_rules(endpoint, thresholds):
        yield rule.name, rule
