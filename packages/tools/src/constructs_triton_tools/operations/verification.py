"""Sends recorded requests to an endpoint and compares its responses."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, count, islice
from random import Random
from typing import Any

from constructs_triton_client.recorded_requests import RecordedRequest, RecordedRequests
from constructs_triton_client.transports.transport import Invocation, Transport
from constructs_triton_client.waking import when_awake
from constructs_triton_core.concurrency import map_concurrently
from constructs_triton_core.errors import InvalidValueError, InvocationError
from constructs_triton_functions.verification.comparison import differences

__all__ = ["VerifiedRequest", "verify_requests"]

#: Requests that are sent together, in multiples of the concurrency: some of them meet in the same
#: batch.
_ROUNDS = 4


@dataclass(frozen=True, slots=True)
class VerifiedRequest:
    """A request that was sent.

    Args:
        name: Name of the recorded request.
        differences: A sentence for each difference, or for the error; empty if the response is as
            recorded.
        error: The error, if there is no response.
        is_batching_fault: Whether the response is as recorded when the request is sent alone, and
            differs when it is sent together with others.
    """

    name: str
    differences: tuple[str, ...]
    error: InvocationError | None = None
    is_batching_fault: bool = False


def verify_requests(
    recorded: RecordedRequests,
    transport: Transport,
    *,
    target_model_of: Callable[[str], str] = lambda name: name,
    target_model: str | None = None,
    target_variant: str | None = None,
    inference_component: str | None = None,
    wake_timeout: float = 0,
    concurrency: int = 1,
) -> list[VerifiedRequest]:
    """Send every request and return how each response differs from the expected outputs.

    Requests are sent one after the other. With ``concurrency`` they are then sent together too,
    several times in random orders, so that dynamic batching puts them into batches. A request whose
    response differs only then shows that a model mixes the requests of a batch.

    Args:
        recorded: The requests with their expected outputs.
        transport: Transport of the endpoint.
        target_model_of: Returns the archive of a model's name. Default: the name itself.
        target_model: Model of requests that name none. Default: no ``TargetModel`` is sent.
        target_variant: Variant that answers all requests. Default: SageMaker chooses a variant by
            the weights.
        inference_component: Component that answers all requests, on an endpoint that has
            components.
        wake_timeout: Seconds to wait until the component has a copy.
        concurrency: Requests that are sent together, 1 to 256. Default: each request is only sent
            alone.

    Raises:
        InvalidValueError: ``concurrency`` is out of range, or there are not two different requests
            to send together.
    """
    _check(concurrency, recorded.requests)
    sends = [
        partial(
            _verified,
            request,
            transport,
            _options(request, target_model_of, target_model, target_variant, inference_component),
            wake_timeout,
        )
        for request in recorded.requests
    ]
    alone = [send() for send in sends]
    return alone if concurrency == 1 else _verify_together(sends, alone, concurrency)


def _check(concurrency: int, requests: Sequence[RecordedRequest]) -> None:
    if not 1 <= concurrency <= 256:
        raise InvalidValueError(f"concurrency: must be from 1 to 256, got {concurrency}; use 16")
    if concurrency > 1 and len({request.compile()["body"] for request in requests}) < 2:
        raise InvalidValueError(
            "concurrency: needs at least two different recorded requests, because equal ones hide "
            "that a model mixes them; record another one, or remove concurrency"
        )


def _options(
    request: RecordedRequest,
    target_model_of: Callable[[str], str],
    target_model: str | None,
    target_variant: str | None,
    inference_component: str | None,
) -> dict[str, Any]:
    """Return the parameters of InvokeEndpoint for a request."""
    name = request.target_model or target_model
    options = {} if name is None else {"TargetModel": target_model_of(name)}
    if inference_component is not None:
        options = {"InferenceComponentName": inference_component}
    if target_variant is not None:
        options["TargetVariant"] = target_variant
    return options


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


def _verify_together(
    sends: Sequence[Callable[[], VerifiedRequest]],
    alone: Sequence[VerifiedRequest],
    concurrency: int,
) -> list[VerifiedRequest]:
    numbers = list(_random_orders(len(sends), _ROUNDS * max(concurrency, len(sends))))
    results = map_concurrently(lambda number: sends[number](), numbers, max_concurrency=concurrency)
    faults: dict[int, VerifiedRequest] = {}
    for number, result in zip(numbers, results, strict=True):
        if result.differences and not alone[number].differences:
            texts = tuple(
                f"together with other requests: {difference}" for difference in result.differences
            )
            fault = replace(result, differences=texts, is_batching_fault=result.error is None)
            faults.setdefault(number, fault)
    return [faults.get(number, each) for number, each in enumerate(alone)]


def _random_orders(requests: int, total: int) -> Iterator[int]:
    random = Random(0)
    orders = (random.sample(range(requests), requests) for _ in count())
    return islice(chain.from_iterable(orders), total)
