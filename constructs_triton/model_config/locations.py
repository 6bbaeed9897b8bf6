"""Where each field of a ``config.pbtxt`` stands; found only once a finding needs it.

protobuf keeps no places, so the tokens of its public ``text_format.Tokenizer`` are walked a second time. The
text is known to parse by then, so brackets match and every field name is followed by its value.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

__all__ = ["FieldPath", "Locations"]

FieldPath = tuple[str | int, ...]
"""Names and indices from the top of the message: ``("input", 0, "dims")``. An entry of a map may be named by
its key in place of its index: ``("parameters", "EXECUTION_ENV_PATH")``."""

Place = tuple[int, int]
Places = dict[FieldPath, Place]


class Locations:
    """The places of the fields of one text; lines and columns count from 1."""

    def __init__(self, text: str) -> None:
        try:
            self._places = _Walker(text).block()[0]
        except Exception:  # a place is a courtesy: better none than no finding
            self._places = {}

    def find(self, path: FieldPath) -> Place | None:
        """The place of a field, or of the nearest one around it that is written down."""
        for length in range(len(path), 0, -1):
            place = self._places.get(path[:length])
            if place is not None:
                return place
        return None


class _Walker:
    """Reads one text; the paths that a method returns begin at the block it has read."""

    def __init__(self, text: str) -> None:
        from google.protobuf import text_format  # noqa: PLC0415 - loaded already: the text was parsed

        self._tokens: Any = text_format.Tokenizer(text.split("\n"))

    def block(self) -> tuple[Places, str | None]:
        """The places up to the end of a block or of the text, and the key if it is an entry of a map."""
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
        # ParseError is the tokenizer's public way of telling the place of the current token.
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
        # Found by index; a message that stands alone without one; an entry of a map by its key too.
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
