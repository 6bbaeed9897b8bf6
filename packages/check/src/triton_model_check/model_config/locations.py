"""Finds the line and column of each field of a ``config.pbtxt``, when a finding needs them.

protobuf does not keep them, so this module splits the text into tokens again. protobuf's tokenizer would take
quadratic time to tell the places in a long line. The text has been parsed before, so brackets match and every
field name is followed by its value.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from dataclasses import field as dataclass_field

from triton_model_check.model_config.text_spellings import STRING_OR_COMMENT

FieldPath = tuple[str | int, ...]
"""Names and indices from the top of the message: ``("input", 0, "dims")``. An entry of a map may have its key
instead of its index: ``("parameters", "EXECUTION_ENV_PATH")``."""

_TOKEN = re.compile(rf"{STRING_OR_COMMENT.pattern}|-\s*[\w.][\w.+-]*|[\w.][\w.+-]*|[^\s]")
_QUOTES = ("'", '"')

Place = tuple[int, int]


@dataclass(slots=True)
class _Value:
    """One value of a field, with its block if it is a message."""

    place: Place
    block: dict[str, _Field] | None = None


@dataclass(slots=True)
class _Field:
    """All values of one field of a block. ``keys`` has the index of each entry of a map."""

    place: Place
    values: list[_Value] = dataclass_field(default_factory=list)
    keys: dict[str, int] = dataclass_field(default_factory=dict)


class Locations:
    """The line and column of each field of one file, counted from 1."""

    def __init__(self, text: str) -> None:
        try:
            self._root = _Walker(text).block()[0]
        except Exception:  # a finding without a place is better than none
            self._root = {}

    def find(self, path: FieldPath) -> Place | None:
        """Return the place of a field, or of the nearest enclosing field that is in the file."""
        place: Place | None = None
        block: dict[str, _Field] | None = self._root
        rest = list(reversed(path))
        while rest and block is not None:
            field = block.get(str(rest.pop()))
            if field is None:
                return place
            place = field.place
            index = 0
            if rest and (isinstance(rest[-1], int) or rest[-1] in field.keys):
                chosen = rest.pop()
                index = chosen if isinstance(chosen, int) else field.keys[chosen]
                if index >= len(field.values):
                    return place
                place = field.values[index].place
            block = field.values[index].block if field.values else None
        return place


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
    """Reads one file."""

    def __init__(self, text: str) -> None:
        self._tokens = _Tokens(text)

    def block(self) -> tuple[dict[str, _Field], str | None]:
        """Return the fields up to the end of a block or file, and the key if it is an entry of a map."""
        fields: dict[str, _Field] = {}
        key: str | None = None
        while self._tokens.token not in ("}", ">", ""):
            name = self._tokens.token
            value = self._read_field(fields)
            if name == "key":
                key = value
        self._tokens.next()
        return fields, key

    def _read_field(self, fields: dict[str, _Field]) -> str | None:
        place, value = self._tokens.place(), None
        field = fields.setdefault(self._tokens.next(), _Field(place))
        self._tokens.skip(":")
        if self._tokens.skip("["):
            while self._tokens.token and not self._tokens.skip("]"):
                self._read_value(field, self._tokens.place())
                self._tokens.skip(",")
        else:
            value = self._read_value(field, place)
        self._tokens.skip(",", ";")
        return value

    def _read_value(self, field: _Field, place: Place) -> str | None:
        value = _Value(place)
        field.values.append(value)
        if not self._tokens.skip("{", "<"):
            return self._scalar()
        value.block, key = self.block()
        if key is not None:
            field.keys[key] = len(field.values) - 1
        return None

    def _scalar(self) -> str:
        text = self._tokens.next()
        if text[:1] in _QUOTES:
            while self._tokens.token[:1] in _QUOTES:
                self._tokens.next()
        return text.strip("\"'")
