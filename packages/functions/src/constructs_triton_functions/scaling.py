"""Reads and writes the auto scaling of variants with Application Auto Scaling.

A scaling is a scalable target with its policies and scheduled actions, in the words of the
service's API.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from botocore.exceptions import ClientError

from .response import CustomResourceError
from .retries import call_with_retries, make_client

NAMESPACE = "sagemaker"
DIMENSION = "sagemaker:variant:DesiredInstanceCount"
TARGET_MEMBERS = ("MinCapacity", "MaxCapacity", "SuspendedState")
POLICY_MEMBERS = ("PolicyName", "PolicyType", "TargetTrackingScalingPolicyConfiguration")
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
# A policy of the role, or a registration, that has not taken effect everywhere yet; and another
# writer at the same time, such as a second run for one event.
_TEMPORARY = {
    "AccessDeniedException",
    "AccessDenied",
    "ConcurrentUpdateException",
    "ObjectNotFoundException",
    "TooManyUpdates",
}


class ScalingError(CustomResourceError):
    """The scaling of a variant cannot be changed."""


def call(operation: Callable[..., Any], **request: Any) -> Any:
    """Call an operation of AWS, and again while its errors are temporary."""
    return call_with_retries(lambda: operation(**request), _is_temporary)


def _is_temporary(error: ClientError) -> bool:
    code = error.response["Error"]["Code"]
    if code == "ObjectNotFoundException" and error.operation_name.startswith(("Delete", "Dereg")):
        return False  # waiting does not bring it back
    is_denied = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode") == 403
    return is_denied or code in _TEMPORARY


class Scaling:
    """Application Auto Scaling, for the variants of endpoints."""

    def __init__(self) -> None:
        self._client = make_client("application-autoscaling")

    def describe(self, resource_id: str) -> dict[str, Any] | None:
        """The scaling of a variant, in the form that :meth:`restore` takes;
        ``None`` if not registered.
        """
        target = self.target(resource_id)
        if target is None:
            return None
        policies = list(self._pages("describe_scaling_policies", "ScalingPolicies", resource_id))
        for policy in policies:
            if policy["PolicyType"] != "TargetTrackingScaling":
                raise ScalingError(
                    f"{resource_id}: policy {policy['PolicyName']} is of type "
                    f"{policy['PolicyType']}, and its alarms would not be restored; delete the "
                    "policy, then deploy again"
                )
        actions = self._pages("describe_scheduled_actions", "ScheduledActions", resource_id)
        return {
            "ResourceId": resource_id,
            "Target": _members(target, TARGET_MEMBERS),
            "Policies": [_members(each, POLICY_MEMBERS) for each in policies],
            "ScheduledActions": [_members(each, _ACTION_MEMBERS) for each in actions],
        }

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Register what :meth:`describe` returned and what is missing now;
        the rest is not changed.
        """
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
                self._change("put_scheduled_action", resource_id, action)

    def target(self, resource_id: str) -> dict[str, Any] | None:
        """The registered scalable target, or ``None``."""
        found = call(
            self._client.describe_scalable_targets,
            ServiceNamespace=NAMESPACE,
            ResourceIds=[resource_id],
            ScalableDimension=DIMENSION,
        )["ScalableTargets"]
        return found[0] if found else None

    def register(self, resource_id: str, target: Mapping[str, Any]) -> None:
        """Register a target, or change its limits and suspension. Default: nothing is suspended."""
        state = {**_NOT_SUSPENDED, **(target.get("SuspendedState") or {})}
        self._change("register_scalable_target", resource_id, {**target, "SuspendedState": state})

    def deregister(self, resource_id: str) -> None:
        """Deregister a target if it is registered;
        this deletes its policies and scheduled actions.
        """
        self._delete(
            "deregister_scalable_target",
            resource_id,
            {},
            lambda: self.target(resource_id) is not None,
        )

    def put_policy(self, resource_id: str, policy: Mapping[str, Any]) -> str:
        """Create or replace a policy; returns its ARN."""
        arn: str = self._change("put_scaling_policy", resource_id, policy)["PolicyARN"]
        return arn

    def delete_policy(self, resource_id: str, policy_name: str) -> None:
        """Delete a policy if it exists."""
        name = {"PolicyName": policy_name}
        self._delete(
            "delete_scaling_policy",
            resource_id,
            name,
            partial(self._has_policy, resource_id, policy_name),
        )

    def set_actions(self, resource_id: str, actions: list[dict[str, Any]]) -> None:
        """Create or replace these scheduled actions of a variant, and delete all others."""
        before = self._action_names(resource_id)
        for action in actions:
            self._change("put_scheduled_action", resource_id, action)
        for name in sorted(before - {each["ScheduledActionName"] for each in actions}):
            self._delete(
                "delete_scheduled_action",
                resource_id,
                {"ScheduledActionName": name},
                partial(self._has_action, resource_id, name),
            )

    def _has_policy(self, resource_id: str, name: str) -> bool:
        found = self._pages("describe_scaling_policies", "ScalingPolicies", resource_id)
        return name in [each["PolicyName"] for each in found]

    def _has_action(self, resource_id: str, name: str) -> bool:
        return name in self._action_names(resource_id)

    def _action_names(self, resource_id: str) -> set[str]:
        found = self._pages("describe_scheduled_actions", "ScheduledActions", resource_id)
        return {each["ScheduledActionName"] for each in found}

    def _delete(
        self,
        operation: str,
        resource_id: str,
        members: Mapping[str, Any],
        exists: Callable[[], bool],
    ) -> None:
        """Delete something if it exists.

        It may be gone although this call is refused: if the response to an earlier attempt was
        lost, or a second run for the same event came first.
        """
        if not exists():
            return
        try:
            self._change(operation, resource_id, members)
        except ClientError:
            if exists():
                raise

    def _change(self, operation: str, resource_id: str, members: Mapping[str, Any]) -> Any:
        name = self._client.meta.method_to_api_mapping[operation]
        shape = self._client.meta.service_model.operation_model(name).input_shape
        return call(
            getattr(self._client, operation),
            ServiceNamespace=NAMESPACE,
            ResourceId=resource_id,
            ScalableDimension=DIMENSION,
            **typed(shape, members),
        )

    def _pages(self, operation: str, member: str, resource_id: str) -> Iterator[dict[str, Any]]:
        key = {
            "ServiceNamespace": NAMESPACE,
            "ResourceId": resource_id,
            "ScalableDimension": DIMENSION,
        }
        page = call(getattr(self._client, operation), **key)
        yield from page[member]
        while token := page.get("NextToken"):
            page = call(getattr(self._client, operation), **key, NextToken=token)
            yield from page[member]


def _members(described: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """These members, with values that JSON can represent."""
    chosen = {name: described[name] for name in names if described.get(name) is not None}
    plain: dict[str, Any] = json.loads(
        json.dumps(chosen, default=lambda moment: moment.isoformat())
    )
    return plain


def _names(scaling: Mapping[str, Any] | None, member: str, name: str) -> set[str]:
    return set() if scaling is None else {each[name] for each in scaling[member]}


def typed(shape: Any, value: Any) -> Any:
    """A value with the types of the API; CloudFormation passes every scalar as a string."""
    if shape.type_name == "structure":
        return {name: typed(shape.members[name], each) for name, each in value.items()}
    if shape.type_name == "list":
        return [typed(shape.member, each) for each in value]
    if shape.type_name == "boolean":
        return str(value).lower() == "true"
    if shape.type_name in ("integer", "long"):
        return int(float(value))
    if shape.type_name in ("double", "float"):
        return float(value)
    return value
