"""Checks durations and sizes and converts them to the units of the API."""

from __future__ import annotations

from aws_cdk import Duration, Size, SizeRoundingBehavior

from constructs_triton.cdk.validation.limit_checks import check_range
from constructs_triton.cdk.validation.property_types import PropertyType, check_type
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.limits import RangeLimit, plain_number

__all__ = ["check_duration", "seconds", "whole_gibibytes", "whole_seconds"]

_DURATION: PropertyType = (Duration, "Duration.seconds(600)")


def check_duration(property: str, value: Duration | None, limit: RangeLimit) -> None:
    """Check a duration against a limit in seconds. ``None`` and CDK tokens pass.

    Raises:
        InvalidValueError: not a duration, or outside of the limit.
    """
    check_type(property, value, _DURATION)
    if value is not None and not value.is_unresolved():
        check_range(property, whole_seconds(property, value), limit)


def whole_seconds(property: str, duration: Duration) -> float:
    """Return a duration in seconds.

    Raises:
        InvalidValueError: it is not a whole number of seconds, which the CDK's own error does not locate.
    """
    return _whole(property, duration.to_seconds(integral=False), "seconds", "Duration.seconds")


def whole_gibibytes(property: str, size: Size) -> float:
    """Return a size in GiB.

    Raises:
        InvalidValueError: it is not a whole number of GiB, which the CDK's own error does not locate.
    """
    return _whole(property, size.to_gibibytes(rounding=SizeRoundingBehavior.NONE), "GiB", "Size.gibibytes")


def _whole(property: str, value: float, unit: str, function: str) -> float:
    if value != int(value):
        raise InvalidValueError(
            f"{property}: must be a whole number of {unit}, got {plain_number(value)}; "
            f"write {function}({int(value) + 1})"
        )
    return value


def seconds(duration: Duration | None) -> float | None:
    """Return a duration in seconds; ``None`` for ``None``."""
    return None if duration is None else duration.to_seconds()
