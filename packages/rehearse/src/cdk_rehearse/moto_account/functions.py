"""AWS Lambda."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from moto.awslambda.models import LambdaFunction

from .differences import Difference, Replacement

_INVOKE = Difference(
    LambdaFunction,
    "invoke",
    "runs the code; moto needs a container for it, and other rooms run it in a process",
    since="5.2.0",
)
_LOG_GROUP = Difference(
    LambdaFunction,
    "__init__",
    "writes to the log group of LoggingConfig (Lambda API reference: LoggingConfig)",
    since="5.2.4",
)


def patches() -> list[Replacement]:
    """What needs nothing but moto itself."""
    return [_LOG_GROUP.wrapped_by(_keep_log_group)]


def invoked_by(
    start: Callable[[Any, Any], None], run: Callable[[Any, Any], tuple[str, bool]]
) -> Replacement:
    """Invoke functions.

    Args:
        start: Invokes a function with an event, and does not wait.
        run: Invokes a function with an event; returns its result and whether it failed.
    """

    def invoke(function: Any, body: Any, request_headers: Any, response_headers: Any) -> str:
        event = json.loads(body or "{}")
        if request_headers.get("x-amz-invocation-type") == "Event":
            start(function, event)
            return ""
        result, failed = run(function, event)
        if failed:
            response_headers["x-amz-function-error"] = "Unhandled"
        return result

    return _INVOKE.replaced_by(invoke)


def _keep_log_group(
    original: Callable[..., None],
    function: Any,
    account_id: str,
    spec: dict[str, Any],
    *rest: Any,
    **more: Any,
) -> None:
    original(function, account_id, spec, *rest, **more)
    wanted = spec.get("LoggingConfig", {})
    function.logs_group_name = wanted.get("LogGroup", function.logs_group_name)
