"""Alarms that roll an update back, without a dependency cycle between what they
monitor and the alarms.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from aws_cdk import Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct, IConstruct

from constructs_triton.cdk.metrics.metric_values import Metric
from constructs_triton.cdk.permissions.places import alarm_places, check_places
from constructs_triton.cdk.permissions.statements import Statement, allow, arn_in_stack
from constructs_triton.cdk.validation.property_types import check_has, check_type, shown
from constructs_triton.cdk.validation.read_once import stack_of
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.tokens import is_token

_RESOURCES = (cloudwatch.CfnAlarm, cloudwatch.CfnCompositeAlarm)


# The metrics of alarms that this library has created, so that they are not read back from the CDK.
_metrics_of: WeakKeyDictionary[cloudwatch.IAlarm, Metric] = WeakKeyDictionary()


def note_alarm(alarm: cloudwatch.IAlarm, metric: Metric) -> None:
    """Note the metric of an alarm without a name that has been created."""
    _metrics_of[alarm] = metric


@dataclass(frozen=True, slots=True)
class RollbackAlarm:
    """The name of an alarm in the endpoint's deployment configuration,
    and its ARN in the role's policy.
    """

    name: str
    arn: str

    def statement(self) -> Statement:
        """Let SageMaker read the state of the alarm (AWS documentation:
        CreateModel permissions).
        """
        return allow(None, ["cloudwatch:DescribeAlarms"], [self.arn])


def rollback_alarm(endpoint: sagemaker.CfnEndpoint, alarm: cloudwatch.IAlarm) -> RollbackAlarm:
    """Return how the endpoint refers to the alarm.

    Where possible, the endpoint refers to the alarm, so that the alarm is created first: SageMaker
    may look for it at the endpoint's creation. An alarm on the endpoint's metrics refers to the
    endpoint unless the endpoint has a literal name. If the endpoint also referred to such an alarm,
    CloudFormation could create neither of them first. The endpoint therefore uses its name.

    Raises:
        InvalidValueError: such an alarm has no ``alarm_name``, or it is a token.
    """
    check_alarm(alarm)
    check_places(endpoint, alarm_places([alarm]))
    metric = _metrics_of.get(alarm)
    if metric is not None and not is_token(repr(metric)):  # it refers to no resource
        return RollbackAlarm(alarm.alarm_name, alarm.alarm_arn)
    resource = alarm.node.default_child
    if not isinstance(resource, _RESOURCES):
        return RollbackAlarm(alarm.alarm_name, alarm.alarm_arn)
    name = resource.alarm_name
    has_name = name is not None and not is_token(name)
    if not _may_depend_on(resource, endpoint, has_name):
        return RollbackAlarm(alarm.alarm_name, alarm.alarm_arn)
    if name is None or not has_name:
        raise InvalidValueError(
            f'alarms: alarm "{alarm.node.path}" monitors this endpoint, so the two would depend on '
            "each other; set alarm_name on the alarm"
        )
    return RollbackAlarm(name, _arn(stack_of(resource), resource, name))


def _may_depend_on(
    alarm: cloudwatch.CfnAlarm | cloudwatch.CfnCompositeAlarm,
    endpoint: sagemaker.CfnEndpoint,
    is_named: bool,
) -> bool:
    """Whether a reference to the alarm could make the endpoint, or its stack,
    depend on what monitors it.
    """
    if isinstance(alarm, cloudwatch.CfnCompositeAlarm):
        return True  # through the alarms that it combines
    here, there = stack_of(endpoint), stack_of(alarm)
    metrics = json.dumps(there.resolve([alarm.dimensions, alarm.metrics]))
    is_elsewhere = is_named and there is not here and f'"{endpoint.endpoint_name}"' in metrics
    return is_elsewhere or f'"{here.resolve(endpoint.logical_id)}"' in metrics


def check_alarm(alarm: cloudwatch.IAlarm) -> None:
    """Check that a value is one alarm, and neither a list nor the alarms of an endpoint.

    Raises:
        InvalidValueError: not an alarm.
    """
    is_several = isinstance(alarm, Sequence) and not isinstance(alarm, str)
    if is_several or hasattr(alarm, "rollback_alarms"):
        fix = "write * before it, as in" if is_several else "write"
        raise InvalidValueError(
            f"alarms: must be single alarms, got a {type(alarm).__name__}; {fix} "
            "add_rollback_alarms(*alarms.rollback_alarms)"
        )
    check_has(
        "alarms", alarm, "alarm_name", 'cloudwatch.Alarm.from_alarm_arn(self, "Alarm", "...")'
    )


def alarm_list(
    property: str, alarms: Sequence[cloudwatch.IAlarm] | None
) -> tuple[cloudwatch.IAlarm, ...]:
    """Return the alarms of a list.

    Raises:
        InvalidValueError: it is no list, or one that is known only at deployment.
    """
    example = 'cloudwatch.Alarm.from_alarm_arn(self, "Alarm", "...")'
    if is_token(alarms):
        raise InvalidValueError(
            f"{property}: must be a list that is known at synth, got {shown(alarms)}; "
            f"write [{example}]"
        )
    check_type(property, alarms, (Sequence, f"[{example}]"))
    return tuple(alarms or ())


def alarm_name(alarm: cloudwatch.IAlarm) -> str:
    """Return the name of an alarm of an inference component, without a reference to the alarm.

    The alarms of a component usually monitor the component, so the two would depend on each other.

    Raises:
        InvalidValueError: not an alarm, or an alarm of this app has no ``alarm_name``, or it is a
            token.
    """
    check_alarm(alarm)
    resource = alarm.node.default_child
    if not isinstance(resource, _RESOURCES):
        return alarm.alarm_name
    name = resource.alarm_name
    if name is None or is_token(name):
        raise InvalidValueError(
            f'alarms: alarm "{alarm.node.path}" has no name that is known at synth, so component '
            "and alarm could depend on each other; set alarm_name on the alarm"
        )
    return name


def read_alarms_statement(scope: Construct, alarms: Sequence[cloudwatch.IAlarm]) -> Statement:
    """Let SageMaker read the state of the alarms (AWS documentation: CreateModel permissions)."""
    stack = stack_of(scope)
    arns = []
    for alarm in alarms:
        resource = alarm.node.default_child
        if resource is None:  # an imported alarm
            arns.append(alarm.alarm_arn)
        else:
            arns.append(_arn(stack, resource, alarm_name(alarm)))
    return allow("ReadAlarms", ["cloudwatch:DescribeAlarms"], arns)


def _arn(stack: Stack, resource: IConstruct, name: str) -> str:
    if isinstance(resource, cloudwatch.CfnCompositeAlarm):
        return "*"  # CloudWatch API reference, DescribeAlarms: composite alarms need this scope
    return arn_in_stack(stack, "cloudwatch", "alarm", name)
