"""Reads the variants of an endpoint and their instance types."""

from __future__ import annotations

from typing import Any

from .retries import make_client
from .scaling import call

__all__ = ["running_variants", "variants_of"]


def running_variants(endpoint_name: str) -> list[tuple[str, str | None]]:
    """Names and instance types of the variants, including those of an update in progress."""
    sagemaker = make_client("sagemaker")
    endpoint = call(sagemaker.describe_endpoint, EndpointName=endpoint_name)
    pending = endpoint.get("PendingDeploymentSummary") or {}
    names = {endpoint["EndpointConfigName"], pending.get("EndpointConfigName")} - {None}
    variants: list[tuple[str, str | None]] = []
    for name in sorted(names):
        config = call(sagemaker.describe_endpoint_config, EndpointConfigName=name)
        variants += variants_of(config)
    return variants


def variants_of(config: dict[str, Any]) -> list[tuple[str, str | None]]:
    """Names and instance types of the variants of an endpoint configuration, shadow variants included."""
    listed = [*config["ProductionVariants"], *config.get("ShadowProductionVariants", [])]
    return [(each["VariantName"], _instance_types(each)) for each in listed]


def _instance_types(variant: dict[str, Any]) -> str | None:
    """The instance type, or those of all pools in order of priority, as the template writes them."""
    pools = sorted(variant.get("InstancePools") or (), key=lambda pool: int(pool["Priority"]))
    names = [pool["InstanceType"] for pool in pools]
    return ",".join(names) if names else variant.get("InstanceType")
