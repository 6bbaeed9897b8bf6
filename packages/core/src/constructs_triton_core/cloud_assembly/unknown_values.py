"""Values of a template that are not known, and what is made of them.

A rehearsal does not know each attribute of each type. Such a value is unknown, and so is every
string and every list that a template makes of it. It has a stand-in, since services want a value of
the right form. Nothing may be concluded from the characters of a stand-in.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

__all__ = ["Unknown", "UnknownList", "contains_unknown", "is_unknown", "like"]


class Unknown(str):
    """A string that is not known. Its characters are the stand-in."""

    __slots__ = ()

    def split_at(self, separator: str) -> UnknownList:
        """Return the parts between separators, whose number is not known."""
        return UnknownList(self, self.split(separator) if separator else [self])


class UnknownList(list[str]):
    """A list of which neither the elements nor their number are known.

    Args:
        origin: The stand-in of the value that the list is made of.
        stand_ins: Stand-ins of its first elements.
    """

    def __init__(self, origin: str, stand_ins: Iterable[str]) -> None:
        super().__init__(Unknown(each) for each in stand_ins)
        self.origin = origin

    def __reduce__(self) -> Any:
        """Return how to read the list in another process."""
        return UnknownList, (str(self.origin), [str(each) for each in self])

    def element(self, index: int) -> Unknown:
        """Return the element at an index; each index has a stand-in of its own."""
        if 0 <= index < len(self):
            return Unknown(self[index])
        return Unknown(f"{self.origin}-{index}")


def is_unknown(value: Any) -> bool:
    """Return whether a value is unknown as a whole."""
    return isinstance(value, Unknown | UnknownList)


def contains_unknown(value: Any) -> bool:
    """Return whether a value, or a part of it, is unknown."""
    if is_unknown(value):
        return True
    if isinstance(value, Mapping):
        return any(contains_unknown(each) for each in value.values())
    return isinstance(value, list) and any(contains_unknown(each) for each in value)


def like(sources: Any, text: str) -> str:
    """Return a text, which is unknown if one of the values that it was made of is."""
    return Unknown(text) if contains_unknown(sources) else text


def text_of(value: Any) -> str:
    """Return a value as CloudFormation writes it into a string."""
    return value if isinstance(value, str) else like(value, json.dumps(value))
