"""Checks of the arguments of methods, for which jsii raises an error without advice, or none."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike, fspath

from aws_cdk import Duration

from constructs_triton.cdk.validation.property_types import check_type, shown
from constructs_triton.cdk.validation.read_once import milliseconds_of
from constructs_triton_core import limit_checks
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.tokens import is_lookup_dummy, is_token

# aws-cdk-lib, aws_cloudwatch.Metric: "'period' must be 1, 5, 10, 30, or a multiple of 60 seconds".
_SHORT_PERIODS = (1, 5, 10, 30)


LOOKED_UP_LATER = "looked-up-later"
"""Stands in the first synthesis for a name that the CDK looks up for the next one."""


def check_string(argument: str, value: object) -> None:
    """Check that an argument is a string, which may be known only at deployment.

    ``None`` passes.
    """
    if value is not None:
        limit_checks.check_string(argument, value)


def check_known_path(argument: str, value: object, example: str) -> None:
    """Check that an argument is a path that is known at synth, or is looked up for the next one."""
    if is_looked_up_path(value):
        return
    if not isinstance(value, str | PathLike) or is_token(value):
        raise InvalidValueError(
            f"{argument}: must be a path that is known at synth, got {shown(value)}; "
            f'write for example "{example}"'
        )


def known_actions(actions: Sequence[str]) -> list[str]:
    """Return IAM actions, each of which may be known only at deployment.

    The CDK refuses the dummy of a lookup as an action, so another action takes its place in the
    first synthesis.
    """
    for action in actions:
        check_string("actions", action)
    return ["sagemaker:DescribeEndpoint" if is_lookup_dummy(each) else each for each in actions]


def is_looked_up_path(value: object) -> bool:
    """Return whether a path contains the dummy of a lookup."""
    return isinstance(value, str | PathLike) and is_lookup_dummy(fspath(value))


def check_known_string(argument: str, value: object, example: str) -> None:
    """Check that an argument is a string that is known at synth."""
    if not isinstance(value, str) or is_token(value):
        raise InvalidValueError(
            f"{argument}: must be a string that is known at synth, got {shown(value)}; "
            f'write for example "{example}"'
        )


def check_flag(argument: str, value: object) -> None:
    """Check that an argument is a boolean: another value that Python takes as true is a mistake."""
    if not isinstance(value, bool):
        raise InvalidValueError(
            f"{argument}: must be a boolean that is known at synth, got {shown(value)}; "
            "write True or False"
        )


def check_known_duration(argument: str, value: object, example: str) -> None:
    """Check that an argument is a duration that is known at synth. ``None`` passes."""
    check_type(argument, value, (Duration, example))
    if isinstance(value, Duration) and milliseconds_of(value) is None:
        raise InvalidValueError(
            f"{argument}: must be known at synth, because it is converted to another unit, got "
            f"{shown(value)}; write {example}"
        )


def check_period(value: object) -> None:
    """Check the period of a metric. ``None`` passes."""
    example = "Duration.minutes(5)"
    check_known_duration("period", value, example)
    milliseconds = milliseconds_of(value) if isinstance(value, Duration) else None
    if milliseconds is None:
        return
    period = milliseconds / 1000
    if period not in _SHORT_PERIODS and (period < 60 or period % 60):
        raise InvalidValueError(
            f"period: must be 1, 5, 10 or 30 seconds, or a multiple of 60, got {period:g}; "
            f"write {example}"
        )
