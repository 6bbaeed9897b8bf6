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
from dataclasses import dataclass
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


@dataclass(frozen=True)
class _Fleet:
    """Variants that run or start, and their configuration, which alone names instance types."""

    variants: list[dict[str, Any]]
    config: Any

    @property
    def total(self) -> int:
        """The instances of all variants; without those of new ones, which have no count yet."""
        return sum(variant.get("DesiredInstanceCount", 0) for variant in self.variants)

    @property
    def by_type(self) -> Counter[str]:
        """The instances of each instance type; of a new variant, the initial number.

        An instance of any instance pool may start, so each type counts for all instances.
        """
        declared = self.config.production_variants
        types = {variant["VariantName"]: instance_types_of(variant) for variant in declared}
        counts: Counter[str] = Counter()
        for variant in self.variants:
            initial_count = variant.get("InitialInstanceCount", 0)
            count = variant.get("DesiredInstanceCount", initial_count)
            for instance_type in types.get(variant["VariantName"], ()):
                counts[instance_type] += count
        return counts


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
    fleet = _Fleet(config.production_variants, config)
    with refusing():
        fleets.launch(name)
        expect_instances(fleets, config, fleet.by_type)
        if fleets.api.behaviour.looks_up_alarms_at_create:
            fleets.expect_alarms(deployment, fleets.roles_of(fleets.models_of(name)))


def _update(fleets: Fleets, components: InferenceComponents, call: Call) -> Mapping[str, Any]:
    """Answer UpdateEndpoint; the new instances must be able to start beside the old ones."""
    store = fleets.api.backend("sagemaker")
    endpoint = store.endpoints.get(call.members["EndpointName"])
    config = store.endpoint_configs.get(call.members["EndpointConfigName"])
    _expect_found(call.members, endpoint, config)

    name = endpoint.endpoint_name
    old = store.endpoint_configs[endpoint.endpoint_config_name]
    _refuse_scaled_variants(fleets, name, old.production_variants, config.production_variants)
    components.expect_unaffected(name, old.production_variants, config.production_variants)

    old_name = old.endpoint_config_name
    new_name = config.endpoint_config_name
    deployment = call.members.get("DeploymentConfig", {})
    with refusing():
        fleets.expect_alarms(deployment, fleets.roles_of(fleets.models_of(new_name)))
        fleets.update(name, old_name, new_name)

    variants = _next_variants(endpoint, config, call.members)
    outcome = _outcome(fleets, name)
    # After a failed update, the return to the old configuration succeeds.
    if old_name != new_name:
        old_fleet = _Fleet(endpoint.production_variants, old)
        _start_beside(fleets, name, deployment, old_fleet, _Fleet(variants, config))
        if outcome == "fails":
            raise ValidationError(message=f"Update of endpoint {name} was rolled back")

    if outcome == "succeeds":
        endpoint.production_variants = variants
        endpoint.endpoint_config_name = new_name
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
    with refusing():
        expect_instances(fleets, new.config, Counter(peak.by_type) - old.by_type)


def _outcome(fleets: Fleets, name: str) -> str:
    """How an update of an endpoint ends, which the behaviour of the account may say."""
    behaviour = fleets.api.behaviour
    if behaviour.updated_endpoints and name not in behaviour.updated_endpoints:
        return "succeeds"
    return behaviour.endpoint_update


def _expect_found(wanted: Mapping[str, Any], endpoint: Any, config: Any) -> None:
    """Raise SageMaker's error if an update names an endpoint or a configuration that is absent."""
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
        exclusions = wanted.get("ExcludeRetainedVariantProperties", [])
        excluded = {exclusion["VariantPropertyType"] for exclusion in exclusions}
        _retain(endpoint.production_variants, variants, excluded)
    return variants


def _peak(deployment: Mapping[str, Any], old: _Fleet, new: _Fleet) -> Peak:
    """The instances while both fleets run: a batch more in a rolling update, or a second fleet."""
    size = deployment.get("RollingUpdatePolicy", {}).get("MaximumBatchSize")
    added = new.total if size is None else _batch(size, old.total)

    before = old.by_type
    after = new.by_type
    by_type = {}
    for instance_type in sorted(before.keys() | after.keys()):
        started = min(added, after[instance_type])
        by_type[instance_type] = max(after[instance_type], before[instance_type] + started)
    return Peak(old.total + added, by_type)


def _batch(size: Mapping[str, Any], count: int) -> int:
    """The instances of one batch of a rolling update: a number, or a share of those that run."""
    if size["Type"] == "CAPACITY_PERCENT":
        return math.ceil(count * int(size["Value"]) / 100)
    return int(size["Value"])


def _delete(fleets: Fleets, call: Call) -> Mapping[str, Any]:
    """Answer DeleteEndpoint; its log group ends with it."""
    name = call.members["EndpointName"]
    models: list[str] = []
    for endpoint, config in fleets.running():
        if endpoint == name:
            models += fleets.models_of(config)
    fleets.end_logs(f"/aws/sagemaker/Endpoints/{name}", models)
    return call.simulated()


def _delete_unused(
    what: str, member: str, users_of: Callable[[str], list[str]], call: Call
) -> Mapping[str, Any]:
    """Answer a deletion of what ``member`` names, which no endpoint may use."""
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
    old_variants = {variant["VariantName"]: variant for variant in before}
    for wanted in _RETAINED - excluded:
        current = wanted.replace("Desired", "Current")
        for variant in after:
            old = old_variants.get(variant["VariantName"], {})
            for member in (wanted, current):
                if member in old:
                    variant[member] = old[member]


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
    networks = [fleets.kept_members(config_name).get("VpcConfig")]
    for name in fleets.models_of(config_name):
        networks.append(fleets.model(name).vpc_config)
    for network in networks:
        if network:
            yield network.get("Subnets", [])
            yield network.get("SecurityGroupIds", [])
