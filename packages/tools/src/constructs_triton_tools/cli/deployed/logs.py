"""``constructs-triton logs``: print the logs of an endpoint's containers."""

from __future__ import annotations

import argparse
from datetime import timedelta

from constructs_triton_core.aws.aws_reader import AwsError
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.untrusted.terminal import print_lines
from constructs_triton_tools.cli.deployed.aws_arguments import add_aws_arguments, open_session, parse_duration
from constructs_triton_tools.operations.cloudwatch_logs import read_logs


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = "Print the logs of an endpoint's containers from CloudWatch Logs."
    add_aws_arguments(parser)
    parser.add_argument("--variant", metavar="NAME", help="only this variant")
    parser.add_argument(
        "--inference-component", metavar="NAME", help="the log of this inference component of the endpoint"
    )
    parser.add_argument("--follow", action="store_true", help="wait for new lines; Ctrl-C ends the command")
    parser.add_argument(
        "--since",
        type=parse_duration,
        default=timedelta(hours=1),
        metavar="TIME",
        help="how far back to start, such as 90s, 15m, 1h or 2d (default: 1h)",
    )
    parser.add_argument(
        "--errors",
        action="store_true",
        help="leave out information, warnings, and errors that Triton writes although nothing failed",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the lines."""
    try:
        for line in read_logs(
            open_session(arguments),
            arguments.endpoint,
            variant=arguments.variant,
            inference_component=arguments.inference_component,
            since=arguments.since,
            errors_only=arguments.errors,
            follow=arguments.follow,
        ):
            print_lines(f"{line.time:%Y-%m-%d %H:%M:%S} {line.stream} {line.text}")
    except AwsError as error:
        if not error.code:
            raise
        component = arguments.inference_component
        advice = "; an endpoint with inference components has a log for each, see --inference-component"
        what = f"inference component {component}" if component else f"endpoint {arguments.endpoint}"
        why = f". Without a container that started there is no log{'' if component else advice}"
        raise InvalidValueError(f"{what}: {error}{why if error.is_absent else ''}") from None
    return 0
