"""The instance types of variants: what SageMaker refuses, can start, and reports while they run.

The errors of instances that cannot start are those that users reported: the known failures
``insufficient-capacity`` and ``quota-instances``. Only a vendor's guide says that each type needs
its quota.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from constructs_triton_core.cloud_assembly.endpoints import instance_types_of

from ..behaviour import Behaviour
from ..moto_account.refusals import ResourceLimitError, ValidationError
from ..steps import Step
from .fleets import Fleets

_MOST = 5


def check_pools(variants: list[Mapping[str, Any]]) -> None:
    """Check the pools of ``CreateEndpointConfig``.

    Source: SageMaker developer guide, "Deploy to multiple instance types with instance pools". What
    SageMaker does with equal priorities or the same type twice is not known, so both are refused.
    """
    for variant in variants:
        pools = variant.get("InstancePools")
        if pools is None:
            continue
        if "InstanceType" in variant or "ServerlessConfig" in variant:
            raise ValidationError("InstancePools cannot be set together with InstanceType.")
        if not 1 <= len(pools) <= _MOST:
            raise ValidationError(f"InstancePools must have 1 to {_MOST} members.")
        for member in ("InstanceType", "Priority"):
            if len({pool[member] for pool in pools}) < len(pools):
                raise ValidationError(f"Each {member} of InstancePools must be unique.")


def variants_with_pools(config: Any, described: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the variants of DescribeEndpoint with the number of instances of each type.

    The simulated account has capacity for the first of them. ``config`` is ``None`` if it is
    deleted.
    """
    declared = {}
    if config is not None:
        declared = {variant["VariantName"]: variant for variant in config.production_variants}

    variants: list[Mapping[str, Any]] = []
    for running in described["ProductionVariants"]:
        summary = _summary(running, declared.get(running["VariantName"], {}))
        variants.append({**running, **summary})
    return variants


def _summary(running: Mapping[str, Any], declared: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the instances of each pool of a variant, as DescribeEndpoint shows them."""
    if "InstancePools" not in declared:
        return {}

    count = running.get("CurrentInstanceCount", 0)  # all are of the first type
    pools = []
    for instance_type in instance_types_of(declared):
        pools.append({"InstanceType": instance_type, "CurrentInstanceCount": count})
        count = 0
    return {"InstancePools": pools}


def has_capacity(behaviour: Behaviour, variant: Mapping[str, Any]) -> bool:
    """Return whether an instance of a variant can start."""
    types = instance_types_of(variant)
    if not types:
        return True
    return not set(types).issubset(behaviour.without_capacity)


def expect_instances(fleets: Fleets, config: Any, added: Mapping[str, int]) -> None:
    """Raise SageMaker's error if instances of a configuration cannot start beside those that run.

    ``added`` has the instances that start, by type; an instance of any pool may start, so each type
    has all.
    """
    _expect_quotas(fleets, added)
    for variant in config.production_variants:
        starts = any(added.get(instance_type) for instance_type in instance_types_of(variant))
        if starts and not has_capacity(fleets.api.behaviour, variant):
            raise PermissionError(
                "Unable to provision requested ML compute capacity "
                "due to InsufficientInstanceCapacity error."
            )


def _expect_quotas(fleets: Fleets, added: Mapping[str, int]) -> None:
    """Raise SageMaker's error if more instances of a type would run than its quota allows."""
    present: Counter[str] = Counter()
    for size in fleets.sizes(Step("start", "now")):
        present.update(dict.fromkeys(size.instance_type.split(", "), size.count))

    for instance_type, limit in fleets.api.behaviour.quotas.items():
        running = present[instance_type]
        more = added.get(instance_type, 0)
        if more and running + more > limit:
            raise ResourceLimitError(
                f"The account-level service limit '{instance_type} for endpoint usage' is {limit} "
                f"Instances, with current utilization of {running} Instances and a request "
                f"delta of {more} Instances."
            )
