"""Endpoints as SageMaker treats them: creation, updates, and what they keep from being deleted.

* ``UpdateEndpoint``, which moto lacks, with the rules for retained variant properties and for
  variants under auto scaling (SageMaker API reference: UpdateEndpoint; developer guide: update
  endpoints that use automatic scaling).
* Instances are launched with the role as it is. Rollback alarms must exist (inferred: the API
  reference of AutoRollbackConfig only says "alarms in your account").
* A model or configuration that an endpoint uses cannot be deleted (inferred). The API reference of
  DeleteEndpointConfig forbids it, but SageMaker deletes it (hashicorp/terraform-provider-aws issue
  48997).
* EC2 refuses to delete subnets and security groups in which an endpoint has network interfaces (API
  reference of EC2, "DeleteSecurityGroup", and its error code ``DependencyViolation``).
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from moto.core.responses import ActionResult
from moto.core.utils import utcnow
from moto.ec2.exceptions import DependencyViolationError
from moto.ec2.responses.security_groups import SecurityGroups
from moto.ec2.responses.subnets import Subnets
from moto.sagemaker.exceptions import ValidationError
from moto.sagemaker.models import SageMakerModelBackend
from moto.sagemaker.responses import SageMakerResponse

from constructs_triton_core.cloud_assembly.endpoints import instance_types_of

from ..replacement import replaced, wrapped
from .components import InferenceComponents
from .fleets import Fleets, refusing
from .instance_pools import expect_instances
from .readings import Peak

_DIMENSION = "sagemaker:variant:DesiredInstanceCount"
_RETAINED = {"DesiredInstanceCount", "DesiredWeight"}
#: The variants of an endpoint and its configuration.
_Fleet = tuple[list[dict[str, Any]], Any]


def patches(fleets: Fleets, components: InferenceComponents) -> list[Any]:
    """All patches."""
    response, config = SageMakerResponse, "Endpoint configuration"
    of_model = partial(_delete_unused, "Model", "ModelName", fleets.users_of_model)
    of_config = partial(_delete_unused, config, "EndpointConfigName", fleets.users_of_config)
    return [
        wrapped(response, "create_endpoint", partial(_create, fleets)),
        replaced(
            response,
            "update_endpoint",
            lambda given: _update(fleets, components, given),
            is_new=True,
        ),
        wrapped(SageMakerModelBackend, "update_endpoint_weights_and_capacities", _scale),
        wrapped(response, "delete_endpoint", partial(_delete, fleets)),
        wrapped(response, "delete_model", of_model),
        wrapped(response, "delete_endpoint_config", of_config),
        wrapped(
            SecurityGroups, "delete_security_group", partial(_delete_network, fleets, "GroupId")
        ),
        wrapped(Subnets, "delete_subnet", partial(_delete_network, fleets, "SubnetId")),
    ]


def _create(fleets: Fleets, original: Callable[[Any], Any], response: Any) -> Any:
    wanted = json.loads(response.body)
    for existing, endpoint in response.sagemaker_backend.endpoints.items():
        # Names are unique without regard to case (API reference: CreateEndpoint).
        if existing.lower() == wanted["EndpointName"].lower():
            raise ValidationError(
                message=f'Cannot create already existing endpoint "{endpoint.arn}".'
            )
    name = wanted["EndpointConfigName"]
    if name in response.sagemaker_backend.endpoint_configs:
        with refusing():
            fleets.launch(name)
            config = response.sagemaker_backend.endpoint_configs[name]
            expect_instances(fleets, config, _by_type(config.production_variants, config))
            if fleets.api.behaviour.looks_up_alarms_at_create:
                roles = fleets.roles_of(fleets.models_of(name))
                fleets.expect_alarms(wanted.get("DeploymentConfig", {}), roles)
    fleets.deployments[wanted["EndpointName"]] = wanted.get("DeploymentConfig", {})
    return original(response)


def _update(fleets: Fleets, components: InferenceComponents, response: Any) -> ActionResult:
    backend, wanted = response.sagemaker_backend, json.loads(response.body)
    endpoint = backend.endpoints.get(wanted["EndpointName"])
    config = backend.endpoint_configs.get(wanted["EndpointConfigName"])
    _expect_found(wanted, endpoint, config)
    name, deployment = endpoint.endpoint_name, wanted.get("DeploymentConfig", {})
    old, new = endpoint.endpoint_config_name, wanted["EndpointConfigName"]
    running = backend.endpoint_configs[old]
    before = running.production_variants
    _refuse_scaled_variants(fleets, name, before, config.production_variants)
    components.expect_unaffected(name, before, config.production_variants)
    with refusing():
        fleets.expect_alarms(deployment, fleets.roles_of(fleets.models_of(new)))
        fleets.update(name, old, new)
    is_change = old != new  # after a failed update, the return to the old configuration succeeds
    variants = _next_variants(endpoint, config, wanted)
    if is_change:
        old_fleet, new_fleet = (endpoint.production_variants, running), (variants, config)
        fleets.peaks[name] = _peak(deployment, old_fleet, new_fleet)
        with refusing():
            expect_instances(
                fleets, config, Counter(fleets.peaks[name].by_type) - _by_type(*old_fleet)
            )
    behaviour = fleets.api.behaviour
    outcome = (
        behaviour.endpoint_update
        if name in (behaviour.updated_endpoints or (name,))
        else "succeeds"
    )
    if is_change and outcome == "fails":
        raise ValidationError(message=f"Update of endpoint {name} was rolled back")
    if outcome == "succeeds":
        endpoint.production_variants, endpoint.endpoint_config_name = variants, new
        endpoint.last_modified_time = utcnow()
        fleets.deployments[name] = deployment
        if fleets.check.access.is_role(response):
            fleets.end_update(name)
    return ActionResult({"EndpointArn": endpoint.arn})


def _expect_found(wanted: Mapping[str, Any], endpoint: Any, config: Any) -> None:
    if endpoint is None:
        raise ValidationError(message=f'Could not find endpoint "{wanted["EndpointName"]}".')
    if config is None:
        raise ValidationError(
            f'Could not find endpoint configuration "{wanted["EndpointConfigName"]}".'
        )


def _next_variants(endpoint: Any, config: Any, wanted: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The variants of the new configuration, with the properties that the update retains."""
    variants: list[dict[str, Any]] = endpoint._process_production_variants(
        config.production_variants
    )
    if wanted.get("RetainAllVariantProperties"):
        excluded = {
            each["VariantPropertyType"]
            for each in wanted.get("ExcludeRetainedVariantProperties", [])
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
    """The instances of each instance type, which only the configuration names; of a new variant,
    the initial.

    An instance of any instance pool may start, so each type counts for all instances.
    """
    types = {each["VariantName"]: instance_types_of(each) for each in config.production_variants}
    counts: Counter[str] = Counter()
    for each in variants:
        for kind in types.get(each["VariantName"], ()):
            counts[kind] += each.get("DesiredInstanceCount", each.get("InitialInstanceCount", 0))
    return counts


def _delete(fleets: Fleets, original: Callable[[Any], Any], response: Any) -> Any:
    name = json.loads(response.body)["EndpointName"]
    configs = [config for found, config in fleets.running() if found == name]
    models = [each for config in configs for each in fleets.models_of(config)]
    fleets.end_logs(f"/aws/sagemaker/Endpoints/{name}", models)
    return original(response)


def _scale(
    original: Callable[..., str],
    backend: Any,
    endpoint_name: str,
    desired_weights_and_capacities: list[Any],
) -> str:
    """Keep what a request leaves out.

    Moto replaces it with nothing; auto scaling names only the count.
    """
    endpoint = backend.endpoints.get(endpoint_name)
    variants = [] if endpoint is None else endpoint.production_variants
    present = {
        each["VariantName"]: {name: each[name] for name in _RETAINED if name in each}
        for each in variants
    }
    wanted = desired_weights_and_capacities
    complete = [{**present.get(each["VariantName"], {}), **each} for each in wanted]
    return original(backend, endpoint_name, complete)


def _delete_unused(
    what: str,
    member: str,
    users_of: Callable[[str], list[str]],
    original: Callable[[Any], Any],
    response: Any,
) -> Any:
    name = json.loads(response.body)[member]
    users = users_of(name)
    if users:
        raise ValidationError(message=f"{what} {name} is in use by {', '.join(users)}")
    return original(response)


def _refuse_scaled_variants(
    fleets: Fleets, endpoint_name: str, before: list[dict[str, Any]], after: list[dict[str, Any]]
) -> None:
    instance_types = {each["VariantName"]: instance_types_of(each) for each in after}
    scaled = fleets.api.backend("applicationautoscaling").targets.get(_DIMENSION, {})
    refused = [
        each["VariantName"]
        for each in before
        if f"endpoint/{endpoint_name}/variant/{each['VariantName']}" in scaled
        and instance_types.get(each["VariantName"]) != instance_types_of(each)
    ]
    if refused:
        raise ValidationError(
            message=(
                f'The variant(s) "{refused}" must be deregistered as scalable targets with AWS '
                "Auto Scaling before they can be removed or have their instance type updated."
            )
        )


def _retain(before: list[dict[str, Any]], after: list[dict[str, Any]], excluded: set[str]) -> None:
    """Keep the current instance count and weight, which a deployment must not change."""
    old = {each["VariantName"]: each for each in before}
    for retained in _RETAINED - excluded:
        for variant in after:
            kept = old.get(variant["VariantName"], {})
            for name in (retained, retained.replace("Desired", "Current")):
                if name in kept:
                    variant[name] = kept[name]


def _delete_network(
    fleets: Fleets, member: str, original: Callable[[Any], Any], response: Any
) -> Any:
    wanted = response._get_param(member)
    for endpoint, config in fleets.running():
        if any(wanted in network for network in _networks(fleets, config)):
            user = f"a network interface of endpoint {endpoint}"
            raise DependencyViolationError(f"resource {wanted} has a dependent object: {user}")
    return original(response)


def _networks(fleets: Fleets, config_name: str) -> Iterator[list[str]]:
    """The subnets and security groups of a configuration for components,
    and of the models of others.
    """
    own = [fleets.model(name).vpc_config for name in fleets.models_of(config_name)]
    for each in filter(None, (fleets.kept_members(config_name).get("VpcConfig"), *own)):
        yield from (each.get("Subnets", []), each.get("SecurityGroupIds", []))
