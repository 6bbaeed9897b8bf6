"""The alarms that roll an update of a component back, by their names."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from constructs import Construct

from constructs_triton.cdk.validation.property_types import check_has
from constructs_triton.errors import InvalidValueError
from constructs_triton.tokens import is_token

__all__ = ["alarm_name", "read_alarms_statement"]


def alarm_name(alarm: cloudwatch.IAlarm) -> str:
    """Return the name of an alarm without a reference to it.

    The alarms of a component usually monitor the component, so the two would depend on each other.

    Raises:
        InvalidValueError: not an alarm, or an alarm of this app has no ``alarm_name``, or it is a token.
    """
    check_has("alarms", alarm, "alarm_name", "Alarm.from_alarm_arn(...)")
    resource = alarm.node.default_child
    if not isinstance(resource, (cloudwatch.CfnAlarm, cloudwatch.CfnCompositeAlarm)):
        return alarm.alarm_name
    name = resource.alarm_name
    if name is None or is_token(name):
        raise InvalidValueError(
            f'alarms: alarm "{alarm.node.path}" has no name that is known at synth, so component and alarm '
            "could depend on each other; set alarm_name on the alarm"
        )
    return name


def read_alarms_statement(scope: Construct, alarms: Sequence[cloudwatch.IAlarm]) -> iam.PolicyStatement:
    """Let SageMaker read the state of the alarms (AWS documentation: CreateModel permissions)."""
    arns = [_arn(scope, alarm) for alarm in alarms]
    return iam.PolicyStatement(sid="ReadAlarms", actions=["cloudwatch:DescribeAlarms"], resources=arns)


def _arn(scope: Construct, alarm: cloudwatch.IAlarm) -> str:
    if isinstance(alarm.node.default_child, cloudwatch.CfnCompositeAlarm):
        return "*"  # CloudWatch API reference, DescribeAlarms: composite alarms need this scope
    if alarm.node.default_child is None:
        return alarm.alarm_arn
    return Stack.of(scope).format_arn(
        service="cloudwatch",
        resource="alarm",
        resource_name=alarm_name(alarm),
        arn_format=ArnFormat.COLON_RESOURCE_NAME,
    )
