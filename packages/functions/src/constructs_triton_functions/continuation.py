"""Continues a request in another run, for work that takes longer than a Lambda function may run."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from . import FUNCTION_TIMEOUT_SECONDS, SERVICE_TIMEOUT_SECONDS
from .response import CustomResourceError, Event
from .retries import make_client


def continue_in_another_run(
    event: Event, context: Any, state: Mapping[str, Any], started_at: float, reason: str
) -> None:
    """Invoke the function again with ``state``, which is the event's ``Continuation`` then.

    Raises:
        CustomResourceError: that run might end after CloudFormation's limit; ``reason`` is the
            message.
    """
    if time.time() - started_at + FUNCTION_TIMEOUT_SECONDS >= SERVICE_TIMEOUT_SECONDS:
        raise CustomResourceError(reason)
    make_client("lambda").invoke(
        FunctionName=context.invoked_function_arn,
        InvocationType="Event",
        Payload=json.dumps({**event, "Continuation": dict(state)}).encode(),
    )
