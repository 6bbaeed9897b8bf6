"""Sends recorded requests to an endpoint and compares its responses."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from constructs_triton.client.recorded_requests import RecordedRequest, RecordedRequests
from constructs_triton.client.transport import Invocation, Transport
from constructs_triton.custom_resource_handlers.verification.comparison import differences
from constructs_triton.errors import InvocationError

__all__ = ["VerifiedRequest", "verify_requests"]


@dataclass(frozen=True, slots=True)
class VerifiedRequest:
    """A request that was sent. ``differences`` has a sentence for each difference, or for the error."""

    name: str
    differences: tuple[str, ...]


def verify_requests(
    recorded: RecordedRequests,
    transport: Transport,
    *,
    target_model_of: Callable[[str], str] = lambda name: name,
    target_model: str | None = None,
) -> list[VerifiedRequest]:
    """Send every request once and return how each response differs from the expected outputs.

    ``target_model_of`` returns the archive of a model's name. ``target_model`` is used for requests that name
    no model.
    """
    results = []
    for request in recorded.requests:
        name = request.target_model or target_model
        options = {} if name is None else {"TargetModel": target_model_of(name)}
        results.append(VerifiedRequest(request.name, tuple(_differences(request, transport, options))))
    return results


def _differences(request: RecordedRequest, transport: Transport, options: dict[str, Any]) -> list[str]:
    compiled = request.compile()
    body = base64.b64decode(compiled["body"])
    try:
        reply = transport.invoke(Invocation(body, compiled["content_type"], options))
    except InvocationError as error:
        return [str(error)]
    return differences(reply.body, reply.content_type, compiled["expected"])
