"""Adds what moto lacks of SageMaker's models and configurations, and of a few other services.

* Members that ``Create*`` takes and ``Describe*`` should give back.
* Instance types newer than moto's list: requests are checked against botocore's service model
  instead.
* Deregistering a scalable target deletes its policies and scheduled actions (Application Auto
  Scaling API reference: DeregisterScalableTarget).
* Access logs to a bucket whose policy comes later: S3 reads the policy when it delivers, CDK puts
  it last.
* ``CreateModel`` reads the model data with the execution role, as the service does.
* The managed policies of AWS are parsed once in a process, since that takes half a second.
* A symmetric key has no private key, which would take a tenth of a second and can sign nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from moto.applicationautoscaling.models import ApplicationAutoscalingBackend
from moto.core.responses import ActionResult
from moto.iam.models import IAMBackend, ManagedPolicy
from moto.kms import models as kms_models
from moto.moto_api._internal import mock_random
from moto.s3.models import FakeBucket
from moto.sagemaker.models import FakeEndpointConfig
from moto.sagemaker.responses import SageMakerResponse

from .endpoints.components.rules import check_config
from .endpoints.fleets import refusing
from .endpoints.instance_pools import check_pools, validate_others
from .permissions.execution_role import ExecutionRoleCheck
from .replacement import replaced, wrapped

_MANAGED_POLICIES: dict[tuple[str, str], list[ManagedPolicy]] = {}
_KEPT = json.loads(Path(__file__).with_suffix(".json").read_text())


def repeat_ids() -> None:
    """Let moto generate the same IDs again, so that two rehearsals of an update are equal."""
    mock_random.seed(0)


def patches(check: ExecutionRoleCheck) -> list[Any]:
    """All patches."""
    response, models, configs = SageMakerResponse, "_models", "endpoint_configs"
    return [
        replaced(FakeEndpointConfig, "validate_instance_type", lambda *_: None),
        wrapped(FakeEndpointConfig, "validate_production_variants", validate_others),
        replaced(FakeBucket, "_log_permissions_enabled_policy", lambda *_, **__: True),
        wrapped(response, "create_model", partial(_create_model, check)),
        wrapped(kms_models, "generate_private_key", _private_key),
        wrapped(ApplicationAutoscalingBackend, "deregister_scalable_target", _deregister),
        wrapped(response, "describe_model", partial(_describe_kept, models, "ModelName")),
        wrapped(response, "create_endpoint_config", _create_endpoint_config),
        wrapped(
            response,
            "describe_endpoint_config",
            partial(_describe_kept, configs, "EndpointConfigName"),
        ),
    ]


def parsed_managed_policies() -> Any:
    """A patch that gives each account the managed policies as they were;
    active before IAM is used.
    """
    return wrapped(IAMBackend, "_init_aws_policies", _detached)


def _detached(original: Callable[[Any], list[ManagedPolicy]], backend: Any) -> list[ManagedPolicy]:
    key = (backend.account_id, backend.region_name)
    kept = _MANAGED_POLICIES[key] = _MANAGED_POLICIES.get(key) or original(backend)
    for each in kept:
        each.attachment_count = 0  # all that moto changes in them; the account before has ended
    return kept


def _private_key(original: Callable[[str], Any], key_spec: str) -> Any:
    return None if key_spec == "SYMMETRIC_DEFAULT" else original(key_spec)


def _create_model(check: ExecutionRoleCheck, original: Callable[[Any], Any], response: Any) -> Any:
    wanted = json.loads(response.body)
    with refusing():
        check.expect_model_data(wanted)
    answer = original(response)
    _keep(response.sagemaker_backend._models[wanted["ModelName"]], wanted, _KEPT["CreateModel"])
    return answer


def _create_endpoint_config(original: Callable[[Any], Any], response: Any) -> Any:
    wanted = json.loads(response.body)
    check_config(wanted, response.region)
    check_pools(wanted["ProductionVariants"])
    answer = original(response)
    created = response.sagemaker_backend.endpoint_configs[wanted["EndpointConfigName"]]
    _keep(created, wanted, _KEPT["CreateEndpointConfig"])
    return answer


def _keep(resource: Any, wanted: Mapping[str, Any], members: tuple[str, ...]) -> None:
    resource.kept_members = {name: wanted[name] for name in members if name in wanted}


def _describe_kept(
    store: str, member: str, original: Callable[[Any], Any], response: Any
) -> ActionResult:
    answer = original(response).result
    found = getattr(response.sagemaker_backend, store)[json.loads(response.body)[member]]
    return ActionResult({**dict(answer), **found.kept_members})


def _deregister(
    original: Callable[..., None], backend: Any, namespace: str, resource_id: str, dimension: str
) -> None:
    """Delete the policies and scheduled actions of a target with it."""
    original(backend, namespace, resource_id, dimension)
    policies, actions = backend.policies.items(), backend.scheduled_actions
    backend.policies = {key: each for key, each in policies if each.resource_id != resource_id}
    backend.scheduled_actions = [each for each in actions if each.resource_id != resource_id]
