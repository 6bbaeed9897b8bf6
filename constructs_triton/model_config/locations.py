"""Finds the line and column of each field of a ``config.pbtxt``, when a finding needs them.

protobuf does not keep them, so this module reads the tokens of its public ``text_format.Tokenizer`` again.
The text has been parsed before, so brackets match and every field name is followed by its value.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

__all__ = ["FieldPath", "Locations"]

FieldPath = tuple[str | int, ...]
"""Names and indices from the top of the message: ``("input", 0, "dims")``. An entry of a map may have its key
instead of its index: ``("parameters", "EXECUTION_ENV_PATH")``."""

Place = tuple[int, int]
Places = dict[FieldPath, Place]


class Locations:
    """The line and column of each field of one file, counted from 1."""

    def __init__(self, text: str) -> None:
        try:
            self._places = _Walker(text).block()[0]
        except Exception:  # a finding without a place is better than none
            self._places = {}

    def find(self, path: FieldPath) -> Place | None:
        """Return the place of a field, or of the nearest enclosing field that is in the file."""
        for length in range(len(path), 0, -1):
            place = self._places.get(path[:length])
            if place is not None:
                return place
        return None


class _Walker:
    """Reads one file; the paths that a method returns start at the block that it has read."""

    def __init__(self, text: str) -> None:
        from google.protobuf import text_format  # noqa: PLC0415 - loaded already: the text was parsed

        self._tokens: Any = text_format.Tokenizer(text.split("\n"))

    def block(self) -> tuple[Places, str | None]:
        """Return the places up to the end of a block or file, and the key if it is an entry of a map."""
        places: Places = {}
        counts: Counter[str] = Counter()
        key: str | None = None
        while not self._tokens.AtEnd() and self._tokens.token not in ("}", ">"):
            name = self._tokens.token
            value = self._field(name, places, counts)
            if name == "key":
                key = value
        self._tokens.NextToken()
        return places, key

    def _place(self) -> Place:
        # ParseError is the tokenizer's public way to get the place of the current token.
        error = self._tokens.ParseError("")
        return error.GetLine(), error.GetColumn()

    def _field(self, name: str, places: Places, counts: Counter[str]) -> str | None:
        place, value = self._place(), None
        places.setdefault((name,), place)
        self._tokens.NextToken()
        self._tokens.TryConsume(":")
        if self._tokens.TryConsume("["):
            while not self._tokens.TryConsume("]") and not self._tokens.AtEnd():
                self._value(name, places, counts, self._place())
                self._tokens.TryConsume(",")
        else:
            value = self._value(name, places, counts, place)
        if not self._tokens.TryConsume(","):
            self._tokens.TryConsume(";")
        return value

    def _value(self, name: str, places: Places, counts: Counter[str], place: Place) -> str | None:
        index = counts[name]
        counts[name] += 1
        places[(name, index)] = place
        if self._tokens.token not in ("{", "<"):
            return self._scalar()
        self._tokens.NextToken()
        inner, key = self.block()
        # Found by index, the first also without one, and an entry of a map also by its key.
        prefixes: list[FieldPath] = [(name, index), *([(name,)] if index == 0 else [])]
        if key is not None:
            places[(name, key)] = place
            prefixes.append((name, key))
        for prefix in prefixes:
            for path, inner_place in inner.items():
                places.setdefault((*prefix, *path), inner_place)
        return None

    def _scalar(self) -> str:
        text = str(self._tokens.token)
        self._tokens.NextToken()
        if text[:1] in ("'", '"'):
            while self._tokens.token[:1] in ("'", '"'):
                self._tokens.NextToken()
        return text.strip("\"'")
