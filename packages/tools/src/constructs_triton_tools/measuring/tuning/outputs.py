"""Compares the outputs of a candidate with those of the present configuration.

The present configuration answers each request alone. A candidate gets all requests at once, so that
they come together in batches: a model that mixes the items of a batch then returns other outputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from constructs_triton_client import Invocation
from constructs_triton_client.recorded_requests import RecordedRequest
from constructs_triton_client.wire import decode_response
from constructs_triton_core.concurrency import map_concurrently
from constructs_triton_core.errors import InvocationError
from constructs_triton_functions.verification.comparison import differences

if TYPE_CHECKING:
    from constructs_triton_client import SageMakerTransport

#: Distinct requests that are compared.
REQUESTS = 32

Expected = list[dict[str, Any]]


def record_outputs(transport: SageMakerTransport, requests: Sequence[Invocation]) -> list[Expected]:
    """Return the outputs of each request, sent alone,
    in the form that ``compare_outputs`` expects.
    """
    return [_record(transport, request) for request in requests[:REQUESTS]]


def _record(transport: SageMakerTransport, request: Invocation) -> Expected:
    reply = transport.invoke(request)
    result = decode_response(reply.body, reply.content_type)
    expected: Expected = RecordedRequest.of("request", {}, result).compile()["expected"]
    return expected


def compare_outputs(
    transport: SageMakerTransport, requests: Sequence[Invocation], expected: Sequence[Expected]
) -> list[str]:
    """Send all requests at once and return a sentence for each response that differs."""
    chosen = requests[: len(expected)]

    def ask(number: int) -> list[str]:
        try:
            reply = transport.invoke(chosen[number])
        except InvocationError as error:
            return [str(error)]
        return differences(reply.body, reply.content_type, expected[number])

    found = map_concurrently(ask, range(len(chosen)), max_concurrency=len(chosen))
    sentences = []
    for number, texts in enumerate(found, 1):
        sentences += [f"request {number} of {len(chosen)}: {text}" for text in texts]
    return sentences
