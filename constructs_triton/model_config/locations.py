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


class Locations:
    """The places of the fields of one text; lines and columns count from 1."""

    def __init__(self, text: str) -> None:
        self._places: dict[FieldPath, Place] = {}
        try:
            _Walker(text, self._places).walk()
        except Exception:  # a place is a courtesy: better none than no finding
            self._places.setdefault((), (1, 1))

    def find(self, path: FieldPath) -> Place | None:
        """The place of a field, or of the nearest one around it that is written down."""
        for length in range(len(path), 0, -1):
            place = self._places.get(path[:length])
            if place is not None:
                return place
        return None


class _Walker:
    def __init__(self, text: str, places: dict[FieldPath, Place]) -> None:
        from google.protobuf import text_format  # noqa: PLC0415 - loaded already: the text was parsed

        self._tokens: Any = text_format.Tokenizer(text.split("\n"))
        self._places = places
        self._counts: Counter[FieldPath] = Counter()

    def walk(self) -> None:
        while not self._tokens.AtEnd():
            self._field(())

    def _place(self) -> Place:
        # ParseError is the tokenizer's public way of telling the place of the current token.
        error = self._tokens.ParseError("")
        return error.GetLine(), error.GetColumn()

    def _field(self, parent: FieldPath) -> None:
        place = self._place()
        name = self._tokens.token
        self._tokens.NextToken()
        self._tokens.TryConsume(":")
        self._places.setdefault((*parent, name), place)
        if self._tokens.TryConsume("["):
            while not self._tokens.TryConsume("]"):
                self._value((*parent, name), self._place())
                self._tokens.TryConsume(",")
        else:
            self._value((*parent, name), place)
        if not self._tokens.TryConsume(","):
            self._tokens.TryConsume(";")

    def _value(self, path: FieldPath, place: Place) -> None:
        indexed = (*path, self._counts[path])
        self._counts[path] += 1
        self._places[indexed] = place
        if self._tokens.token in ("{", "<"):
            self._tokens.NextToken()
            self._block(path, indexed)
        else:
            self._scalar(path)

    def _block(self, path: FieldPath, indexed: FieldPath) -> None:
        while self._tokens.token not in ("}", ">"):
            if self._tokens.AtEnd():
                return
            self._field(indexed)
        self._tokens.NextToken()
        self._alias(path, indexed)

    def _scalar(self, path: FieldPath) -> None:
        value = self._tokens.token
        self._tokens.NextToken()
        if value[:1] in "\"'":
            while self._tokens.token[:1] in ("'", '"'):
                self._tokens.NextToken()
        if path[-1] == "key":
            self._places[(*path[:-1], "key=", value.strip("\"'"))] = (0, 0)

    def _alias(self, path: FieldPath, indexed: FieldPath) -> None:
        """Let a message that stands alone be found without index, and an entry of a map by its key."""
        first = indexed[-1] == 0
        for known in [key for key in self._places if key[: len(indexed)] == indexed]:
            rest = known[len(indexed) :]
            if first:
                self._places.setdefault((*path, *rest), self._places[known])
            if len(rest) == 2 and rest[0] == "key=":
                self._places[(*path, rest[1])] = self._places[indexed]
