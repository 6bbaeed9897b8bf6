"""What is read from the CDK once: its process keeps every object anyway,
so these caches keep none longer.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from aws_cdk import Duration, Stack
from aws_cdk.interfaces import ResourceEnvironment
from constructs import Construct


class StackEnvironment(NamedTuple):
    """Account, Region and partition of a stack; tokens where they are known only at deployment."""

    account: str
    region: str
    partition: str


@cache
def stack_of(scope: Construct) -> Stack:
    """Return the stack of a construct."""
    return Stack.of(scope)


def environment_of(scope: Construct) -> StackEnvironment:
    """Return the environment of a construct's stack."""
    return _environment(stack_of(scope))


@cache
def _environment(stack: Stack) -> StackEnvironment:
    return StackEnvironment(stack.account, stack.region, stack.partition)


@cache
def place_of(resource: object) -> ResourceEnvironment | None:
    """Return the account and the Region of a resource: those of its stack, or of its ARN.

    ``None`` for an interface of the user's own that has no ``env``.
    """
    return getattr(resource, "env", None)


@cache
def duration_of(seconds: int) -> Duration:
    """Return a duration."""
    return Duration.seconds(seconds) if seconds % 60 else Duration.minutes(seconds // 60)


@cache
def milliseconds_of(duration: Duration) -> float | None:
    """Return a duration in milliseconds; ``None`` if it is known only at deployment."""
    return None if duration.is_unresolved() else float(duration.to_milliseconds())
