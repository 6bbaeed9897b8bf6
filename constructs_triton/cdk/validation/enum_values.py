"""Checks of values that the service chooses from a list, to which it may add values."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.findings import Finding, Severity
from constructs_triton_core.spelling import closest
from constructs_triton_core.tokens import is_token

__all__ = ["check_spelling", "unknown_value"]

_SAME = 0.8


def check_spelling(property: str, value: object, known: Sequence[str]) -> None:
    """Check that a value is not a known one with a typing error. CDK tokens and other values pass.

    Raises:
        InvalidValueError: not a string, or nearly one of the known values.
    """
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
