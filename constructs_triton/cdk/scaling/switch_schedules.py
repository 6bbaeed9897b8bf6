"""The schedules of an ``OffSwitch``: EventBridge Scheduler updates the stack at these times."""

from __future__ import annotations

import aws_cdk as cdk
import jsii
from aws_cdk import aws_iam as iam
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_scheduler_targets as scheduler_targets
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from constructs_triton.cdk.permissions.encrypted_data import DataUnderKeys
from constructs_triton.cdk.scaling.checks import check_expression
from constructs_triton.cdk.scaling.switched_elements import elements_of
from constructs_triton.cdk.validation.arguments import check_known_duration
from constructs_triton.cdk.validation.property_types import check_has, check_type

_TIME = (
    scheduler.ScheduleExpression,
    'scheduler.ScheduleExpression.cron(hour="20", minute="0")',
)


class SwitchSchedules:
    """The schedules of a switch, and their role, both below the construct ``scope``."""

    def __init__(self, scope: Construct, parameter: cdk.CfnParameter) -> None:
        self._scope = scope
        self._parameter = parameter
        self._role: iam.Role | None = None

    def add(
        self,
        id: str,
        *,
        off: scheduler.ScheduleExpression,
        on: scheduler.ScheduleExpression | None,
        max_event_age: cdk.Duration | None,
        dead_letter_queue: sqs.IQueue | None,
    ) -> None:
        """Add the schedules that turn off and on, as ``OffSwitch.add_schedule`` describes.

        Raises:
            InvalidValueError: an argument has the wrong type or form, or the key of the queue is in
                another Region.
        """
        for name, time in (("off", off), ("on", on)):
            check_type(name, time, _TIME)
            if time is not None:
                check_expression(name, time.expression_string)
        check_known_duration("max_event_age", max_event_age, "cdk.Duration.hours(4)")
        check_has(
            "dead_letter_queue", dead_letter_queue, "queue_arn", 'sqs.Queue(self, "Undelivered")'
        )
        undelivered = _undelivered(dead_letter_queue)
        undelivered.check_region(self._scope)
        role = self._role = self._role or self._make_role()
        # The CDK's target only allows sqs:SendMessage.
        for statement in undelivered.write_statements("EncryptUndelivered"):
            role.add_to_principal_policy(statement.to_cdk())
        stack_id = cdk.Stack.of(self._scope).stack_id
        update = iam.PolicyStatement(actions=["cloudformation:UpdateStack"], resources=[stack_id])
        for name, value, time in (("Off", "false", off), ("On", "true", on)):
            if time is None:
                continue
            target = scheduler_targets.Universal(
                service="cloudformation",
                action="updateStack",
                input=self._request(value),
                role=role,
                policy_statements=[update],
                max_event_age=max_event_age or cdk.Duration.hours(4),
                dead_letter_queue=dead_letter_queue,
            )
            scheduler.Schedule(self._scope, f"{id}{name}", schedule=time, target=target)

    def _make_role(self) -> iam.Role:
        stack = cdk.Stack.of(self._scope)
        group = stack.format_arn(
            service="scheduler", resource="schedule-group", resource_name="default"
        )
        # Source: EventBridge Scheduler user guide, "Confused deputy prevention in EventBridge
        # Scheduler".
        callers = {"StringEquals": {"aws:SourceAccount": stack.account, "aws:SourceArn": group}}
        principal = iam.ServicePrincipal("scheduler.amazonaws.com", conditions=callers)
        return iam.Role(self._scope, "Role", assumed_by=principal)

    def _request(self, value: str) -> scheduler.ScheduleTargetInput:
        request = {
            "StackName": cdk.Stack.of(self._scope).stack_name,
            "UsePreviousTemplate": True,
            "Capabilities": ["CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"],
            # Only known at the end: the CDK adds BootstrapVersion while it writes the template.
            "Parameters": cdk.Lazy.uncached_any(_Parameters(self._parameter, value)),
        }
        return scheduler.ScheduleTargetInput.from_object(request)


@jsii.implements(cdk.IAnyProducer)
class _Parameters:
    """The parameters of an update that changes one of them."""

    def __init__(self, changed: cdk.CfnParameter, value: str) -> None:
        self._changed = changed
        self._value = value

    def produce(self, _context: cdk.IResolveContext) -> list[dict[str, object]]:
        """Return each parameter with its new value, or with the instruction to keep its value."""
        stack = self._changed.stack
        names = {
            stack.get_logical_id(parameter) for parameter in elements_of(stack, cdk.CfnParameter)
        }
        changed = stack.get_logical_id(self._changed)
        kept = [
            {"ParameterKey": name, "UsePreviousValue": True} for name in sorted(names - {changed})
        ]
        return [*kept, {"ParameterKey": changed, "ParameterValue": self._value}]


def _undelivered(queue: sqs.IQueue | None) -> DataUnderKeys:
    """The updates that Scheduler puts into a queue, with the key of the queue."""
    key = None if queue is None else queue.encryption_master_key
    return DataUnderKeys("schedules", [("dead_letter_queue", key)])
