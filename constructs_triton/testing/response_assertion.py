"""Asserts that an endpoint answers recorded requests as expected."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from constructs_triton.testing.argument_types import check_name
from constructs_triton_core.errors import InvalidValueError

if TYPE_CHECKING:
    from constructs_triton_client.recorded_requests import RecordedRequests
    from constructs_triton_client.triton_client import TritonClient


def assert_responses(
    client: TritonClient,
    recorded: RecordedRequests | Path | str,
    *,
    target_model: str | None = None,
    concurrency: int = 1,
) -> None:
    """Send recorded requests and check that each output is equal within its tolerances.

    Args:
        client: a client of an endpoint on this machine or in AWS, or of an ``InMemoryTransport``.
        recorded: the requests, or the path of a file of ``constructs-triton invoke --record``. Each
            output has its own ``absolute_tolerance`` and ``relative_tolerance``.
        target_model: the model of requests that name none, on a multi-model endpoint (default: the
            client's).
        concurrency: requests that are sent together after each was sent alone, 1 to 256, so that
            dynamic batching puts them into batches (default: each is only sent alone).

    Raises:
        AssertionError: a response differs, or the endpoint returned an error. The message has a
            line for each difference.
        InvalidValueError: the file cannot be read, a request in it is malformed, or an argument has
            the wrong type.
    """
    from constructs_triton_client.recorded_requests import RecordedRequests
    from constructs_triton_client.triton_client import TritonClient
    from constructs_triton_tools.operations.verification import verify_requests

    __tracebackhide__ = True  # pytest shows the line of the test
    check_name("target_model", target_model, "resnet")
    if not isinstance(client, TritonClient):
        raise InvalidValueError(
            f"client: must be a TritonClient, got {_name_of(client)}; write "
            'TritonClient.for_endpoint("ENDPOINT"), or use the fixture triton_client'
        )
    if not isinstance(recorded, RecordedRequests | Path | str):
        raise InvalidValueError(
            f"recorded: must be recorded requests or the path of a file, got {_name_of(recorded)}; "
            "write RecordedRequests([...]), or the path of `constructs-triton invoke --record`"
        )
    if not isinstance(recorded, RecordedRequests):
        recorded = RecordedRequests.from_file(recorded)

    results = verify_requests(
        recorded,
        client.transport,
        target_model_of=client.archive_of,
        target_model=target_model or client.target_model,
        concurrency=concurrency,
    )
    wrong = [result for result in results if result.differences]
    if not wrong:
        return

    lines = [f"{len(wrong)} of {len(results)} responses differ"]
    for result in wrong:
        lines += [f"  {result.name}: {difference}" for difference in result.differences]
    raise AssertionError("\n".join(lines))


def _name_of(value: object) -> str:
    return "None" if value is None else f"a {type(value).__name__}"
