"""Compares values of templates with the patterns of AWS's models and schemas.

Some of these patterns take exponential time for values that do not match, such as
``https://([.\\-_a-zA-Z0-9]+/?){3,1016}``. A foreign template may have
such a value on purpose.
"""

from __future__ import annotations

import regex  # type: ignore[import-untyped]  # reads \p{L}, which patterns of the schemas use

__all__ = ["PatternError", "is_match"]

PatternError: type[Exception] = regex.error
"""Raised for a pattern that only Java can read."""

_SECONDS = 1.0
_given_up: set[str] = set()


def is_match(pattern: str, value: str, *, is_whole: bool) -> bool:
    """Return whether a value matches, or whether that cannot be found out.

    A pattern that took longer than a second is not asked again, so that all values of a template
    together take at most a second for each pattern.

    Args:
        pattern: The pattern of a model or a schema.
        value: The value of a template or a request.
        is_whole: Whether the pattern is for the whole value, as in models of services.

    Raises:
        PatternError: only Java can read the pattern.
    """
    if pattern in _given_up:
        return True
    try:
        if is_whole:
            found = regex.fullmatch(pattern, value, regex.DOTALL, timeout=_SECONDS)
        else:
            found = regex.search(pattern, value, timeout=_SECONDS)
        return found is not None
    except TimeoutError:
        _given_up.add(pattern)
        return True
