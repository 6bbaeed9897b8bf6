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
            if len({each[member] for each in pools}) < len(pools):
                raise ValidationError(f"Each {member} of InstancePools must be unique.")


def variants_with_pools(config: Any, described: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the variants of DescribeEndpoint with the number of instances of each type.

    The simulated account has capacity for the first of them. ``config`` is ``None`` if it is
    deleted.
    """
    declared = {each["VariantName"]: each for each in config.production_variants} if config else {}
    return [
        {**each, **_summary(each, declared.get(each["VariantName"], {}))}
        for each in described["ProductionVariants"]
    ]


def _summary(running: Mapping[str, Any], declared: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the instances of each pool of a variant, as DescribeEndpoint shows them."""
    if "InstancePools" not in declared:
        return {}
    first, *others = instance_types_of(declared)
    counts = {first: running.get("CurrentInstanceCount", 0), **dict.fromkeys(others, 0)}
    pools = [
        {"InstanceType": name, "CurrentInstanceCount": count} for name, count in counts.items()
    ]
    return {"InstancePools": pools}


def has_capacity(behaviour: Behaviour, variant: Mapping[str, Any]) -> bool:
    """Return whether an instance of a variant can start."""
    types = instance_types_of(variant)
    return not types or not set(types) <= set(behaviour.without_capacity)


def expect_instances(fleets: Fleets, config: Any, added: Mapping[str, int]) -> None:
    """Raise SageMaker's error if instances of a configuration cannot start beside those that run.

    ``added`` has the instances that start, by type; an instance of any pool may start, so each type
    has all.
    """
    behaviour, present = fleets.api.behaviour, Counter[str]()
    for each in fleets.sizes(Step("start", "now")):
        present.update(dict.fromkeys(each.instance_type.split(", "), each.count))
    for kind, limit in behaviour.quotas.items():
        if added.get(kind) and present[kind] + added[kind] > limit:
            raise ResourceLimitError(
                f"The account-level service limit '{kind} for endpoint usage' is {limit} "
                f"Instances, with current utilization of {present[kind]} Instances and a request "
                f"delta of {added[kind]} Instances."
            )
    variants = [
        each for each in config.production_variants if any(map(added.get, instance_types_of(each)))
    ]
    if not all(has_capacity(behaviour, each) for each in variants):
        raise PermissionError(
            "Unable to provision requested ML compute capacity "
            "due to InsufficientInstanceCapacity error."
        )
