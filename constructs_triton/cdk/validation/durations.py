"""Durations as CloudFormation wants them, and checked where they are known."""

from __future__ import annotations

from aws_cdk import Duration

from constructs_triton.cdk.validation.limit_checks import check_range
from constructs_triton.cdk.validation.property_types import PropertyType, check_type
from constructs_triton.facts.limits import RangeLimit

__all__ = ["check_duration", "seconds"]

_DURATION: PropertyType = (Duration, "Duration.minutes(10)")


def check_duration(property: str, value: Duration | None, limit: RangeLimit) -> None:
    """Raise ``InvalidValueError`` for no duration, or one outside ``limit`` (seconds).

    ``None`` and tokens pass.
    """
    check_type(property, value, _DURATION)
    if value is not None and not value.is_unresolved():
        check_range(property, value.to_seconds(), limit)


def seconds(duration: Duration | None) -> float | None:
    """The duration in seconds, ``None`` where there is none."""
    return None if duration is None else duration.to_seconds()
