"""Whether an endpoint runs the configuration that a deployment wants, and its variants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .retries import make_client
from .scaling import call

SETTLE_READS = 3
"""So often a result other than the expected one is read before it counts."""


def is_changing(endpoint: Mapping[str, Any]) -> bool:
    """Whether SageMaker creates or updates the endpoint now."""
    return endpoint["EndpointStatus"] in ("Creating", "Updating", "SystemUpdating", "RollingBack")


def runs(endpoint: Mapping[str, Any], config: str) -> bool:
    """Whether the endpoint is in service with a configuration."""
    return (endpoint["EndpointStatus"], endpoint["EndpointConfigName"]) == ("InService", config)


def not_kept(endpoint: Mapping[str, Any], config: str) -> str:
    """The end of the message about an endpoint that does not run the
    configuration of its update.
    """
    running, status = endpoint["EndpointConfigName"], endpoint["EndpointStatus"]
    cause = (
        f" SageMaker's reason: {endpoint['FailureReason']}."
        if endpoint.get("FailureReason")
        else ""
    )
    return (
        f"must be in service with endpoint configuration {config}, got {running} ({status}); "
        f"SageMaker did not keep the update.{cause} Look at the rollback alarms and at the log "
        f"group /aws/sagemaker/Endpoints/{endpoint['EndpointName']}, then deploy again"
    )


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
    """Names and instance types of the variants of an endpoint configuration,
    shadow variants included.
    """
    listed = [*config["ProductionVariants"], *config.get("ShadowProductionVariants", [])]
    return [(each["VariantName"], _instance_types(each)) for each in listed]


def _instance_types(variant: dict[str, Any]) -> str | None:
    """The instance type, or those of all pools in order of priority,
    as the template writes them.
    """
    pools = sorted(variant.get("InstancePools") or (), key=lambda pool: int(pool["Priority"]))
    names = [pool["InstanceType"] for pool in pools]
    return ",".join(names) if names else variant.get("InstanceType")
