"""Alarms that roll a deployment back, without the endpoint and its alarm waiting for each other."""

from __future__ import annotations

import json
from dataclasses import dataclass

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker

from constructs_triton.cdk.validation.tokens import is_concrete
from constructs_triton.errors import InvalidValueError

__all__ = ["RollbackAlarm", "rollback_alarm"]


@dataclass(frozen=True, slots=True)
class RollbackAlarm:
    """An alarm by the name that the endpoint may know it by, and the ARN that its role may ask about."""

    name: str
    arn: str

    def statement(self) -> iam.PolicyStatement:
        """Let SageMaker see whether the alarm went off (AWS documentation: CreateModel permissions)."""
        return iam.PolicyStatement(actions=["cloudwatch:DescribeAlarms"], resources=[self.arn])


def rollback_alarm(endpoint: sagemaker.CfnEndpoint, alarm: cloudwatch.IAlarm) -> RollbackAlarm:
    """The alarm as the endpoint refers to it.

    An alarm on the endpoint's own metrics refers to the endpoint already. The endpoint may then only know it
    by a name that is written out, since CloudFormation could create neither of the two first. Raises
    ``InvalidValueError`` where such an alarm has no name of its own.
    """
    resource = alarm.node.default_child
    if not isinstance(resource, (cloudwatch.CfnAlarm, cloudwatch.CfnCompositeAlarm)):
        return RollbackAlarm(alarm.alarm_name, alarm.alarm_arn)
    if not _may_depend_on(resource, endpoint):
        return RollbackAlarm(alarm.alarm_name, alarm.alarm_arn)
    name = resource.alarm_name
    if name is None or not is_concrete(name):
        raise InvalidValueError(
            f"alarms: an alarm on the endpoint's own metrics needs a name that is written out, "
            f'got none for "{alarm.node.path}"; give it alarm_name, so that neither waits for the other'
        )
    return RollbackAlarm(name, _arn(resource, name))


def _may_depend_on(
    alarm: cloudwatch.CfnAlarm | cloudwatch.CfnCompositeAlarm, endpoint: sagemaker.CfnEndpoint
) -> bool:
    if isinstance(alarm, cloudwatch.CfnCompositeAlarm):
        return True  # by way of the alarms it is made of
    stack = Stack.of(alarm)
    seen = json.dumps([stack.resolve(alarm.dimensions), stack.resolve(alarm.metrics)])
    return f'"{stack.resolve(endpoint.logical_id)}"' in seen


def _arn(alarm: cloudwatch.CfnAlarm | cloudwatch.CfnCompositeAlarm, name: str) -> str:
    if isinstance(alarm, cloudwatch.CfnCompositeAlarm):
        return "*"  # CloudWatch API reference, DescribeAlarms: composite alarms are seen with this scope only
    return Stack.of(alarm).format_arn(
        service="cloudwatch", resource="alarm", resource_name=name, arn_format=ArnFormat.COLON_RESOURCE_NAME
    )
