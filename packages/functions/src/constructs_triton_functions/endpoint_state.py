"""Whether an endpoint runs the configuration that a deployment wants."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["SETTLE_READS", "is_changing", "not_kept", "runs"]

SETTLE_READS = 3
"""So often a result other than the expected one is read before it counts."""


def is_changing(endpoint: Mapping[str, Any]) -> bool:
    """Whether SageMaker creates or updates the endpoint now."""
    return endpoint["EndpointStatus"] in ("Creating", "Updating", "SystemUpdating", "RollingBack")


def runs(endpoint: Mapping[str, Any], config: str) -> bool:
    """Whether the endpoint is in service with a configuration."""
    return (endpoint["EndpointStatus"], endpoint["EndpointConfigName"]) == ("InService", config)


def not_kept(endpoint: Mapping[str, Any], config: str) -> str:
    """The end of the message about an endpoint that does not run the configuration of its update."""
    running, status = endpoint["EndpointConfigName"], endpoint["EndpointStatus"]
    cause = f" SageMaker's reason: {endpoint['FailureReason']}." if endpoint.get("FailureReason") else ""
    return (
        f"must be in service with endpoint configuration {config}, got {running} ({status}); SageMaker did "
        f"not keep the update.{cause} Look at the rollback alarms and at the log group "
        f"/aws/sagemaker/Endpoints/{endpoint['EndpointName']}, then deploy again"
    )
