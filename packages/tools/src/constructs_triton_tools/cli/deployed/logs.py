"""``constructs-triton logs``: print the logs of an endpoint's containers."""

from __future__ import annotations

import argparse
from datetime import timedelta
from typing import Annotated, TypedDict

from constructs_triton_core.aws_reader import AwsError
from constructs_triton_core.declared_values import Value
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.untrusted.terminal import print_lines, print_note
from constructs_triton_tools.cli.options import (
    add_aws_arguments,
    add_options,
    chosen,
    open_session,
    parse_duration,
)
from constructs_triton_tools.operations.cloudwatch_logs import moment, read_logs


class _Logs(TypedDict, total=False):
    variant: Annotated[str, Value("only this variant", metavar="NAME")]
    inference_component: Annotated[
        str, Value("the log of this inference component of the endpoint", metavar="NAME")
    ]
    follow: Annotated[bool, Value("wait for new lines; Ctrl-C ends the command", default=False)]
    since: Annotated[
        timedelta,
        Value(
            "how far back to start, such as 90s, 15m, 1h or 2d",
            default_text="1h",
            metavar="TIME",
            read=parse_duration,
        ),
    ]
    errors_only: Annotated[
        bool,
        Value(
            "leave out information, warnings, "
            "and errors that Triton writes although nothing failed",
            default=False,
            flag="--errors",
        ),
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = "Print the logs of an endpoint's containers from CloudWatch Logs."
    add_aws_arguments(parser)
    add_options(parser, _Logs)


def run(arguments: argparse.Namespace) -> int:
    """Print the lines."""
    has_lines = False
    try:
        for line in read_logs(
            open_session(arguments), arguments.endpoint, **chosen(arguments, _Logs)
        ):
            print_lines(f"{moment(line.time)} {line.stream} {line.text}")
            has_lines = True
    except AwsError as error:
        if not error.code:
            raise
        component = arguments.inference_component
        advice = (
            "; an endpoint with inference components has a log for each, see --inference-component"
        )
        what = f"inference component {component}" if component else f"endpoint {arguments.endpoint}"
        why = f". Without a container that started there is no log{'' if component else advice}"
        raise InvalidValueError(f"{what}: {error}{why if error.is_absent else ''}") from None
    if not has_lines:
        print_note("no lines in this time; go back further with --since, such as --since 1d")
    return 0
