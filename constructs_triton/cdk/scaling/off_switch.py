"""``OffSwitch``: endpoints that an update of their stack deletes and creates again, by hand or at
night.

SageMaker cannot stop a real-time endpoint. CloudFormation deletes what has a condition that is
false, and creates it when the condition is true again, with its scaling, its tags and its
deployment configuration.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TypeVar

import aws_cdk as cdk
import jsii
from aws_cdk import aws_applicationautoscaling as appscaling
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sagemaker as sagemaker
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_scheduler_targets as scheduler_targets
from aws_cdk import aws_sqs as sqs
from constructs import Construct, IValidation

from constructs_triton.cdk.permissions.encrypted_data import DataUnderKeys
from constructs_triton.cdk.permissions.nag_findings import mark_as_own
from constructs_triton.cdk.scaling.checks import check_expression
from constructs_triton.cdk.validation.property_types import check_type
from constructs_triton_core.cloud_assembly.template import references

_SCHEDULE = (
    scheduler.ScheduleExpression,
    'scheduler.ScheduleExpression.cron(hour="20", minute="0")',
)
_ElementT = TypeVar("_ElementT", bound=cdk.CfnElement)


class OffSwitch(Construct):
    """Turns endpoints of a stack off and on with a parameter of the stack.

    Created by the property ``off_switch`` of endpoints, which has its name. The parameter is the
    name with ``Running``, and ``true`` at first. If it is ``false``, an update of the stack deletes
    the endpoints, their scaling, and what else below them refers to them. Roles, models and
    configurations stay.
    """

    def __init__(self, scope: cdk.Stack, id: str) -> None:
        super().__init__(scope, id)
        mark_as_own(self)
        self._endpoints: dict[str, sagemaker.CfnEndpoint] = {}
        self.parameter = cdk.CfnParameter(
            # In the stack the name has no hash. People write it, and under another name the value
            # is lost.
            scope,
            f"{id}Running",
            allowed_values=["true", "false"],
            default="true",
            description=f"Whether the endpoints with off_switch {id} exist",
        )
        is_running = cdk.Fn.condition_equals(self.parameter.value_as_string, "true")
        self.condition = cdk.CfnCondition(self, "IsRunning", expression=is_running)
        self.node.add_validation(_Conditions(self))

    @classmethod
    def of(cls, endpoint: Construct, resource: sagemaker.CfnEndpoint, name: str) -> OffSwitch:
        """Return the switch of a name in the endpoint's stack, which then controls the endpoint.

        Args:
            endpoint: The endpoint.
            resource: Its resource.
            name: Name of the switch, which is created if the stack has none.
        """
        stack = cdk.Stack.of(endpoint)
        found = stack.node.try_find_child(name)
        switch = found if isinstance(found, OffSwitch) else cls(stack, name)
        switch._endpoints[f"{endpoint.node.path}/"] = resource
        return switch

    def add_schedule(
        self,
        id: str,
        *,
        off: scheduler.ScheduleExpression,
        on: scheduler.ScheduleExpression | None = None,
        max_event_age: cdk.Duration | None = None,
        dead_letter_queue: sqs.IQueue | None = None,
    ) -> None:
        """Let EventBridge Scheduler update the stack at these times, with the template that is
        deployed.

        CloudFormation makes the changes with the role of the last deployment, such as that of
        ``cdk bootstrap``. Scheduler may only call ``cloudformation:UpdateStack`` on this stack.

        Args:
            id: Beginning of the construct ids of the schedules.
            off: When the endpoints are turned off, such as
                ``scheduler.ScheduleExpression.cron(hour="20", minute="0",
                time_zone=TimeZone.EUROPE_BERLIN)``. Without a time zone: UTC.
            on: When they are turned on. Default: never, so a person does it.
            max_event_age: How long Scheduler repeats an update that CloudFormation refuses, for
                example during a deployment. Keep it shorter than the time to the next schedule.
                Default: 4 hours.
            dead_letter_queue: Queue for updates that were refused until then. Default: none.

        Raises:
            InvalidValueError: a time has the wrong type or form, or the key of the queue is in
                another Region.
        """
        check_type("off", off, _SCHEDULE)
        check_type("on", on, _SCHEDULE)
        for name, time in (("off", off), ("on", on)):
            if time is not None:
                check_expression(name, time.expression_string)
        undelivered = _undelivered(dead_letter_queue)
        undelivered.check_region(self)
        # The CDK's target only allows sqs:SendMessage.
        for statement in undelivered.write_statements("EncryptUndelivered"):
            self._role.add_to_principal_policy(statement.to_cdk())
        stack_id = cdk.Stack.of(self).stack_id
        update = iam.PolicyStatement(actions=["cloudformation:UpdateStack"], resources=[stack_id])
        for name, value, time in (("Off", "false", off), ("On", "true", on)):
            if time is None:
                continue
            target = scheduler_targets.Universal(
                service="cloudformation",
                action="updateStack",
                input=self._request(value),
                role=self._role,
                policy_statements=[update],
                max_event_age=max_event_age or cdk.Duration.hours(4),
                dead_letter_queue=dead_letter_queue,
            )
            scheduler.Schedule(self, f"{id}{name}", schedule=time, target=target)

    @cached_property
    def _role(self) -> iam.Role:
        stack = cdk.Stack.of(self)
        group = stack.format_arn(
            service="scheduler", resource="schedule-group", resource_name="default"
        )
        # Source: EventBridge Scheduler user guide, "Confused deputy prevention in EventBridge
        # Scheduler".
        callers = {"StringEquals": {"aws:SourceAccount": stack.account, "aws:SourceArn": group}}
        principal = iam.ServicePrincipal("scheduler.amazonaws.com", conditions=callers)
        return iam.Role(self, "Role", assumed_by=principal)

    def _request(self, value: str) -> scheduler.ScheduleTargetInput:
        request = {
            "StackName": cdk.Stack.of(self).stack_name,
            "UsePreviousTemplate": True,
            "Capabilities": ["CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"],
            # Only known at the end: the CDK adds BootstrapVersion while it writes the template.
            "Parameters": cdk.Lazy.uncached_any(_Parameters(self.parameter, value)),
        }
        return scheduler.ScheduleTargetInput.from_object(request)


@jsii.implements(IValidation)
class _Conditions:
    """Sets the condition when references and dependencies are those between resources."""

    def __init__(self, switch: OffSwitch) -> None:
        self._switch = switch

    def validate(self) -> list[str]:
        """Set the condition of what the switch turns off,
        and return errors for what else refers to it.
        """
        switch = self._switch
        stack = switch.parameter.stack
        found = {stack.get_logical_id(each): each for each in _elements(stack, cdk.CfnResource)}
        needs = {name: _needs(each) for name, each in found.items()}
        inner = {
            name
            for name, each in found.items()
            if each.node.path.startswith(tuple(switch._endpoints))
        }
        off = {stack.get_logical_id(each) for each in switch._endpoints.values()}
        # Without an endpoint, these alarms would ring.
        off |= {
            name for name in inner if getattr(found[name], "treat_missing_data", "") == "breaching"
        }
        while more := {name for name in inner - off if needs[name] & off}:
            off |= more
        for name in off:
            found[name].cfn_options.condition = switch.condition
        others: list[tuple[cdk.CfnElement, set[str]]] = [
            (each, needs[name]) for name, each in found.items() if not each.cfn_options.condition
        ]
        for output in _elements(stack, cdk.CfnOutput):
            if not output.condition:
                others.append((output, references(stack.resolve(output.value))))
        wrong = {
            each.node.path: found[min(names & off)].node.path
            for each, names in others
            if names & off
        }
        return [
            (
                f"{path}: refers to {other}, which does not exist while {switch.node.id}Running is "
                "false; use endpoint_name or endpoint_arn of the endpoint, remove the dependency, "
                "or set the condition of this resource or output to endpoint.off_switch.condition"
            )
            for path, other in wrong.items()
        ] + [
            each for name in sorted(found.keys() - off) for each in self._lost_scaling(found[name])
        ]

    def _lost_scaling(self, element: cdk.CfnResource) -> Iterator[str]:
        resource_id = (
            str(element.resource_id) if isinstance(element, appscaling.CfnScalableTarget) else ""
        )
        for endpoint in self._switch._endpoints.values():
            if resource_id.startswith(f"endpoint/{endpoint.endpoint_name}/"):
                yield (
                    f"{element.node.path}: scales {resource_id}, and SageMaker deletes its scaling "
                    "with the endpoint; call auto_scale_instance_count "
                    "on the construct that creates the endpoint"
                )


@jsii.implements(cdk.IAnyProducer)
class _Parameters:
    """The parameters of an update that changes one of them."""

    def __init__(self, changed: cdk.CfnParameter, value: str) -> None:
        self._changed, self._value = changed, value

    def produce(self, _context: cdk.IResolveContext) -> list[dict[str, object]]:
        """Return each parameter with its new value, or with the instruction to keep its value."""
        stack = self._changed.stack
        names = {stack.get_logical_id(each) for each in _elements(stack, cdk.CfnParameter)}
        changed = stack.get_logical_id(self._changed)
        kept = [
            {"ParameterKey": name, "UsePreviousValue": True} for name in sorted(names - {changed})
        ]
        return [*kept, {"ParameterKey": changed, "ParameterValue": self._value}]


def _undelivered(queue: sqs.IQueue | None) -> DataUnderKeys:
    """The updates that Scheduler puts into a queue, with the key of the queue."""
    key = None if queue is None else queue.encryption_master_key
    return DataUnderKeys("schedules", [("dead_letter_queue", key)])


def _elements(stack: cdk.Stack, element_type: type[_ElementT]) -> list[_ElementT]:
    """The elements of this type in the template of the stack."""
    found = (each for each in stack.node.find_all() if isinstance(each, element_type))
    return [each for each in found if each.stack is stack]


def _needs(resource: cdk.CfnResource) -> set[str]:
    """The logical ids that a resource refers to or depends on."""
    stack = resource.stack
    first = [each for each in resource.obtain_dependencies() if isinstance(each, cdk.CfnResource)]
    return references(stack.resolve(resource._cfn_properties)) | {*map(stack.get_logical_id, first)}
