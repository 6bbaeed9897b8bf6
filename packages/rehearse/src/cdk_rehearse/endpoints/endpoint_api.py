"""Endpoints as SageMaker treats them: creation, updates, and what they keep from being deleted.

* ``CreateModel`` reads the model data with the execution role.
* ``UpdateEndpoint`` with the rules for retained variant properties and for
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

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from constructs_triton_core.cloud_assembly.endpoints import instance_types_of

from ..moto_account import ec2, sagemaker
from ..moto_account.backends import variants_started
from ..moto_account.calls import Call, now
from ..moto_account.differences import Replacement
from ..moto_account.refusals import DependencyViolationError, ValidationError
from .components import InferenceComponents, check_config
from .fleets import Fleets, refusing
from .instance_pools import check_pools, expect_instances
from .readings import Peak

_DIMENSION = "sagemaker:variant:DesiredInstanceCount"
_RETAINED = {"DesiredInstanceCount", "DesiredWeight"}
#: The variants of an endpoint and its configuration.
_Fleet = tuple[list[dict[str, Any]], Any]


def patches(fleets: Fleets, components: InferenceComponents) -> list[Replacement]:
    """Answer as SageMaker and EC2 while the simulated account runs."""
    delete_model = partial(_delete_unused, "Model", "ModelName", fleets.users_of_model)
    delete_config = partial(
        _delete_unused, "Endpoint configuration", "EndpointConfigName", fleets.users_of_config
    )
    return [
        sagemaker.CREATE_MODEL.answered_by(partial(_create_model, fleets)),
        sagemaker.CREATE_ENDPOINT_CONFIG.answered_by(_create_config),
        sagemaker.CREATE_ENDPOINT.answered_by(partial(_create, fleets)),
        sagemaker.UPDATE_ENDPOINT.answered_by(partial(_update, fleets, components)),
        sagemaker.DELETE_ENDPOINT.answered_by(partial(_delete, fleets)),
        sagemaker.DELETE_MODEL.answered_by(delete_model),
        sagemaker.DELETE_ENDPOINT_CONFIG.answered_by(delete_config),
        *ec2.networks_deleted_after(partial(_expect_no_interface, fleets)),
    ]


def _create_model(fleets: Fleets, call: Call) -> Mapping[str, Any]:
    with refusing():
        fleets.check.expect_model_data(call.members)
    return call.simulated()


def _create_config(call: Call) -> Mapping[str, Any]:
    check_config(call.members, call.region)
    check_pools(call.members["ProductionVariants"])
    return call.simulated()


def _create(fleets: Fleets, call: Call) -> Mapping[str, Any]:
    """Answer CreateEndpoint; the instances must be able to start."""
    name = call.members["EndpointName"]
    store = fleets.api.backend("sagemaker")
    for existing, endpoint in store.endpoints.items():
        # Names are unique without regard to case (API reference: CreateEndpoint).
        if existing.lower() == name.lower():
            raise ValidationError(
                message=f'Cannot create already existing endpoint "{endpoint.arn}".'
            )

    deployment = call.members.get("DeploymentConfig", {})
    config = store.endpoint_configs.get(call.members["EndpointConfigName"])
    if config is not None:
        _launch(fleets, config, deployment)
    fleets.deployments[name] = deployment
    return call.simulated()


def _launch(fleets: Fleets, config: Any, deployment: Mapping[str, Any]) -> None:
    """Start the instances of a new endpoint."""
    name = config.endpoint_config_name
    with refusing():
        fleets.launch(name)
        expect_instances(fleets, config, _by_type(config.production_variants, config))
        if fleets.api.behaviour.looks_up_alarms_at_create:
            fleets.expect_alarms(deployment, fleets.roles_of(fleets.models_of(name)))


def _update(fleets: Fleets, components: InferenceComponents, call: Call) -> Mapping[str, Any]:
    """Answer UpdateEndpoint; the new instances must be able to start beside the old ones."""
    store = fleets.api.backend("sagemaker")
    endpoint = store.endpoints.get(call.members["EndpointName"])
    config = store.endpoint_configs.get(call.members["EndpointConfigName"])
    _expect_found(call.members, endpoint, config)

    name = endpoint.endpoint_name
    old = endpoint.endpoint_config_name
    new = config.endpoint_config_name
    running = store.endpoint_configs[old]
    before = running.production_variants
    _refuse_scaled_variants(fleets, name, before, config.production_variants)
    components.expect_unaffected(name, before, config.production_variants)

    deployment = call.members.get("DeploymentConfig", {})
    with refusing():
        fleets.expect_alarms(deployment, fleets.roles_of(fleets.models_of(new)))
        fleets.update(name, old, new)

    variants = _next_variants(endpoint, config, call.members)
    outcome = _outcome(fleets, name)
    # After a failed update, the return to the old configuration succeeds.
    if old != new:
        old_fleet = (endpoint.production_variants, running)
        _start_beside(fleets, name, deployment, old_fleet, (variants, config))
        if outcome == "fails":
            raise ValidationError(message=f"Update of endpoint {name} was rolled back")

    if outcome == "succeeds":
        endpoint.production_variants = variants
        endpoint.endpoint_config_name = new
        endpoint.last_modified_time = now()
        fleets.deployments[name] = deployment
        # A function waits until the update is complete; CloudFormation cleans up later.
        if fleets.check.access.role_of(call.access_key_id) is not None:
            fleets.end_update(name)
    return {"EndpointArn": endpoint.arn}


def _start_beside(
    fleets: Fleets, name: str, deployment: Mapping[str, Any], old: _Fleet, new: _Fleet
) -> None:
    """Start the instances of a new configuration while those of the old one run."""
    peak = _peak(deployment, old, new)
    fleets.peaks[name] = peak
    _, config = new
    with refusing():
        expect_instances(fleets, config, Counter(peak.by_type) - _by_type(*old))


def _outcome(fleets: Fleets, name: str) -> str:
    """How an update of an endpoint ends, which the behaviour of the account may say."""
    behaviour = fleets.api.behaviour
    is_concerned = not behaviour.updated_endpoints or name in behaviour.updated_endpoints
    return behaviour.endpoint_update if is_concerned else "succeeds"


def _expect_found(wanted: Mapping[str, Any], endpoint: Any, config: Any) -> None:
    if endpoint is None:
        raise ValidationError(message=f'Could not find endpoint "{wanted["EndpointName"]}".')
    if config is None:
        raise ValidationError(
            f'Could not find endpoint configuration "{wanted["EndpointConfigName"]}".'
        )


def _next_variants(endpoint: Any, config: Any, wanted: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The variants of the new configuration, with the properties that the update retains."""
    variants = variants_started(endpoint, config.production_variants)
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


