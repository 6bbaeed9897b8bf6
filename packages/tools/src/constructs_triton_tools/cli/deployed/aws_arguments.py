"""The arguments of commands that read deployed endpoints."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, TypeVar

from constructs_triton_core.aws.aws_reader import make_session
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.program.argument_types import add_common
from constructs_triton_tools.operations.stack_endpoints import endpoints_of_stack

if TYPE_CHECKING:
    import boto3

_Result = TypeVar("_Result")
_DURATION = re.compile(r"(\d{1,5})([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def add_aws_arguments(parser: argparse.ArgumentParser, *, has_stack: bool = False) -> None:
    """Declare the endpoint, the Region and the profile."""
    parser.add_argument(
        "endpoint", metavar="ENDPOINT", help="name of the endpoint", nargs="?" if has_stack else None
    )
    if has_stack:
        add_common(parser, "--stack", help="all endpoints of this CloudFormation stack")
    add_common(parser, "--region", "--profile")


def open_session(arguments: argparse.Namespace) -> boto3.Session:
    """Return the session that the arguments choose."""
    return make_session(arguments.region, arguments.profile)


def endpoint_names(arguments: argparse.Namespace, session: boto3.Session) -> list[str]:
    """Return the endpoint of the command, or those of its stack.

    Raises:
        InvalidValueError: neither or both are given.
        NoEndpointError: the stack has no endpoint.
    """
    if (arguments.endpoint is None) == (arguments.stack is None):
        raise InvalidValueError("ENDPOINT: give the name of an endpoint, or --stack with the name of a stack")
    return endpoints_of_stack(session, arguments.stack) if arguments.stack else [arguments.endpoint]


def read_each(names: Sequence[str], read: Callable[[str], _Result]) -> tuple[list[_Result], list[str]]:
    """Read endpoints, and return the errors of those that cannot be read if others of the stack can.

    Raises:
        InvalidValueError: the endpoint of the command, or no endpoint of its stack, can be read.
    """
    results, errors = [], []
    for name in names:
        try:
            results.append(read(name))
        except InvalidValueError as error:
            errors.append(error)
    if errors and not results:
        raise errors[0]
    return results, [f"not read: {error}" for error in errors]


def parse_duration(text: str) -> timedelta:
    """Read a duration such as ``90s``, ``15m``, ``1h`` or ``2d``."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(f"must be a number and s, m, h or d, such as 15m, got {text!r}")
    return timedelta(**{_UNITS[match[2]]: int(match[1])})
