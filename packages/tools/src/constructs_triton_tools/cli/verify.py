"""``constructs-triton verify``: compare the responses of an endpoint with recorded ones."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

from constructs_triton_core.declared_values import Value
from constructs_triton_core.program.argument_types import add_common
from constructs_triton_core.program.exit_codes import EXIT_WRONG, combined_code, exit_code_of
from constructs_triton_tools.cli.flags import add_concurrency
from constructs_triton_tools.cli.invoke import connect
from constructs_triton_tools.cli.options import (
    add_called_endpoint,
    add_connection,
    add_options,
    show,
)

if TYPE_CHECKING:
    from constructs_triton_tools.operations.verification import VerifiedRequest


class _Target(TypedDict, total=False):
    target_model: Annotated[
        str, Value("model, or its archive, for requests that do not name one", metavar="MODEL")
    ]
    target_variant: Annotated[
        str,
        Value(
            "variant that answers",
            default_text="SageMaker chooses one by the weights",
            metavar="NAME",
        ),
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "Send recorded requests to an endpoint and compare its responses with the recorded "
        "outputs, within the tolerances of the file. Exit code 1 if a response differs, 2 if the "
        "endpoint cannot be reached. `constructs-triton invoke --record` records requests."
    )
    add_called_endpoint(parser)
    parser.add_argument(
        "file", type=Path, metavar="FILE", help="recorded requests, such as requests.json"
    )
    add_options(parser, _Target)
    add_concurrency(parser)
    add_connection(parser)
    add_common(parser, "--json")


def run(arguments: argparse.Namespace) -> int:
    """Send the requests and print the differences; return 1 if there are any, else 0."""
    from constructs_triton_client.recorded_requests import RecordedRequests
    from constructs_triton_tools.operations.verification import verify_requests

    recorded = RecordedRequests.from_file(arguments.file)
    client = connect(arguments)
    results = verify_requests(
        recorded,
        client.transport,
        target_model_of=client.archive_of,
        target_model=arguments.target_model,
        target_variant=arguments.target_variant,
        inference_component=arguments.inference_component,
        wake_timeout=arguments.wake_timeout,
        concurrency=arguments.concurrency,
    )
    show(
        arguments,
        {result.name: list(result.differences) for result in results},
        *result_lines(results),
    )
    return code_of_results(results)


def code_of_results(results: Iterable[VerifiedRequest]) -> int:
    """Return the exit code: 1 if a response differs or is an error,
    2 if the endpoint cannot be reached.
    """
    return combined_code(
        EXIT_WRONG if result.error is None else exit_code_of(result.error)
        for result in results
        if result.differences
    )


def result_lines(results: Sequence[VerifiedRequest]) -> list[str]:
    """Return a line for each request, and one for each difference."""
    lines = []
    for result in results:
        lines.append(f"{result.name}: {'differs' if result.differences else 'equal'}")
        lines += [f"  {difference}" for difference in result.differences]
    wrong = sum(1 for result in results if result.differences)
    lines.append(f"{wrong} of {len(results)} responses differ")
    if any(result.is_batching_fault for result in results):
        lines.append(
            "a model mixes the requests of a batch: its responses are as recorded for requests "
            "that are sent alone; compute each row from its own row only, "
            "or set max_batch_size to 0"
        )
    return lines
