"""Variants with several instance types: what SageMaker refuses, and what it reports while they run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from moto.sagemaker.exceptions import ValidationError

from constructs_triton_core.cloud_assembly.endpoints import instance_types_of

_MOST = 5


def check_pools(variants: list[Mapping[str, Any]]) -> None:
    """Check the pools of ``CreateEndpointConfig``.

    Sources: API reference, InstancePool; the SageMaker developer guide, heterogeneous endpoints. What it
    does with equal priorities or the same type twice is not known, so both are refused.
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


def validate_others(original: Callable[..., None], config: Any, variants: list[dict[str, Any]]) -> None:
    """Let moto check the variants without pools, which it does not know."""
    original(config, [each for each in variants if "InstancePools" not in each])


def variants_with_pools(config: Any, described: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the variants of DescribeEndpoint with the number of instances of each type.

    The simulated account has capacity for the first of them. ``config`` is ``None`` if it is deleted.
    """
    declared = {each["VariantName"]: each for each in config.production_variants} if config else {}
    return [
        {**each, **_summary(each, declared.get(each["VariantName"], {}))}
        for each in described["ProductionVariants"]
    ]


def _summary(running: Mapping[str, Any], declared: Mapping[str, Any]) -> Mapping[str, Any]:
    if "InstancePools" not in declared:
        return {}
    first, *others = instance_types_of(declared)
    counts = {first: running.get("CurrentInstanceCount", 0), **dict.fromkeys(others, 0)}
    pools = [{"InstanceType": name, "CurrentInstanceCount": count} for name, count in counts.items()]
    return {"InstancePools": pools}
