"""An account in memory: what the guard's function reads and writes, without a server."""

# ruff: noqa: N803  (members of requests have the names of the API)

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import boto3
from botocore.exceptions import ClientError

ENDPOINT = "Digits"
_ARN = f"arn:aws:sagemaker:us-east-1:123456789012:endpoint/{ENDPOINT.lower()}"
_META = boto3.client("application-autoscaling", region_name="us-east-1").meta


class KilledError(BaseException):
    """The function's process ended during a call; it sends no response."""


class UpdateRejectedError(Exception):
    """SageMaker rejects the endpoint's update."""


@dataclass
class Account:
    """Application Auto Scaling, the Parameter Store, and views of the stack and its endpoint."""

    status: str = "CREATE_COMPLETE"
    instance_types: dict[str, str] = field(default_factory=dict)
    """Instance types of the variants that run."""
    targets: dict[str, dict[str, Any]] = field(default_factory=dict)
    policies: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    actions: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    parameters: dict[str, str] = field(default_factory=dict)
    fails_at: int | None = None
    """The number of the call that fails, counted down by each call."""
    failure: BaseException | None = None

    def scaling(self) -> Any:
        """A copy of all that is registered."""
        return copy.deepcopy((self.targets, self.policies, self.actions))

    def update_endpoint(self, instance_types: Mapping[str, str]) -> None:
        """Change the endpoint as SageMaker does: not while a variant in the way is registered."""
        for variant, instance_type in self.instance_types.items():
            is_registered = f"endpoint/{ENDPOINT}/variant/{variant}" in self.targets
            if is_registered and instance_types.get(variant) != instance_type:
                raise UpdateRejectedError(f"{variant} must be deregistered as a scalable target")
        self.instance_types = dict(instance_types)

    def client(self, service: str, **_: Any) -> Any:
        """A client of one service, as the function's ``make_client`` returns it."""
        client = SimpleNamespace(
            meta=_META, exceptions=SimpleNamespace(ParameterNotFound=_NotFoundError)
        )
        for name, operation in self._operations()[service].items():
            setattr(client, name, self._counted(operation))
        return client

    def _operations(self) -> dict[str, dict[str, Callable[..., Any]]]:
        services: dict[str, list[Callable[..., Any]]] = {
            "application-autoscaling": [
                self.describe_scalable_targets,
                self.describe_scaling_policies,
                self.describe_scheduled_actions,
                self.register_scalable_target,
                self.deregister_scalable_target,
                self.put_scaling_policy,
                self.delete_scaling_policy,
                self.put_scheduled_action,
                self.delete_scheduled_action,
            ],
            "ssm": [self.get_parameter, self.put_parameter, self.delete_parameter],
            "cloudformation": [self.describe_stacks, self.list_stack_resources],
            "sagemaker": [self.describe_endpoint, self.describe_endpoint_config],
        }
        return {name: {each.__name__: each for each in listed} for name, listed in services.items()}

    def _counted(self, operation: Callable[..., Any]) -> Callable[..., Any]:
        def call(**request: Any) -> Any:
            if self.fails_at is not None:
                self.fails_at -= 1
                if self.fails_at < 0 and self.failure is not None:
                    failure, self.fails_at, self.failure = self.failure, None, None
                    raise failure
            return operation(**copy.deepcopy(request))

        return call

    # Application Auto Scaling.

    def describe_scalable_targets(self, ResourceIds: list[str], **_: Any) -> Any:
        return {
            "ScalableTargets": [self.targets[each] for each in ResourceIds if each in self.targets]
        }

    def describe_scaling_policies(self, ResourceId: str, **_: Any) -> Any:
        return {"ScalingPolicies": _of(self.policies, ResourceId)}

    def describe_scheduled_actions(self, ResourceId: str, **_: Any) -> Any:
        return {"ScheduledActions": _of(self.actions, ResourceId)}

    def register_scalable_target(self, ResourceId: str, **target: Any) -> Any:
        self.targets[ResourceId] = self.targets.get(ResourceId, {}) | target
        return {}

    def deregister_scalable_target(self, ResourceId: str, **_: Any) -> Any:
        self._expect_target(ResourceId)
        del self.targets[ResourceId]
        for listed in (self.policies, self.actions):
            for key in [each for each in listed if each[0] == ResourceId]:
                del listed[key]
        return {}

    def put_scaling_policy(self, ResourceId: str, **policy: Any) -> Any:
        self._expect_target(ResourceId)
        self.policies[ResourceId, policy["PolicyName"]] = policy
        return {"PolicyARN": f"arn:{policy['PolicyName']}"}

    def delete_scaling_policy(self, ResourceId: str, PolicyName: str, **_: Any) -> Any:
        del self.policies[ResourceId, PolicyName]
        return {}

    def put_scheduled_action(self, ResourceId: str, **action: Any) -> Any:
        self._expect_target(ResourceId)
        self.actions[ResourceId, action["ScheduledActionName"]] = action
        return {}

    def delete_scheduled_action(self, ResourceId: str, ScheduledActionName: str, **_: Any) -> Any:
        del self.actions[ResourceId, ScheduledActionName]
        return {}

    def _expect_target(self, resource_id: str) -> None:
        if resource_id not in self.targets:
            raise failure("ValidationException")

    # Parameter Store.

    def get_parameter(self, Name: str) -> Any:
        if Name not in self.parameters:
            raise _NotFoundError
        return {"Parameter": {"Value": self.parameters[Name]}}

    def put_parameter(self, Name: str, Value: str, **_: Any) -> Any:
        self.parameters[Name] = Value

    def delete_parameter(self, Name: str) -> Any:
        if self.parameters.pop(Name, None) is None:
            raise _NotFoundError

    # The stack and its endpoint.

    def describe_stacks(self, **_: Any) -> Any:
        return {"Stacks": [{"StackStatus": self.status}]}

    def list_stack_resources(self, **_: Any) -> Any:
        row = {
            "LogicalResourceId": "Endpoint",
            "PhysicalResourceId": _ARN,
            "ResourceType": "AWS::SageMaker::Endpoint",
        }
        return {"StackResourceSummaries": [row]}

    def describe_endpoint(self, **_: Any) -> Any:
        return {"EndpointName": ENDPOINT, "EndpointConfigName": "config"}

    def describe_endpoint_config(self, **_: Any) -> Any:
        variants = self.instance_types.items()
        return {
            "ProductionVariants": [
                {"VariantName": name, "InstanceType": each} for name, each in variants
            ]
        }


class _NotFoundError(Exception):
    """The parameter does not exist."""


def failure(code: str) -> ClientError:
    """An error of a service that the function does not retry."""
    return ClientError({"Error": {"Code": code, "Message": "injected"}}, "Operation")


def _of(listed: Mapping[tuple[str, str], Any], resource_id: str) -> list[Any]:
    return [each for (owner, _), each in listed.items() if owner == resource_id]
