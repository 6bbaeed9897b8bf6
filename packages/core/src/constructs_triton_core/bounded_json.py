"""Parses JSON of unknown origin: within bounds on its values and depth, and only with numbers that
exist.

The values of a small text can take a hundred times its size in memory, and functions that walk
through deep values exceed Python's stack.
"""

from __future__ import annotations

import json
from sys import float_info
from typing import Any

__all__ = ["parse_bounded_json"]

_MOST_VALUES = 1_000_000
_MOST_DEEP = 100
_TOO_DEEP = f"it is nested more than {_MOST_DEEP} deep"
_LARGEST = float_info.max


def parse_bounded_json(content: bytes | str) -> Any:
    """Return the value of a JSON text.

    Raises:
        ValueError: it is not JSON or not UTF-8, has more than a million values, is nested more than
            100 deep, or has a number that is not finite.
    """
    text = content if isinstance(content, str) else content.decode("utf-8-sig")
    if text.count(",") + text.count("[") + text.count("{") > _MOST_VALUES:
        raise ValueError(f"it has more than {_MOST_VALUES} values")
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    _check([value])
    return value


def _check(values: list[Any]) -> None:
    """Look at the numbers of each level, and count the levels."""
    for _ in range(_MOST_DEEP + 1):
        below: list[Any] = []
        for each in values:
            kind = type(each)
            if kind is list:
                below += each
            elif kind is dict:
                below += each.values()
            elif (kind is float or kind is int) and not -_LARGEST <= each <= _LARGEST:
                raise ValueError(f"a number must be finite, got {str(each)[:40]}")
        if not below:
            return
        values = below
    raise ValueError(_TOO_DEEP)
