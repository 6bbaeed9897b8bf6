"""Finds the line and column of each field of a ``config.pbtxt``, when a finding needs them.

protobuf does not keep them, so this module splits the text into tokens again. protobuf's tokenizer would take
quadratic time to tell the places in a long line. The text has been parsed before, so brackets match and every
field name is followed by its value.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter

from constructs_triton.model_config.text_spellings import STRING_OR_COMMENT

__all__ = ["FieldPath", "Locations"]

FieldPath = tuple[str | int, ...]
"""Names and indices from the top of the message: ``("input", 0, "dims")``. An entry of a map may have its key
instead of its index: ``("parameters", "EXECUTION_ENV_PATH")``."""

_TOKEN = re.compile(rf"{STRING_OR_COMMENT.pattern}|-\s*[\w.][\w.+-]*|[\w.][\w.+-]*|[^\s]")
_QUOTES = ("'", '"')

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


class _Tokens:
    """The tokens of one file without comments, with a current token; "" at the end."""

    def __init__(self, text: str) -> None:
        self._found = [match for match in _TOKEN.finditer(text) if not match.group().startswith("#")]
        self._lines = [0, *(match.end() for match in re.finditer("\n", text))]
        self._index = 0
        self.token = self._found[0].group() if self._found else ""

    def place(self) -> Place:
        """Return line and column of the current token."""
        offset = self._found[self._index].start()
        line = bisect_right(self._lines, offset)
        return line, offset - self._lines[line - 1] + 1

    def next(self) -> str:
        """Return the current token and go to the next one."""
        before, self._index = self.token, self._index + 1
        self.token = self._found[self._index].group() if self._index < len(self._found) else ""
        return before

    def skip(self, *signs: str) -> bool:
        """Skip the current token if it is one of ``signs``; return whether it was."""
        is_sign = self.token in signs
        if is_sign:
            self.next()
        return is_sign


class _Walker:
    """Reads one file; the paths that a method returns start at the block that it has read."""

    def __init__(self, text: str) -> None:
        self._tokens = _Tokens(text)

    def block(self) -> tuple[Places, str | None]:
        """Return the places up to the end of a block or file, and the key if it is an entry of a map."""
        places: Places = {}
        counts: Counter[str] = Counter()
        key: str | None = None
        while self._tokens.token not in ("}", ">", ""):
            name = self._tokens.token
            value = self._field(name, places, counts)
            if name == "key":
                key = value
        self._tokens.next()
        return places, key

    def _field(self, name: str, places: Places, counts: Counter[str]) -> str | None:
        place, value = self._tokens.place(), None
        places.setdefault((name,), place)
        self._tokens.next()
        self._tokens.skip(":")
        if self._tokens.skip("["):
            while self._tokens.token and not self._tokens.skip("]"):
                self._value(name, places, counts, self._tokens.place())
                self._tokens.skip(",")
        else:
            value = self._value(name, places, counts, place)
        self._tokens.skip(",", ";")
        return value

    def _value(self, name: str, places: Places, counts: Counter[str], place: Place) -> str | None:
        index = counts[name]
        counts[name] += 1
        places[(name, index)] = place
        if self._tokens.token not in ("{", "<"):
            return self._scalar()
        self._tokens.next()
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
        text = self._tokens.next()
        if text[:1] in _QUOTES:
            while self._tokens.token[:1] in _QUOTES:
                self._tokens.next()
        return text.strip("\"'")