def _delete(fleets: Fleets, call: Call) -> Mapping[str, Any]:
    name = call.members["EndpointName"]
    configs = [config for found, config in fleets.running() if found == name]
    models = [model for config in configs for model in fleets.models_of(config)]
    fleets.end_logs(f"/aws/sagemaker/Endpoints/{name}", models)
    return call.simulated()


def _delete_unused(
    what: str, member: str, users_of: Callable[[str], list[str]], call: Call
) -> Mapping[str, Any]:
    name = call.members[member]
    users = users_of(name)
    if users:
        raise ValidationError(message=f"{what} {name} is in use by {', '.join(users)}")
    return call.simulated()


def _refuse_scaled_variants(
    fleets: Fleets, endpoint_name: str, before: list[dict[str, Any]], after: list[dict[str, Any]]
) -> None:
    """Refuse to remove or change the type of a variant that scales automatically."""
    new_types = {variant["VariantName"]: instance_types_of(variant) for variant in after}
    scaled = fleets.api.backend("applicationautoscaling").targets.get(_DIMENSION, {})
    refused = []
    for variant in before:
        name = variant["VariantName"]
        is_scaled = f"endpoint/{endpoint_name}/variant/{name}" in scaled
        if is_scaled and new_types.get(name) != instance_types_of(variant):
            refused.append(name)
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


def _expect_no_interface(fleets: Fleets, network_id: str) -> None:
    """Raise the error of EC2 while an endpoint runs in a subnet or with a security group."""
    for endpoint, config in fleets.running():
        if any(network_id in network for network in _networks(fleets, config)):
            user = f"a network interface of endpoint {endpoint}"
            raise DependencyViolationError(f"resource {network_id} has a dependent object: {user}")


def _networks(fleets: Fleets, config_name: str) -> Iterator[list[str]]:
    """The subnets and security groups of a configuration for components,
    and of the models of others.
    """
    own = [fleets.model(name).vpc_config for name in fleets.models_of(config_name)]
    for each in filter(None, (fleets.kept_members(config_name).get("VpcConfig"), *own)):
        yield from (each.get("Subnets", []), each.get("SecurityGroupIds", []))
