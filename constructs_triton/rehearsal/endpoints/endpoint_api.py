"""Endpoints as SageMaker treats them: creation, updates, and what they keep from being deleted.

* ``UpdateEndpoint``, which moto lacks, with the rules for retained variant properties and for variants under
  auto scaling (SageMaker API reference: UpdateEndpoint; developer guide: update endpoints that use automatic
  scaling).
* Instances are launched with the role as it is. Rollback alarms must exist (API: AutoRollbackConfig).
* A model or configuration that an endpoint uses cannot be deleted. The API reference of DeleteEndpointConfig
  forbids it while the endpoint runs or is updated. The real service may carry it out and break the endpoint.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from moto.applicationautoscaling.models import applicationautoscaling_backends
from moto.core.responses import ActionResult
from moto.sagemaker.exceptions import ValidationError
from moto.sagemaker.responses import SageMakerResponse

from constructs_triton.cloud_assembly.endpoints import instance_types_of

from ..replacement import replaced
from .components import InferenceComponents
from .fleets import Fleets

__all__ = ["patches"]

_DIMENSION = "sagemaker:variant:DesiredInstanceCount"


def patches(fleets: Fleets, components: InferenceComponents) -> list[Any]:
    """All patches."""
    return [
        replaced(SageMakerResponse, "create_endpoint", _creating(fleets)),
        replaced(SageMakerResponse, "update_endpoint", _updating(fleets, components), is_new=True),
        replaced(SageMakerResponse, "delete_model", _deleting_model(fleets)),
        replaced(SageMakerResponse, "delete_endpoint_config", _deleting_config(fleets)),
    ]


def _creating(fleets: Fleets) -> Callable[[Any], ActionResult]:
    original = SageMakerResponse.create_endpoint

    def create_endpoint(response: Any) -> ActionResult:
        wanted = json.loads(response.body)
        _refuse_existing(response, wanted["EndpointName"])
        name = wanted["EndpointConfigName"]
        if name in response.sagemaker_backend.endpoint_configs:
            _expect(lambda: fleets.launch(name))
            if fleets.api.behaviour.looks_up_alarms_at_create:
                _expect(lambda: fleets.expect_alarms(wanted.get("DeploymentConfig", {}), name))
        answer: ActionResult = original(response)
        return answer

    return create_endpoint


def _refuse_existing(response: Any, name: str) -> None:
    """Names of endpoints are unique without regard to case (API reference: CreateEndpoint)."""
    for existing, endpoint in response.sagemaker_backend.endpoints.items():
        if existing.lower() == name.lower():
            raise ValidationError(message=f'Cannot create already existing endpoint "{endpoint.arn}".')


def _updating(fleets: Fleets, components: InferenceComponents) -> Callable[[Any], ActionResult]:
    def update_endpoint(response: Any) -> ActionResult:
        backend, wanted = response.sagemaker_backend, json.loads(response.body)
        endpoint = backend.endpoints.get(wanted["EndpointName"])
        config = backend.endpoint_configs.get(wanted["EndpointConfigName"])
        _expect_found(wanted, endpoint, config)
        before = backend.endpoint_configs[endpoint.endpoint_config_name].production_variants
        _refuse_scaled_variants(response, endpoint.endpoint_name, before, config.production_variants)
        components.expect_unaffected(endpoint.endpoint_name, before, config.production_variants)
        old, new = endpoint.endpoint_config_name, wanted["EndpointConfigName"]
        _expect(lambda: fleets.expect_alarms(wanted.get("DeploymentConfig", {}), new))
        _expect(lambda: fleets.update(endpoint.endpoint_name, old, new))
        is_change = old != new  # after a failed update, the return to the old configuration succeeds
        variants = _next_variants(endpoint, config, wanted)
        if is_change:
            added = _added(wanted.get("DeploymentConfig", {}), endpoint.production_variants, variants)
            fleets.peaks[endpoint.endpoint_name] = _total(endpoint.production_variants) + added
        if is_change and fleets.api.behaviour.endpoint_update == "fails":
            raise ValidationError(message=f"Update of endpoint {endpoint.endpoint_name} was rolled back")
        if fleets.api.behaviour.endpoint_update == "succeeds":
            endpoint.production_variants, endpoint.endpoint_config_name = variants, new
        return ActionResult({"EndpointArn": endpoint.arn})

    return update_endpoint


def _expect_found(wanted: Mapping[str, Any], endpoint: Any, config: Any) -> None:
    if endpoint is None:
        raise ValidationError(message=f'Could not find endpoint "{wanted["EndpointName"]}".')
    if config is None:
        name = wanted["EndpointConfigName"]
        raise ValidationError(message=f'Could not find endpoint configuration "{name}".')


def _expect(check: Callable[[], None]) -> None:
    try:
        check()
    except PermissionError as error:
        raise ValidationError(message=str(error)) from None


def _next_variants(endpoint: Any, config: Any, wanted: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The variants of the new configuration, with the properties that the update retains."""
    variants: list[dict[str, Any]] = endpoint._process_production_variants(config.production_variants)
    if wanted.get("RetainAllVariantProperties"):
        excluded = {
            each["VariantPropertyType"] for each in wanted.get("ExcludeRetainedVariantProperties", [])
        }
        _retain(endpoint.production_variants, variants, excluded)
    return variants


