"""Checks of names, numbers and numbers of entries against their limits.

CDK tokens of the right type pass every check.
"""

from __future__ import annotations

import re
from collections.abc import Sized
from math import inf
from numbers import Real
from types import UnionType

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.limits import RangeLimit, TextLimit, plain_number
from constructs_triton_core.tokens import is_token

__all__ = ["check_count", "check_name", "check_range", "check_string"]

_WRITTEN = re.compile(r"[-+]?[0-9.]+(e[-+]?[0-9]+)?", re.IGNORECASE)


def check_name(property: str, value: str, limit: TextLimit) -> None:
    """Check the length and the characters of a string.

    Raises:
        InvalidValueError: not a string, too long or too short, or other characters than ``limit``
            allows.
    """
    check_string(property, value)
    if is_token(value):
        return
    if not limit.min_length <= len(value) <= limit.max_length:
        least = f"{limit.min_length} to " if limit.min_length else "at most "
        change = f"shorten it to {limit.max_length}" if len(value) > limit.max_length else "set it"
        raise InvalidValueError(
            f"{property}: must have {least}{limit.max_length} characters, "
            f"got {_shown(value)}; {change}"
        )
    if re.fullmatch(limit.pattern, value) is None:
        raise InvalidValueError(
            f"{property}: must match {limit.pattern}, got {_shown(value)}; use {limit.allowed}"
        )


def check_string(property: str, value: object) -> None:
    """Check that a value is a string, which may be known only at deployment.

    Raises:
        InvalidValueError: it is something else.
    """
    if is_token(value):
        _refuse_token_unless(property, value, str)
    else:
        _refuse_other_than_string(property, value)


def check_range(property: str, value: float, limit: RangeLimit) -> None:
    """Check that a number is within a limit; its minimum and maximum are allowed."""
    if is_token(value):
        _refuse_token_unless(property, value, int | float)
        return
    _refuse_other_than_number(property, value)
    # These comparisons are false for NaN, so NaN is refused.
    above = limit.minimum is None or value >= limit.minimum
    below = limit.maximum is None or value <= limit.maximum
    if not (above and below):
        raise InvalidValueError(
            f"{property}: must be {limit}, got {plain_number(value)}; {_bound(value, limit)}"
        )
    if limit.is_whole and value != int(value):
        is_count = limit.unit and not limit.unit.startswith("percent")
        of_unit = f" of {limit.unit}" if is_count else ""
        raise InvalidValueError(
            f"{property}: must be a whole number{of_unit}, got {plain_number(value)}; round it"
        )


def check_count(property: str, values: Sized, limit: RangeLimit) -> None:
    """Check the number of entries of a collection."""
    if is_token(values):
        _refuse_token_unless(property, values, list)
        return

    count = len(values)
    allowed = str(limit).removeprefix("from ")
    if count < (limit.minimum or 0):
        raise InvalidValueError(
            f"{property}: must have {allowed}, got {count}; add one, or remove {property}"
        )
    if limit.maximum is not None and count > limit.maximum:
        excess = count - limit.maximum
        raise InvalidValueError(
            f"{property}: must have {allowed}, got {count}; remove {excess:.0f}"
        )


def _refuse_token_unless(property: str, value: object, wanted: type | UnionType) -> None:
    """Refuse a token of another type, which the template could not contain in this place."""
    if isinstance(value, wanted):
        return
    kind = "string" if wanted is str else "list" if wanted is list else "number"
    raise InvalidValueError(
        f"{property}: must be a {kind}, got another value that is known only at deployment; write "
        f"cdk.Token.as_{kind}(value)"
    )


def _refuse_other_than_string(property: str, value: object) -> None:
    """Refuse a value that is no string, with the string that it could be."""
    if not isinstance(value, str):
        fix = f'write "{value}"' if isinstance(value, int | float) else "write a string"
        raise InvalidValueError(f"{property}: must be a string, got {value!r}; {fix}")


def _refuse_other_than_number(property: str, value: object) -> None:
    """Refuse a value that is no finite number, such as a number in quotes."""
    if isinstance(value, str):
        fix = "write it without quotes" if _WRITTEN.fullmatch(value) else "write a number"
        raise InvalidValueError(f"{property}: must be a number, got {_shown(value)}; {fix}")
    # jsii cannot send an infinite number.
    if isinstance(value, bool) or not isinstance(value, Real) or value in (inf, -inf):
        raise InvalidValueError(f"{property}: must be a number, got {value!r}; write a number")


def _bound(value: float, limit: RangeLimit) -> str:
    """Return how to bring a number that is outside of its range into it."""
    if limit.unit.startswith("percent") and 0 < value < 1:
        return f"did you mean {plain_number(value * 100)}?"
    if limit.minimum is not None and value < limit.minimum:
        return f"raise it to {plain_number(limit.minimum)}"
    if limit.maximum is not None and value > limit.maximum:
        return f"lower it to {plain_number(limit.maximum)}"
    return "write a number"


def _shown(value: str, longest: int = 80) -> str:
    """Return the value in quotes, shortened if it is very long."""
    return (
        f'"{value}"'
        if len(value) <= longest
        else f'"{value[:longest]}..." ({len(value)} characters)'
    )
