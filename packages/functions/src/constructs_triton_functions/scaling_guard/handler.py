"""Entry point of the function that lets a deployment change the instances of scaled variants.

SageMaker rejects the update of an endpoint while a variant that is removed, or whose instance type
changes, is registered with Application Auto Scaling (SageMaker developer guide, "Update endpoints
that use automatic scaling"). Four types of custom resources work together. One function handles all
of them:

``Custom::TritonScalingSweeper``
    Is updated first, and its physical id changes with its properties. CloudFormation therefore
    deletes one of its two ids in the cleanup phase: the old one after success, the new one after a
    rollback.
``Custom::TritonScalingGate``
    Is updated after the sweeper and before the endpoint. Its physical id is constant, so
    CloudFormation also updates it in a rollback. It compares the running instance types with those
    in the template, and deregisters exactly the variants whose instance type changes and the
    variants that are removed.
``Custom::TritonScalableTarget``, ``Custom::TritonScalingPolicy``
    Are updated after the endpoint. They take the properties of the ``AWS::ApplicationAutoScaling``
    types, and the variant's instance type. When it changes, they are updated too, and so registered
    again.

CloudFormation's own types cannot do this. They are not updated when only the endpoint changes.
CloudFormation also identifies a policy by its ARN, and that policy no longer exists once its target
has been deregistered.

**Rollback.** A deployment may fail after the gate's update and before the update of targets and
policies. Then CloudFormation does not update those two. The Parameter Store keeps what the gate
deregistered, and the deletion of the sweeper's new id registers what is missing again.
``transitions.py`` lists what happens when.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ..response import Event, Response, handle_request, is_failed_create
from ..scaling import DIMENSION, NAMESPACE, POLICY_MEMBERS, TARGET_MEMBERS, Scaling, ScalingError
from . import GATE_TYPE, POLICY_TYPE, SWEEPER_TYPE, TARGET_TYPE
from .guard import handle_guard
from .stack import stack_resources


def handler(event: Event, context: Any) -> None:
    """Handle one request of CloudFormation and send the response."""
    handle_request(event, context, _HANDLERS[event["ResourceType"]])


def _target(event: Event, physical_id: str) -> Response:
    properties, scaling = event["ResourceProperties"], Scaling()
    resource_id = properties["ResourceId"]
    if event["RequestType"] == "Delete":
        target_id = physical_id if "|" in physical_id else _target_id(resource_id)
        if not is_failed_create(physical_id) and not _is_replaced_by_native(event, target_id):
            scaling.deregister(target_id.partition("|")[0])
        return Response(physical_id)
    # Of an adopted endpoint, the stack takes over the registration.
    is_foreign = event["RequestType"] == "Create" and not properties.get("PreviousPolicies")
    if is_foreign and scaling.target(resource_id) is not None:
        raise ScalingError(
            f"{resource_id} is already registered for scaling by something else, which would "
            "deregister it when it is deleted; deploy once without the scaling of this variant and "
            "with endpoint.retain_instance_counts(), then with the scaling"
        )
    try:
        scaling.register(
            resource_id, {name: properties[name] for name in TARGET_MEMBERS if name in properties}
        )
        scaling.set_actions(resource_id, properties.get("ScheduledActions") or [])
    except Exception:
        if event["RequestType"] == "Create":
            # CloudFormation deletes a failed resource by an id that does not name the variant.
            scaling.deregister(resource_id)
        raise
    target_id = _target_id(resource_id)
    return Response(target_id, {"Id": target_id})


def _target_id(resource_id: str) -> str:
    """The physical id; CloudFormation invents another one if the response to a Create is lost."""
    return "|".join((resource_id, DIMENSION, NAMESPACE))


def _is_replaced_by_native(event: Event, target_id: str) -> bool:
    """Whether the stack has CloudFormation's own target instead of this one:
    the guard was removed.
    """
    native = ("AWS::ApplicationAutoScaling::ScalableTarget", target_id)
    resources = stack_resources(event["StackId"])
    return native in [(each["ResourceType"], each.get("PhysicalResourceId")) for each in resources]


def _policy(event: Event, physical_id: str) -> Response:
    properties, scaling = event["ResourceProperties"], Scaling()
    target_id, name = properties["ScalingTargetId"], properties["PolicyName"]
    if event["RequestType"] == "Delete":
        if not is_failed_create(physical_id):
            policy_id = physical_id if "|" in physical_id else f"{target_id}|{name}"
            resource_id, *_, policy_name = policy_id.split("|")
            scaling.delete_policy(resource_id, policy_name)
        return Response(physical_id)
    resource_id = target_id.partition("|")[0]
    arn = scaling.put_policy(resource_id, {each: properties[each] for each in POLICY_MEMBERS})
    if event["RequestType"] == "Create":
        # Only now, so that the variant of an adopted endpoint is never without a policy.
        for previous_id, previous in json.loads(properties.get("PreviousPolicies") or "[]"):
            if previous_id == resource_id and previous != name:
                scaling.delete_policy(previous_id, previous)
    return Response(f"{target_id}|{name}", {"Arn": arn})


_HANDLERS: dict[str, Callable[[Event, str], Response]] = {
    SWEEPER_TYPE: handle_guard,
    GATE_TYPE: handle_guard,
    TARGET_TYPE: _target,
    POLICY_TYPE: _policy,
}
