"""Adds what moto lacks of SageMaker's models and configurations, and of a few other services.

* Members that ``Create*`` takes and ``Describe*`` should give back.
* Instance types newer than moto's list: requests are checked against botocore's service model instead.
* Deregistering a scalable target deletes its policies and scheduled actions (Application Auto Scaling API
  reference: DeregisterScalableTarget).
* Access logs to a bucket whose policy comes later: S3 reads the policy when it delivers, CDK puts it last.
* ``CreateModel`` reads the model data with the execution role, as the service does.
* The managed policies of AWS are parsed once in a process, since that takes half a second.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from typing import Any

from moto.applicationautoscaling.models import ApplicationAutoscalingBackend
from moto.core.responses import ActionResult
from moto.iam.models import IAMBackend, ManagedPolicy
from moto.s3.models import FakeBucket
from moto.sagemaker.exceptions import ValidationError
from moto.sagemaker.models import FakeEndpointConfig
from moto.sagemaker.responses import SageMakerResponse

from .endpoints.components.rules import check_config
from .endpoints.instance_pools import check_pools, validating_others
from .permissions.execution_role import ExecutionRoleCheck
from .replacement import replaced

__all__ = ["parsed_managed_policies", "patches"]

_MANAGED_POLICIES: dict[tuple[str, str], list[ManagedPolicy]] = {}
_KEPT_MODEL_MEMBERS = ("EnableNetworkIsolation", "InferenceExecutionConfig")
_KEPT_CONFIG_MEMBERS = (
    "ExplainerConfig",
    "ShadowProductionVariants",
    "VpcConfig",
    "EnableNetworkIsolation",
    "ExecutionRoleArn",
)


def patches(check: ExecutionRoleCheck) -> list[Any]:
    """All patches."""
    return [
        replaced(FakeEndpointConfig, "validate_instance_type", lambda *_: None),
        replaced(FakeEndpointConfig, "validate_production_variants", validating_others()),
        replaced(FakeBucket, "_log_permissions_enabled_policy", lambda *_, **__: True),
        replaced(SageMakerResponse, "create_model", _create_model(check)),
        replaced(ApplicationAutoscalingBackend, "deregister_scalable_target", _deregistering()),
        replaced(SageMakerResponse, "describe_model", _describing_kept(_models, "ModelName")),
        replaced(SageMakerResponse, "create_endpoint_config", _create_endpoint_config()),
        replaced(
            SageMakerResponse,
            "describe_endpoint_config",
            _describing_kept(_endpoint_configs, "EndpointConfigName"),
        ),
    ]


def parsed_managed_policies() -> Any:
    """A patch that gives each account a copy of the managed policies; active before IAM is used."""
    original = IAMBackend._init_aws_policies

    def parsed(backend: Any) -> list[ManagedPolicy]:
        key = (backend.account_id, backend.region_name)
        if key not in _MANAGED_POLICIES:
            _MANAGED_POLICIES[key] = original(backend)
        return [copy.copy(each) for each in _MANAGED_POLICIES[key]]

    return replaced(IAMBackend, "_init_aws_policies", parsed)


def _models(response: Any) -> Mapping[str, Any]:
    models: Mapping[str, Any] = response.sagemaker_backend._models
    return models


def _endpoint_configs(response: Any) -> Mapping[str, Any]:
    configs: Mapping[str, Any] = response.sagemaker_backend.endpoint_configs
    return configs


def _create_model(check: ExecutionRoleCheck) -> Callable[[Any], ActionResult]:
    original = SageMakerResponse.create_model

    def create_model(response: Any) -> ActionResult:
        wanted = json.loads(response.body)
        try:
            check.expect_model_data(wanted)
        except PermissionError as error:
            raise ValidationError(message=str(error)) from None
        answer: ActionResult = original(response)
        _keep(_models(response)[wanted["ModelName"]], wanted, _KEPT_MODEL_MEMBERS)
        return answer

    return create_model


def _create_endpoint_config() -> Callable[[Any], ActionResult]:
    original = SageMakerResponse.create_endpoint_config

    def create_endpoint_config(response: Any) -> ActionResult:
        wanted = json.loads(response.body)
        check_config(wanted, response.region)
        check_pools(wanted["ProductionVariants"])
        answer: ActionResult = original(response)
        _keep(_endpoint_configs(response)[wanted["EndpointConfigName"]], wanted, _KEPT_CONFIG_MEMBERS)
        return answer

    return create_endpoint_config


def _keep(resource: Any, wanted: Mapping[str, Any], members: tuple[str, ...]) -> None:
    resource.kept_members = {name: wanted[name] for name in members if name in wanted}


def _describing_kept(
    store: Callable[[Any], Mapping[str, Any]], name_member: str
) -> Callable[[Any], ActionResult]:
    original: Callable[[Any], ActionResult] = {
        "ModelName": SageMakerResponse.describe_model,
        "EndpointConfigName": SageMakerResponse.describe_endpoint_config,
    }[name_member]

    def describe(response: Any) -> ActionResult:
        answer: Any = original(response).result
        kept = store(response)[json.loads(response.body)[name_member]].kept_members
        return ActionResult({**dict(answer), **kept})

    return describe


def _deregistering() -> Callable[..., None]:
    """Delete the policies and scheduled actions of a target with it."""
    original = ApplicationAutoscalingBackend.deregister_scalable_target

    def deregister(backend: Any, namespace: str, resource_id: str, dimension: str) -> None:
        original(backend, namespace, resource_id, dimension)
        backend.policies = {
            key: each for key, each in backend.policies.items() if each.resource_id != resource_id
        }
        backend.scheduled_actions = [
            each for each in backend.scheduled_actions if each.resource_id != resource_id
        ]

    return deregister
