"""Recognizes CDK tokens: values that CloudFormation only knows at deployment.

A token looks like an ordinary string, number or list, so every comparison with it gives a wrong answer. Each
check of a range, a length or a pattern calls :func:`is_token` first. This module does not import the CDK.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

__all__ = ["is_token"]

# CDK writes a token into a string as "${Token[Name.12]}", into a list as ["#{Token[Name.12]}"], and into a
# number as a double with a marker in its upper bits, which is about -1.888e289.
_STRING_TOKEN, _LIST_TOKEN, _NUMBER_TOKEN_BELOW = "${Token[", "#{Token[", -1e288


def is_token(value: object) -> bool:
    """Return whether a string, number, list or mapping is or contains a CDK token."""
    match value:
        case str():
            return _STRING_TOKEN in value or _LIST_TOKEN in value
        case int() | float():
            return value < _NUMBER_TOKEN_BELOW
        case Mapping():
            return any(is_token(part) for item in value.items() for part in item)
        case Iterable():
            return any(is_token(part) for part in value)
    return False
