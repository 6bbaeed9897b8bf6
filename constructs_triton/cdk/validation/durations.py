"""Checks durations and converts them to seconds."""

from __future__ import annotations

from aws_cdk import Duration

from constructs_triton.cdk.validation.limit_checks import check_range
from constructs_triton.cdk.validation.property_types import PropertyType, check_type
from constructs_triton.facts.limits import RangeLimit

__all__ = ["check_duration", "seconds"]

_DURATION: PropertyType = (Duration, "Duration.minutes(10)")


def check_duration(property: str, value: Duration | None, limit: RangeLimit) -> None:
    """Check a duration against a limit in seconds. ``None`` and CDK tokens pass.

    Raises:
        InvalidValueError: not a duration, or outside of the limit.
    """
    check_type(property, value, _DURATION)
    if value is not None and not value.is_unresolved():
        check_range(property, value.to_seconds(), limit)


def seconds(duration: Duration | None) -> float | None:
    """Return a duration in seconds; ``None`` for ``None``."""
    return None if duration is None else duration.to_seconds()
