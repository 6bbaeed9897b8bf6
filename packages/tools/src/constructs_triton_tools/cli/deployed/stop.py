"""``constructs-triton stop``: delete a real-time endpoint, and keep what creates it again."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Annotated, TypedDict

from constructs_triton_core.declared_values import Value
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.program.argument_types import add_common
from constructs_triton_core.program.exit_codes import EXIT_SUCCESS
from constructs_triton_core.untrusted.terminal import print_note
from constructs_triton_tools.cli.next_command import recommend
from constructs_triton_tools.cli.options import (
    add_aws_arguments,
    add_options,
    confirm,
    open_session,
    parse_duration,
    show,
)
from constructs_triton_tools.operations.stopping.aws_calls import AwsCalls
from constructs_triton_tools.operations.stopping.saved_endpoint import STOPPED, SavedEndpoint
from constructs_triton_tools.operations.stopping.stop import prepare_stop, stop_endpoint


class _File(TypedDict, total=False):
    file: Annotated[Path, Value("file of the endpoint", default_text="ENDPOINT.stopped.json")]
    timeout: Annotated[
        timedelta,
        Value(
            "longest time to wait for the endpoint, such as 30m",
            default=timedelta(hours=1),
            default_text="1h",
            metavar="TIME",
            read=parse_duration,
        ),
    ]


class _Force(TypedDict, total=False):
    force: Annotated[
        bool,
        Value(
            "also an endpoint of a CloudFormation stack: "
            "updates that need it fail until it is started",
            default=False,
        ),
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "Delete a real-time endpoint of no stack and its scaling, so that its instances cost "
        "nothing, and keep in a file what `constructs-triton start` needs to create both again. "
        "Models, configuration, alarms and dashboards stay; an endpoint of a stack has off_switch "
        "instead. After a failure, run the same command again. "
        "The exit code is 0 only if the endpoint is stopped."
    )
    add_file_arguments(parser)
    add_options(parser, _Force)


def add_file_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the endpoint, the file, the timeout and the form of the output."""
    add_aws_arguments(parser)
    add_options(parser, _File)
    add_common(parser, "--yes", "--json")


def file_of(arguments: argparse.Namespace) -> Path:
    """Return the file of the endpoint."""
    return arguments.file or Path(f"{arguments.endpoint}.stopped.json")


def run(arguments: argparse.Namespace) -> int:
    """Stop the endpoint, if the user confirms it."""
    path = file_of(arguments)
    aws = AwsCalls(open_session(arguments), arguments.timeout)
    saved = prepare_stop(aws, arguments.endpoint, path, force=arguments.force)
    if saved.phase == STOPPED:
        _print(
            arguments, f"endpoint {saved.name} is already stopped; {path} has what creates it again"
        )
        return EXIT_SUCCESS
    if not arguments.yes:
        print_note(*_plan(saved))
    confirm(arguments, lambda: f"Delete endpoint {saved.name} and its scaling?")
    try:
        stop_endpoint(aws, saved, path)
    except InvalidValueError as error:
        raise InvalidValueError(
            f"{error}. {path} has what was deleted: run the command again, or undo it with "
            f"`constructs-triton start {saved.name} --file {path}`"
        ) from None
    _print(
        arguments, f"endpoint {saved.name} is stopped; {path} has what creates it again, so keep it"
    )
    recommend(f"start {saved.name} --file {shlex.quote(str(path))}")
    return EXIT_SUCCESS


def _plan(saved: SavedEndpoint) -> Iterator[str]:
    yield (
        f"deletes endpoint {saved.name} (configuration "
        f"{saved.endpoint_config}); callers get an error"
    )
    for target in saved.scalable_targets:
        yield (
            f"deletes scaling of {target['ResourceId']}: {target['MinCapacity']} to "
            f"{target['MaxCapacity']}"
        )
    yield from (
        f"deletes scaling policy {policy['PolicyName']}" for policy in saved.scaling_policies
    )
    yield from (
        f"deletes scheduled action {action['ScheduledActionName']}"
        for action in saved.scheduled_actions
    )
    for alarm in sorted(set().union(*saved.step_policy_alarms.values())):
        yield (
            f"alarm {alarm} calls a step scaling policy, which may have another ARN after the start"
        )


def _print(arguments: argparse.Namespace, line: str) -> None:
    document = {"endpoint": arguments.endpoint, "file": str(file_of(arguments)), "phase": STOPPED}
    show(arguments, document, line)
