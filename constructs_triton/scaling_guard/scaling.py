"""The scaling of variants, read from and written to Application Auto Scaling.

A scaling is a scalable target with its policies and scheduled actions, in the words of the service's API.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

__all__ = ["DIMENSION", "NAMESPACE", "Scaling", "ScalingError", "client", "persistently"]

NAMESPACE = "sagemaker"
DIMENSION = "sagemaker:variant:DesiredInstanceCount"
FRESH_POLICY_SECONDS = 40.0
"""A role's new policy takes so long until it holds everywhere, and a registration until it is seen."""
_PASSING = {"AccessDeniedException", "AccessDenied", "ConcurrentUpdateException", "ObjectNotFoundException"}
_TARGET_MEMBERS = ("MinCapacity", "MaxCapacity", "SuspendedState")
_POLICY_MEMBERS = ("PolicyName", "PolicyType", "TargetTrackingScalingPolicyConfiguration")
_ACTION_MEMBERS = (
    "ScheduledActionName",
    "Schedule",
    "Timezone",
    "StartTime",
    "EndTime",
    "ScalableTargetAction",
)
_NOT_SUSPENDED = {
    "DynamicScalingInSuspended": False,
    "DynamicScalingOutSuspended": False,
    "ScheduledScalingSuspended": False,
}


class ScalingError(Exception):
    """What a deployment is told; the text is for its author."""


def client(service: str) -> Any:
    make: Any = boto3.client  # typed by the service's name, which is only known here
    return make(service, config=Config(retries={"mode": "standard", "max_attempts": 8}))


def persistently(call: Callable[..., Any], **request: Any) -> Any:
    """Call until it is let through: right after a policy or a registration, a refusal may pass by itself."""
    begun = time.monotonic()
    while True:
        try:
            return call(**request)
        except ClientError as error:
            is_passing = error.response["Error"]["Code"] in _PASSING
            if not is_passing or time.monotonic() - begun > FRESH_POLICY_SECONDS:
                raise
        time.sleep(2)


class Scaling:
    """Application Auto Scaling, for the variants of endpoints."""

    def __init__(self) -> None:
        self._client = client("application-autoscaling")

    def describe(self, resource_id: str) -> dict[str, Any] | None:
        """The scaling of a variant, as :meth:`restore` takes it; ``None`` where it is not registered."""
        target = self.target(resource_id)
        if target is None:
            return None
        policies = list(self._pages("describe_scaling_policies", "ScalingPolicies", resource_id))
        for policy in policies:
            if policy["PolicyType"] != "TargetTrackingScaling":
                raise ScalingError(
                    f"{resource_id}: policy {policy['PolicyName']} is of type {policy['PolicyType']}, whose "
                    "alarms would lead nowhere afterwards; remove it first"
                )
        actions = self._pages("describe_scheduled_actions", "ScheduledActions", resource_id)
        return {
            "ResourceId": resource_id,
            "Target": _members(target, _TARGET_MEMBERS),
            "Policies": [_members(each, _POLICY_MEMBERS) for each in policies],
            "ScheduledActions": [_members(each, _ACTION_MEMBERS) for each in actions],
        }

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Put back what :meth:`describe` gave and what is not there; what is there stays as it is."""
        resource_id = saved["ResourceId"]
        now = self.describe(resource_id)
        if now is None:
            self.register(resource_id, saved["Target"])
        policies = _names(now, "Policies", "PolicyName")
        for policy in saved["Policies"]:
            if policy["PolicyName"] not in policies:
                self.put_policy(resource_id, policy)
        actions = _names(now, "ScheduledActions", "ScheduledActionName")
        for action in saved["ScheduledActions"]:
            if action["ScheduledActionName"] not in actions:
                self._ask("put_scheduled_action", resource_id, action)

    def target(self, resource_id: str) -> dict[str, Any] | None:
        """The scalable target as it is registered, or ``None``."""
        found = persistently(
            self._client.describe_scalable_targets,
            ServiceNamespace=NAMESPACE,
            ResourceIds=[resource_id],
            ScalableDimension=DIMENSION,
        )["ScalableTargets"]
        return found[0] if found else None

    def register(self, resource_id: str, target: Mapping[str, Any]) -> None:
        """Register, or set bounds and suspension; what is not said to be suspended is not."""
        state = {**_NOT_SUSPENDED, **(target.get("SuspendedState") or {})}
        self._ask("register_scalable_target", resource_id, {**target, "SuspendedState": state})

    def deregister(self, resource_id: str) -> None:
        """Deregister, which deletes policies and scheduled actions; nothing where it is not registered."""
        if self.target(resource_id) is not None:
            self._ask("deregister_scalable_target", resource_id, {})

    def put_policy(self, resource_id: str, policy: Mapping[str, Any]) -> str:
        """Put a policy, and return its ARN."""
        arn: str = self._ask("put_scaling_policy", resource_id, policy)["PolicyARN"]
        return arn

    def delete_policy(self, resource_id: str, policy_name: str) -> None:
        """Delete a policy; nothing where it is not there."""
        policies = self._pages("describe_scaling_policies", "ScalingPolicies", resource_id)
        if policy_name in [each["PolicyName"] for each in policies]:
            self._ask("delete_scaling_policy", resource_id, {"PolicyName": policy_name})

    def set_actions(self, resource_id: str, actions: list[dict[str, Any]]) -> None:
        """Let a variant have exactly these scheduled actions."""
        found = self._pages("describe_scheduled_actions", "ScheduledActions", resource_id)
        before = {each["ScheduledActionName"] for each in found}
        for action in actions:
            self._ask("put_scheduled_action", resource_id, action)
        for name in sorted(before - {each["ScheduledActionName"] for each in actions}):
            self._ask("delete_scheduled_action", resource_id, {"ScheduledActionName": name})

    def _ask(self, operation: str, resource_id: str, members: Mapping[str, Any]) -> Any:
        name = self._client.meta.method_to_api_mapping[operation]
        shape = self._client.meta.service_model.operation_model(name).input_shape
        return persistently(
            getattr(self._client, operation),
            ServiceNamespace=NAMESPACE,
            ResourceId=resource_id,
            ScalableDimension=DIMENSION,
            **_typed(shape, members),
        )

    def _pages(self, operation: str, member: str, resource_id: str) -> Iterator[dict[str, Any]]:
        key = {
            "ServiceNamespace": NAMESPACE,
            "ResourceId": resource_id,
            "ScalableDimension": DIMENSION,
        }
        answer = persistently(getattr(self._client, operation), **key)
        yield from answer[member]
        while token := answer.get("NextToken"):
            answer = persistently(getattr(self._client, operation), **key, NextToken=token)
            yield from answer[member]


def _members(described: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """These members, in what JSON can hold."""
    chosen = {name: described[name] for name in names if described.get(name) is not None}
    plain: dict[str, Any] = json.loads(json.dumps(chosen, default=lambda moment: moment.isoformat()))
    return plain


def _names(scaling: Mapping[str, Any] | None, kind: str, name: str) -> set[str]:
    return set() if scaling is None else {each[name] for each in scaling[kind]}


def _typed(shape: Any, value: Any) -> Any:
    """A value with the types of the API: CloudFormation hands every scalar over as a text."""
    if shape.type_name == "structure":
        return {name: _typed(shape.members[name], each) for name, each in value.items()}
    if shape.type_name == "list":
        return [_typed(shape.member, each) for each in value]
    if shape.type_name == "boolean":
        return str(value).lower() == "true"
    if shape.type_name in ("integer", "long"):
        return int(float(value))
    if shape.type_name in ("double", "float"):
        return float(value)
    return value
