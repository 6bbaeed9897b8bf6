"""Checks of durations, sizes and known words. Tokens pass every check."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

from aws_cdk import Duration, Size, SizeRoundingBehavior

from constructs_triton.cdk.validation.property_types import PropertyType, check_type
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.limits import RangeLimit, plain_number
from constructs_triton_core.findings import Finding, Severity
from constructs_triton_core.limit_checks import check_range, check_string
from constructs_triton_core.spelling import closest
from constructs_triton_core.tokens import is_token

_DURATION: PropertyType = (Duration, "Duration.seconds(600)")


def check_duration(property: str, value: Duration | None, limit: RangeLimit) -> None:
    """Check a duration against a limit in seconds. ``None`` and CDK tokens pass."""
    check_type(property, value, _DURATION)
    if value is None:
        return
    if value.is_unresolved():
        check_unit(property, value, "seconds")
    else:
        check_range(property, whole_seconds(property, value), limit)


def check_unit(property: str, amount: Duration | Size, unit: str) -> None:
    """Check that a duration or a size that is known only at deployment is given in a unit.

    CloudFormation cannot multiply, so nothing could convert it.
    """
    try:
        getattr(amount, f"to_{unit}")()
    except RuntimeError:  # the CDK's own error names no property
        name = type(amount).__name__
        raise InvalidValueError(
            f"{property}: CloudFormation cannot convert a value that is known only at deployment "
            f"to {unit}; write {name}.{unit}(value)"
        ) from None


def whole_seconds(property: str, duration: Duration) -> float:
    """Return a duration in seconds.

    Raises:
        InvalidValueError: it is not a whole number of seconds, which the CDK's own error does not
            locate.
    """
    return whole(property, duration.to_seconds(integral=False), "seconds", "Duration.seconds")


def whole_gibibytes(property: str, size: Size) -> float:
    """Return a size in GiB.

    Raises:
        InvalidValueError: it is not a whole number of GiB, which the CDK's own error does not
            locate.
    """
    return whole(
        property, size.to_gibibytes(rounding=SizeRoundingBehavior.NONE), "GiB", "Size.gibibytes"
    )


def whole(property: str, value: float, unit: str, function: str) -> float:
    """Return a number of units if it is a whole one,
    or raise an error with a call of ``function``.
    """
    if value != int(value):
        raise InvalidValueError(
            f"{property}: must be a whole number of {unit}, got {plain_number(value)}; "
            f"write {function}({int(value) + 1})"
        )
    return value


def seconds(duration: Duration | None) -> float | None:
    """Return a duration in seconds; ``None`` for ``None``."""
    return None if duration is None else duration.to_seconds()


_SAME = 0.8


def check_spelling(property: str, value: object, known: Sequence[str]) -> None:
    """Check that a value is not a known one with a typing error.

    CDK tokens and other values pass.
    """
    if value is None:
        return
    if is_token(value):
        check_string(property, value)
        return
    if isinstance(value, str) and value in known:
        return
    words = ", ".join(f'"{each}"' for each in known)
    if not isinstance(value, str):
        raise InvalidValueError(
            f"{property}: must be one of {words}, got {value!r}; write one of them"
        )
    near = closest(value, known)
    if near is not None and SequenceMatcher(None, value.lower(), near.lower()).ratio() >= _SAME:
        raise InvalidValueError(
            f'{property}: must be one of {words}, got "{value}"; did you mean "{near}"?'
        )


def unknown_value(
    property: str, value: str | None, known: Sequence[str], source: str
) -> list[Finding]:
    """Return a warning if a value is none of those that the service had when
    this library was released.
    """
    if value is None or is_token(value) or value in known:
        return []
    words = ", ".join(f'"{each}"' for each in known)
    return [
        Finding(
            "enum-value-unknown",
            Severity.WARNING,
            property,
            f'unknown value, got "{value}"; the known ones are {words}',
            "use one of them, or acknowledge this if the value is newer than this library",
            source=source,
        )
    ]
