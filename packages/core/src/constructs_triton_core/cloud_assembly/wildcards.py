"""The wildcards of IAM policies."""

from __future__ import annotations

import re
from fnmatch import translate
from functools import lru_cache

__all__ = ["matches_wildcards"]


def matches_wildcards(pattern: str, text: str, *, ignore_case: bool = False) -> bool:
    """Return whether ``*`` (any characters) and ``?`` (one character) of an IAM pattern make it the
    text.

    The time grows with the lengths of pattern and text alone.
    """
    return _expression(pattern, re.IGNORECASE if ignore_case else 0).match(text) is not None


@lru_cache(maxsize=1024)
def _expression(pattern: str, flags: int) -> re.Pattern[str]:
    # Python's own translation never tries an asterisk again, unlike ".*". It has sets too, unlike
    # IAM.
    return re.compile(translate(pattern.replace("[", "[[]")), flags)
