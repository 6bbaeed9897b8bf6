"""Entry point of the function that checks which configuration an endpoint runs.

When an update fails, SageMaker can return the endpoint to its old configuration and report it as in service.
If CloudFormation took that for success, it would delete the old configuration, which is then still in use.
The check fails the deployment instead, so that CloudFormation rolls it back.

In a rollback CloudFormation sends an update with the old properties. It succeeds when the endpoint runs the
old configuration. The physical id never changes, and a request may be handled twice: the check only reads.
"""

from __future__ import annotations

import time
from typing import Any

from botocore.exceptions import ClientError

from ..response import CustomResourceError, Event, Response, handle_request
from ..retries import call_with_retries, make_client

__all__ = ["handler"]

_CHANGING = {"Creating", "Updating", "SystemUpdating", "RollingBack"}
_PAUSE_SECONDS = 5.0
_SETTLE_READS = 3
"""So often a result other than the expected one is read before it counts."""
_LIMIT_SECONDS = 12 * 60
"""How long the check waits for an endpoint that is changing. The function's timeout is longer."""


def handler(event: Event, context: Any) -> None:
    """Handle one request of CloudFormation and send the response."""
    handle_request(event, context, _check)


def _check(event: Event, physical_id: str) -> Response:
    if event["RequestType"] == "Delete":
        return Response(physical_id)
    properties = event["ResourceProperties"]
    name, wanted = properties["EndpointName"], properties["EndpointConfigName"]
    endpoint = _settled(name, wanted)
    if not _runs(endpoint, wanted):
        raise CustomResourceError(_reason(endpoint, name, wanted))
    return Response(event.get("PhysicalResourceId") or event["LogicalResourceId"])


def _settled(name: str, wanted: str) -> dict[str, Any]:
    """The endpoint when it runs the configuration, or when waiting longer would not change the result."""
    sagemaker = make_client("sagemaker")
    begun, reads = time.monotonic(), 0
    while True:
        endpoint: dict[str, Any] = call_with_retries(
            lambda: sagemaker.describe_endpoint(EndpointName=name), _is_temporary
        )
        reads += endpoint["EndpointStatus"] not in _CHANGING
        is_late = time.monotonic() - begun > _LIMIT_SECONDS
        if _runs(endpoint, wanted) or reads >= _SETTLE_READS or is_late:
            return endpoint
        time.sleep(_PAUSE_SECONDS)


def _runs(endpoint: dict[str, Any], wanted: str) -> bool:
    return (endpoint["EndpointStatus"], endpoint["EndpointConfigName"]) == ("InService", wanted)


def _reason(endpoint: dict[str, Any], name: str, wanted: str) -> str:
    status, running = endpoint["EndpointStatus"], endpoint["EndpointConfigName"]
    cause = f" SageMaker's reason: {endpoint['FailureReason']}." if endpoint.get("FailureReason") else ""
    return (
        f"endpoint {name}: must be in service with endpoint configuration {wanted} of this deployment, "
        f"got {running} ({status}); SageMaker did not keep the update.{cause} Look at the rollback alarms "
        f"and at the log group /aws/sagemaker/Endpoints/{name}, then deploy again"
    )


def _is_temporary(error: ClientError) -> bool:
    """The stack has created the function's policy seconds ago."""
    return error.response["Error"]["Code"] in ("AccessDeniedException", "AccessDenied")
