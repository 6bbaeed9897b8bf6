"""``OffSwitch``: endpoints that an update of their stack deletes and creates again, by hand or at
night.

SageMaker cannot stop a real-time endpoint. CloudFormation deletes what has a condition that is
false, and creates it when the condition is true again, with its scaling, its tags and its
deployment configuration.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import aws_cdk as cdk
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from constructs_triton.cdk.permissions.nag_findings import mark_as_own
from constructs_triton.cdk.validation.property_types import shown
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.tokens import is_lookup_dummy

if TYPE_CHECKING:
    from aws_cdk import aws_sagemaker as sagemaker

    from constructs_triton.cdk.scaling.switch_schedules import SwitchSchedules


class OffSwitch(Construct):
    """Turns endpoints of a stack off and on with a parameter of the stack.

    Give it to the endpoints as ``off_switch``. The parameter is the id with ``Running``, such as
    ``NightRunning``, and ``true`` at first. If it is ``false``, an update of the stack deletes the
    endpoints, their scaling, and what else below them refers to them. Roles, models and
    configurations stay.
    """

    def __init__(self, scope: Construct, id: str) -> None:
        """Add the parameter to the stack of ``scope``.

        Args:
            scope: A stack, or a construct in it. The stack must be deployed by itself: neither
                nested, nor in a stage of a pipeline.
            id: Construct id, of letters and digits, since it begins the name of the parameter.

        Raises:
            InvalidValueError: the stack would lose the value of the parameter, or the id is not one
                for a parameter.
        """
        # It reads templates, and all endpoints know this class.
        from constructs_triton.cdk.scaling.switched_elements import SwitchedElements  # noqa: PLC0415

        stack = cdk.Stack.of(scope)
        _check_stack(stack)
        _check_id(stack, id)
        super().__init__(scope, id)
        mark_as_own(self)
        self._endpoints: dict[str, sagemaker.CfnEndpoint] = {}
        self._schedules: SwitchSchedules | None = None
        self.parameter = cdk.CfnParameter(
            # In the stack the name has no hash. People write it, and under another name the value
            # is lost.
            stack,
            f"{id}Running",
            allowed_values=["true", "false"],
            default="true",
            description=f"Whether the endpoints with off_switch {id} exist",
        )
        is_running = cdk.Fn.condition_equals(self.parameter.value_as_string, "true")
        self.condition = cdk.CfnCondition(self, "IsRunning", expression=is_running)
        self.node.add_validation(
            SwitchedElements(self.parameter, self.condition, endpoints=self._endpoints)
        )

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
            InvalidValueError: an argument has the wrong type or form, or the key of the queue is in
                another Region.
        """
        # Most stacks have no schedule.
        from constructs_triton.cdk.scaling.switch_schedules import SwitchSchedules  # noqa: PLC0415

        if self._schedules is None:
            self._schedules = SwitchSchedules(self, self.parameter)
        self._schedules.add(
            id, off=off, on=on, max_event_age=max_event_age, dead_letter_queue=dead_letter_queue
        )


def connect_endpoint(
    switch: OffSwitch, endpoint: Construct, resource: sagemaker.CfnEndpoint
) -> None:
    """Let a switch control an endpoint's resource, and what refers to it below the endpoint."""
    switch._endpoints[f"{endpoint.node.path}/"] = resource


def _check_stack(stack: cdk.Stack) -> None:
    """Check that deployments of the stack keep the value of the parameter."""
    if stack.nested_stack_parent is not None:
        raise InvalidValueError(
            f"OffSwitch: not supported in nested stack {stack.node.path}, whose parent sets its "
            "parameters; use a stack that is not nested"
        )
    stage = cdk.Stage.of(stack)
    if stage is not None and any(isinstance(each, cdk.Stack) for each in stage.node.scopes):
        # aws-cloudformation/cloudformation-coverage-roadmap#1789: CodePipeline uses the default.
        raise InvalidValueError(
            f"OffSwitch: not supported in stage {stage.node.path} of a pipeline, because each of "
            "its deployments would turn the endpoint on; deploy this stack with `cdk deploy`"
        )


def _check_id(stack: cdk.Stack, id: object) -> None:
    # Source: CloudFormation user guide, "Parameters": the logical id is alphanumeric, at most 255
    # characters.
    if is_lookup_dummy(id):  # the next synthesis has it
        return
    if not isinstance(id, str) or not re.fullmatch("[A-Za-z][A-Za-z0-9]{0,199}", id):
        raise InvalidValueError(
            "id: must be letters and digits, since it begins the name of a parameter, got "
            f'{shown(id)}; write for example OffSwitch(self, "Night")'
        )
    if stack.node.try_find_child(f"{id}Running") is not None:
        raise InvalidValueError(
            f"id: {id}Running exists already in stack {stack.node.path}, got "
            f'"{id}"; use that switch for all endpoints that are off together, or write another '
            f'id, for example OffSwitch(self, "{id}2")'
        )
