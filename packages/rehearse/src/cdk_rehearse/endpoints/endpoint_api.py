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
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from moto.applicationautoscaling.models import applicationautoscaling_backends
from moto.core.responses import ActionResult
from moto.core.utils import utcnow
from moto.sagemaker.exceptions import ValidationError
from moto.sagemaker.models import SageMakerModelBackend
from moto.sagemaker.responses import SageMakerResponse

from constructs_triton_core.cloud_assembly.endpoints import instance_types_of

from ..replacement import replaced
from .components import InferenceComponents
from .fleets import Fleets
from .readings import Peak

__all__ = ["patches"]

_DIMENSION = "sagemaker:variant:DesiredInstanceCount"
#: The variants of an endpoint and its configuration.
_Fleet = tuple[list[dict[str, Any]], Any]


def patches(fleets: Fleets, components: InferenceComponents) -> list[Any]:
    """All patches."""
    return [
        replaced(SageMakerResponse, "create_endpoint", _creating(fleets)),
        replaced(SageMakerResponse, "update_endpoint", _updating(fleets, components), is_new=True),
        replaced(SageMakerModelBackend, "update_endpoint_weights_and_capacities", _scaling()),
        replaced(SageMakerResponse, "delete_endpoint", _deleting_endpoint(fleets)),
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
        running = backend.endpoint_configs[endpoint.endpoint_config_name]
        before = running.production_variants
        _refuse_scaled_variants(response, endpoint.endpoint_name, before, config.production_variants)
        components.expect_unaffected(endpoint.endpoint_name, before, config.production_variants)
        old, new = endpoint.endpoint_config_name, wanted["EndpointConfigName"]
        _expect(lambda: fleets.expect_alarms(wanted.get("DeploymentConfig", {}), new))
        _expect(lambda: fleets.update(endpoint.endpoint_name, old, new))
        is_change = old != new  # after a failed update, the return to the old configuration succeeds
        variants = _next_variants(endpoint, config, wanted)
        if is_change:
            old_fleet, new_fleet = (endpoint.production_variants, running), (variants, config)
            peak = _peak(wanted.get("DeploymentConfig", {}), old_fleet, new_fleet)
            fleets.peaks[endpoint.endpoint_name] = peak
        if is_change and fleets.api.behaviour.endpoint_update == "fails":
            raise ValidationError(message=f"Update of endpoint {endpoint.endpoint_name} was rolled back")
        if fleets.api.behaviour.endpoint_update == "succeeds":
            endpoint.production_variants, endpoint.endpoint_config_name = variants, new
            endpoint.last_modified_time = utcnow()
            if fleets.check.access.is_role(response):
                fleets.end_update(endpoint.endpoint_name)
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


def _peak(deployment: Mapping[str, Any], old: _Fleet, new: _Fleet) -> Peak:
    """The instances while both fleets run: a batch more in a rolling update, or a second fleet."""
    size = deployment.get("RollingUpdatePolicy", {}).get("MaximumBatchSize")
    running = _total(old[0])
    added = _total(new[0]) if size is None else _batch(size, running)
    before, after = _by_type(*old), _by_type(*new)
    by_type = {
        kind: max(after[kind], before[kind] + min(added, after[kind]))
        for kind in sorted(before.keys() | after.keys())
    }
    return Peak(running + added, by_type)


def _total(variants: list[dict[str, Any]]) -> int:
    return sum(each.get("DesiredInstanceCount", 0) for each in variants)


def _batch(size: Mapping[str, Any], count: int) -> int:
    is_share = size["Type"] == "CAPACITY_PERCENT"
    return math.ceil(count * size["Value"] / 100) if is_share else int(size["Value"])


def _by_type(variants: list[dict[str, Any]], config: Any) -> Counter[str]:
    """The instances of each instance type, which only the configuration names.

    An instance of any instance pool may start, so each type counts for all instances.
    """
    types = {each["VariantName"]: instance_types_of(each) for each in config.production_variants}
    counts: Counter[str] = Counter()
    for each in variants:
        for kind in types.get(each["VariantName"], ()):
            counts[kind] += each.get("DesiredInstanceCount", 0)
    return counts


def _deleting_endpoint(fleets: Fleets) -> Callable[[Any], ActionResult]:
    original = SageMakerResponse.delete_endpoint

    def delete_endpoint(response: Any) -> ActionResult:
        name = json.loads(response.body)["EndpointName"]
        models = [
            each for found, config in fleets.running() if found == name for each in fleets.models_of(config)
        ]
        fleets.end_logs(f"/aws/sagemaker/Endpoints/{name}", models)
        answer: ActionResult = original(response)
        return answer

    return delete_endpoint


def _scaling() -> Callable[..., str]:
    """Keep what a request leaves out. Moto replaces it with nothing; auto scaling names only the count."""
    original = SageMakerModelBackend.update_endpoint_weights_and_capacities

    def update(backend: Any, endpoint_name: str, desired_weights_and_capacities: list[Any]) -> str:
        endpoint = backend.endpoints.get(endpoint_name)
        variants = [] if endpoint is None else endpoint.production_variants
        present = {each["VariantName"]: _wanted(each) for each in variants}
        complete = [
            {**present.get(each["VariantName"], {}), **each} for each in desired_weights_and_capacities
        ]
        return original(backend, endpoint_name, complete)

    return update


def _wanted(variant: Mapping[str, Any]) -> dict[str, Any]:
    return {name: variant[name] for name in ("DesiredInstanceCount", "DesiredWeight") if name in variant}


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
