"""Entry point of the function that checks which configuration an endpoint runs.

When an update fails, SageMaker can return the endpoint to its old configuration and report it as in
service. If CloudFormation took that for success, it would delete the old configuration, which is
then still in use. The check fails the deployment instead, so that CloudFormation rolls it back.

In a rollback CloudFormation sends an update with the old properties. It succeeds when the endpoint
runs the old configuration. The physical id never changes, and a request may be handled twice: the
check only reads.
"""

from __future__ import annotations

import time
from typing import Any

from ..endpoint_state import SETTLE_READS, is_changing, not_kept, runs
from ..response import CustomResourceError, Event, Response, handle_request
from ..retries import make_client
from ..scaling import call

_PAUSE_SECONDS = 5.0
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
    if not runs(endpoint, wanted):
        raise CustomResourceError(f"endpoint {name}: {not_kept(endpoint, wanted)}")
    return Response(event.get("PhysicalResourceId") or event["LogicalResourceId"])


def _settled(name: str, wanted: str) -> dict[str, Any]:
    """The endpoint when it runs the configuration,
    or when waiting longer would not change the result.
    """
    sagemaker = make_client("sagemaker")
    begun, reads = time.monotonic(), 0
    while True:
        endpoint: dict[str, Any] = call(sagemaker.describe_endpoint, EndpointName=name)
        reads += not is_changing(endpoint)
        is_late = time.monotonic() - begun > _LIMIT_SECONDS
        if runs(endpoint, wanted) or reads >= SETTLE_READS or is_late:
            return endpoint
        time.sleep(_PAUSE_SECONDS)
