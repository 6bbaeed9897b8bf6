"""Sends recorded requests to an endpoint and compares its responses."""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from constructs_triton.custom_resource_handlers.verification.comparison import differences
from constructs_triton.errors import InvocationError
from constructs_triton_client.recorded_requests import RecordedRequest, RecordedRequests
from constructs_triton_client.transports.transport import Invocation, Transport
from constructs_triton_client.waking import when_awake

__all__ = ["VerifiedRequest", "verify_requests"]


@dataclass(frozen=True, slots=True)
class VerifiedRequest:
    """A request that was sent.

    Args:
        name: Name of the recorded request.
        differences: A sentence for each difference, or for the error; empty if the response is as recorded.
        error: The error, if there is no response.
    """

    name: str
    differences: tuple[str, ...]
    error: InvocationError | None = None


def verify_requests(
    recorded: RecordedRequests,
    transport: Transport,
    *,
    target_model_of: Callable[[str], str] = lambda name: name,
    target_model: str | None = None,
    target_variant: str | None = None,
    inference_component: str | None = None,
    wake_timeout: float = 0,
) -> list[VerifiedRequest]:
    """Send every request once and return how each response differs from the expected outputs.

    Args:
        recorded: The requests with their expected outputs.
        transport: Transport of the endpoint.
        target_model_of: Returns the archive of a model's name. Default: the name itself.
        target_model: Model of requests that name none. Default: no ``TargetModel`` is sent.
        target_variant: Variant that answers all requests. Default: SageMaker chooses a variant by the
            weights.
        inference_component: Component that answers all requests, on an endpoint that has components.
        wake_timeout: Seconds to wait until the component has a copy.
    """
    results = []
    for request in recorded.requests:
        name = request.target_model or target_model
        options = {} if name is None else {"TargetModel": target_model_of(name)}
        if inference_component is not None:
            options = {"InferenceComponentName": inference_component}
        if target_variant is not None:
            options["TargetVariant"] = target_variant
        results.append(_verified(request, transport, options, wake_timeout))
    return results


def _verified(
    request: RecordedRequest, transport: Transport, options: dict[str, Any], wake_timeout: float
) -> VerifiedRequest:
    compiled = request.compile()
    invocation = Invocation(base64.b64decode(compiled["body"]), compiled["content_type"], options)
    try:
        reply = when_awake(lambda: transport.invoke(invocation), wake_timeout)
    except InvocationError as error:
        return VerifiedRequest(request.name, (str(error),), error)
    found = differences(reply.body, reply.content_type, compiled["expected"])
    return VerifiedRequest(request.name, tuple(found))
