"""Checks of names, numbers, durations and values of a list against their limits. Tokens pass every check."""

from __future__ import annotations

import re
from collections.abc import Sequence, Sized
from difflib import SequenceMatcher
from math import inf
from numbers import Real

from aws_cdk import Duration, Size, SizeRoundingBehavior

from constructs_triton.cdk.validation.property_types import PropertyType, check_type
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.limits import RangeLimit, TextLimit, plain_number
from constructs_triton_core.findings import Finding, Severity
from constructs_triton_core.spelling import closest
from constructs_triton_core.tokens import is_token


def check_name(property: str, value: str, limit: TextLimit) -> None:
    """Check the length and the characters of a string. CDK tokens pass.

    Raises:
        InvalidValueError: not a string, too long or too short, or other characters than ``limit`` allows.
    """
    if is_token(value):
        return
    _refuse_other_than_string(property, value)
    if not limit.min_length <= len(value) <= limit.max_length:
        least = f"{limit.min_length} to " if limit.min_length else "at most "
        change = f"shorten it to {limit.max_length}" if len(value) > limit.max_length else "set it"
        raise InvalidValueError(
            f"{property}: must have {least}{limit.max_length} characters, got {_shown(value)}; {change}"
        )
    if re.fullmatch(limit.pattern, value) is None:
        raise InvalidValueError(
            f"{property}: must match {limit.pattern}, got {_shown(value)}; use {limit.allowed}"
        )


def check_range(property: str, value: float, limit: RangeLimit) -> None:
    """Check that a number is within a limit; its minimum and maximum are allowed. CDK tokens pass."""
    if is_token(value):
        return
    _refuse_other_than_number(property, value)
    # These comparisons are false for NaN, so NaN is refused.
    above = limit.minimum is None or value >= limit.minimum
    below = limit.maximum is None or value <= limit.maximum
    if not (above and below):
        raise InvalidValueError(
            f"{property}: must be {limit}, got {plain_number(value)}; {_bound(value, limit)}"
        )


def check_count(property: str, values: Sized, limit: RangeLimit) -> None:
    """Check the number of entries of a collection. A list token passes."""
    if is_token(values):
        return
    count, minimum, maximum = len(values), limit.minimum or 0, limit.maximum
    allowed = str(limit).removeprefix("from ")
    if count < minimum:
        raise InvalidValueError(
            f"{property}: must have {allowed}, got {count}; add one, or remove {property}"
        )
    if maximum is not None and count > maximum:
        raise InvalidValueError(f"{property}: must have {allowed}, got {count}; remove {count - maximum:.0f}")


def _refuse_other_than_string(property: str, value: object) -> None:
    if not isinstance(value, str):
        fix = f'write "{value}"' if isinstance(value, int | float) else "write a string"
        raise InvalidValueError(f"{property}: must be a string, got {value!r}; {fix}")


def _refuse_other_than_number(property: str, value: object) -> None:
    if isinstance(value, str):
        fix = "write it without quotes" if _is_written_number(value) else "write a number"
        raise InvalidValueError(f"{property}: must be a number, got {_shown(value)}; {fix}")
    # jsii cannot send an infinite number.
    if isinstance(value, bool) or not isinstance(value, Real) or value in (inf, -inf):
        raise InvalidValueError(f"{property}: must be a number, got {value!r}; write a number")


def _is_written_number(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return True


def _bound(value: float, limit: RangeLimit) -> str:
    if limit.unit.startswith("percent") and 0 < value < 1:
        return f"did you mean {plain_number(value * 100)}?"
    if limit.minimum is not None and value < limit.minimum:
        return f"raise it to {plain_number(limit.minimum)}"
    if limit.maximum is not None and value > limit.maximum:
        return f"lower it to {plain_number(limit.maximum)}"
    return "write a number"


def _shown(value: str, longest: int = 80) -> str:
    """Return the value in quotes, shortened if it is very long."""
    return f'"{value}"' if len(value) <= longest else f'"{value[:longest]}..." ({len(value)} characters)'


_DURATION: PropertyType = (Duration, "Duration.seconds(600)")


def check_duration(property: str, value: Duration | None, limit: RangeLimit) -> None:
    """Check a duration against a limit in seconds. ``None`` and CDK tokens pass."""
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


_SAME = 0.8


def check_spelling(property: str, value: object, known: Sequence[str]) -> None:
    """Check that a value is not a known one with a typing error. CDK tokens and other values pass."""
    if value is None or is_token(value) or value in known:
        return
    words = ", ".join(f'"{each}"' for each in known)
    if not isinstance(value, str):
        raise InvalidValueError(f"{property}: must be one of {words}, got {value!r}; write one of them")
    near = closest(value, known)
    if near is not None and SequenceMatcher(None, value.lower(), near.lower()).ratio() >= _SAME:
        raise InvalidValueError(f'{property}: must be one of {words}, got "{value}"; did you mean "{near}"?')


def unknown_value(property: str, value: str | None, known: Sequence[str], source: str) -> list[Finding]:
    """Return a warning if a value is none of those that the service had when this library was released."""
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
