"""Handles one request of CloudFormation and sends the response that CloudFormation waits for.

Source: CloudFormation user guide, "Custom resource request and response reference".
"""

from __future__ import annotations

import json
import logging
import time
import urllib.request
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

LOGGER = logging.getLogger(__name__)

RESPONSE_ATTEMPTS = 4
_REASON_CHARACTERS = 2_000  # CloudFormation rejects a response above 4,096 bytes
_FAILED_CREATE = "-failed"

Event = Mapping[str, Any]
"""A request of CloudFormation."""


class CustomResourceError(Exception):
    """Fails the deployment; CloudFormation shows the message to the person who deploys."""


@dataclass(frozen=True)
class Response:
    """The physical id of the resource, and its attributes for ``Fn::GetAtt``."""

    physical_id: str
    data: Mapping[str, Any] = field(default_factory=dict)


def handle_request(
    event: Event, context: Any, handle: Callable[[Event, str], Response | None]
) -> None:
    """Call ``handle`` with the request and its physical id, and send the response or the failure's
    reason.

    When ``handle`` returns ``None``, nothing is sent: a later run of the function sends the
    response.

    Raises:
        CustomResourceError: CloudFormation did not accept the response in four attempts.
    """
    logging.getLogger(__package__).setLevel(logging.INFO)
    physical_id = event.get("PhysicalResourceId") or event["LogicalResourceId"] + _FAILED_CREATE
    try:
        response = handle(event, physical_id)
    except Exception as error:
        LOGGER.exception("request %s failed", event.get("RequestId"))
        _send(event, "FAILED", Response(physical_id), _reason(error, context))
    else:
        if response is not None:
            _send(event, "SUCCESS", response)


def is_failed_create(physical_id: str) -> bool:
    """Whether a failed create left this id: its resource does not exist."""
    return physical_id.endswith(_FAILED_CREATE)


def _reason(error: Exception, context: Any) -> str:
    text = (
        str(error) if isinstance(error, CustomResourceError) else f"{type(error).__name__}: {error}"
    )
    text = text.encode("ascii", "replace").decode()
    return (
        f"{text[:_REASON_CHARACTERS]} (log stream {getattr(context, 'log_stream_name', 'unknown')})"
    )


def _send(event: Event, status: str, response: Response, reason: str = "") -> None:
    body = {
        "Status": status,
        "Reason": reason,
        "PhysicalResourceId": response.physical_id,
        "StackId": event["StackId"],
        "RequestId": event["RequestId"],
        "LogicalResourceId": event["LogicalResourceId"],
        "Data": dict(response.data),
    }
    encoded = json.dumps(body).encode()
    for attempt in range(RESPONSE_ATTEMPTS):
        try:
            _put(event["ResponseURL"], encoded)
            return
        except OSError:
            LOGGER.exception(
                "attempt %d of %d to send the response failed", attempt + 1, RESPONSE_ATTEMPTS
            )
            time.sleep(attempt)
    raise CustomResourceError("the response could not be sent to CloudFormation")


def _put(url: str, body: bytes) -> None:
    # The pre-signed URL is signed for an empty content type.
    request = urllib.request.Request(url, data=body, method="PUT", headers={"Content-Type": ""})
    with urllib.request.urlopen(request, timeout=10) as response:
        response.read()