def _added(deployment: Mapping[str, Any], before: list[dict[str, Any]], after: list[dict[str, Any]]) -> int:
    """The instances that an update adds: a batch of a rolling update, or a second fleet."""
    size = deployment.get("RollingUpdatePolicy", {}).get("MaximumBatchSize")
    if size is None:
        return _total(after)
    is_share = size["Type"] == "CAPACITY_PERCENT"
    return math.ceil(_total(before) * size["Value"] / 100) if is_share else int(size["Value"])


def _total(variants: list[dict[str, Any]]) -> int:
    return sum(each.get("DesiredInstanceCount", 0) for each in variants)


def _deleting_model(fleets: Fleets) -> Callable[[Any], ActionResult]:
    original = SageMakerResponse.delete_model

    def delete_model(response: Any) -> ActionResult:
        name = json.loads(response.body)["ModelName"]
        _refuse_if_used(f"Model {name}", fleets.users_of_model(name))
        answer: ActionResult = original(response)
        return answer

    return delete_model


def _deleting_config(fleets: Fleets) -> Callable[[Any], ActionResult]:
    original = SageMakerResponse.delete_endpoint_config

    def delete_endpoint_config(response: Any) -> ActionResult:
        name = json.loads(response.body)["EndpointConfigName"]
        _refuse_if_used(f"Endpoint configuration {name}", fleets.users_of_config(name))
        answer: ActionResult = original(response)
        return answer

    return delete_endpoint_config


def _refuse_if_used(what: str, users: list[str]) -> None:
    if users:
        raise ValidationError(message=f"{what} is in use by {', '.join(users)}")


def _refuse_scaled_variants(
    response: Any, endpoint_name: str, before: list[dict[str, Any]], after: list[dict[str, Any]]
) -> None:
    instance_types = {each["VariantName"]: instance_types_of(each) for each in after}
    scaling = applicationautoscaling_backends[response.current_account][response.region]
    scaled = scaling.targets.get(_DIMENSION, {})
    refused = [
        each["VariantName"]
        for each in before
        if f"endpoint/{endpoint_name}/variant/{each['VariantName']}" in scaled
        and instance_types.get(each["VariantName"]) != instance_types_of(each)
    ]
    if refused:
        raise ValidationError(
            message=f'The variant(s) "{refused}" must be deregistered as scalable targets with AWS Auto '
            "Scaling before they can be removed or have their instance type updated."
        )


def _retain(before: list[dict[str, Any]], after: list[dict[str, Any]], excluded: set[str]) -> None:
    """Keep the current instance count and weight, which a deployment must not change."""
    old = {each["VariantName"]: each for each in before}
    for retained in {"DesiredInstanceCount", "DesiredWeight"} - excluded:
        for variant in after:
            kept = old.get(variant["VariantName"], {})
            for name in (retained, retained.replace("Desired", "Current")):
                if name in kept:
                    variant[name] = kept[name]
