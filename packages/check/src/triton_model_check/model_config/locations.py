"""Finds each field of a ``config.pbtxt`` in its text, when a finding or a fix needs it.

protobuf does not keep the places, so this module splits the text into tokens again. protobuf's
tokenizer would take quadratic time to tell the places in a long line. The text has been parsed
before, so brackets match and every field name is followed by its value.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import NamedTuple

from triton_model_check.model_config.text_spellings import STRING_OR_COMMENT

FieldPath = tuple[str | int, ...]
"""Names and indices from the top of the message: ``("input", 0, "dims")``. An entry of a map may
have its key instead of its index: ``("parameters", "EXECUTION_ENV_PATH")``."""

TOKEN = re.compile(rf"{STRING_OR_COMMENT.pattern}|-\s*[\w.][\w.+-]*|[\w.][\w.+-]*|[^\s]")
_QUOTES = ("'", '"')

Span = tuple[int, int]
"""The offsets of the first character, and of the one after the last."""

Range = tuple[int, int, int, int]
"""The first line and column of a piece of a text, and those after its last character,
counted from 1.
"""


class FieldSpans(NamedTuple):
    """The parts of one field in the text.

    ``statement`` is what has to go to remove it: name, value and a comma or semicolon behind them;
    for an element of a list only the element, with the comma behind it, or before it if it is the
    last one.
    """

    statement: Span
    name: Span
    value: Span


class RepeatedKey(NamedTuple):
    """Two entries of a map with one key: the places of both, in the order of the text."""

    key: str
    earlier: FieldPath
    later: FieldPath


class _Value(NamedTuple):
    """One value of a field, with its block if it is a message.

    ``start`` is where a finding points.
    """

    start: int
    spans: FieldSpans
    block: dict[str, _Field] | None


@dataclass(slots=True)
class _Field:
    """All values of one field of a block.

    ``keys`` has the index of each entry of a map, of several entries with one key the last one, as
    protobuf. ``repeated`` has each key that was there before, with the indices of both entries.
    """

    statements: list[FieldSpans] = dataclass_field(default_factory=list)
    values: list[_Value] = dataclass_field(default_factory=list)
    keys: dict[str, int] = dataclass_field(default_factory=dict)
    repeated: list[tuple[str, int, int]] = dataclass_field(default_factory=list)


class Locations:
    """The places of each field of one file."""

    def __init__(self, text: str) -> None:
        self._lines = [0, *(match.end() for match in re.finditer("\n", text))]
        try:
            self._root = _Walker(text).block()[0]
        except Exception:  # a finding without a place is better than none
            self._root = {}

    def find(self, path: FieldPath) -> Range | None:
        """Return the place of a field, or of the nearest enclosing field that is in the file."""
        start, spans, _ = self._look_up(path)
        return None if spans is None else (*self._place(start), *self._place(spans.value[1]))

    def spans(self, path: FieldPath) -> FieldSpans | None:
        """Return the parts of exactly this field; ``None`` if it is not there,
        or given several times.
        """
        _, spans, is_exact = self._look_up(path)
        return spans if is_exact else None

    def statements_at(self, offset: int) -> list[FieldSpans]:
        """Return all statements of the field of which a value begins at an offset."""
        blocks = [self._root]
        while blocks:
            for field in blocks.pop().values():
                if any(each.value[0] == offset for each in field.statements):
                    return field.statements
                blocks += [value.block for value in field.values if value.block]
        return []

    def names_beside(self, offset: int) -> frozenset[str]:
        """Return the names of all fields of the block that has a field's name at an offset."""
        blocks = [self._root]
        while blocks:
            block = blocks.pop()
            for field in block.values():
                if any(each.name[0] == offset for each in field.statements):
                    return frozenset(block)
                blocks += [value.block for value in field.values if value.block]
        return frozenset()

    def repeated_keys(self) -> Iterator[RepeatedKey]:
        """Yield every key that a map has twice, with the places of both entries."""
        blocks: list[tuple[FieldPath, dict[str, _Field]]] = [((), self._root)]
        while blocks:
            path, block = blocks.pop()
            for name, field in block.items():
                for key, earlier, later in field.repeated:
                    yield RepeatedKey(key, (*path, name, earlier), (*path, name, later))
                for index, value in enumerate(field.values):
                    if value.block:
                        blocks.append(((*path, name, index), value.block))

    def _place(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._lines, offset)
        return line, offset - self._lines[line - 1] + 1

    def _look_up(self, path: FieldPath) -> tuple[int, FieldSpans | None, bool]:
        """Return where the field starts, its parts,
        and whether it is exactly the field of the path.
        """
        start = 0
        spans: FieldSpans | None = None
        is_exact = False
        block: dict[str, _Field] | None = self._root
        rest = list(reversed(path))
        while rest:
            field = (block or {}).get(str(rest.pop()))
            if field is None:
                return start, spans, False
            spans = field.statements[0]
            start = spans.name[0]
            is_exact = len(field.statements) == 1
            index = 0
            # The next part of the path may choose one value: by its index, or by its key in a map.
            if rest and (isinstance(rest[-1], int) or rest[-1] in field.keys):
                chosen = rest.pop()
                index = chosen if isinstance(chosen, int) else field.keys[chosen]
                if index >= len(field.values):
                    return start, spans, False
                start = field.values[index].start
                spans = field.values[index].spans
                is_exact = True
            block = field.values[index].block if field.values else None
        return start, spans, is_exact


class _Tokens:
    """The tokens of one file without comments, with a current token; "" at the end."""

    def __init__(self, text: str) -> None:
        self._found = [match for match in TOKEN.finditer(text) if not match.group().startswith("#")]
        self._index = 0
        self.token = self._found[0].group() if self._found else ""

    @property
    def span(self) -> Span:
        """The place of the current token; empty at the end."""
        return self._found[self._index].span() if self.token else (self.end, self.end)

    @property
    def end(self) -> int:
        """The end of the token before the current one."""
        return self._found[min(self._index, len(self._found)) - 1].end()

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
        """Return the fields up to the end of a block or file,
        and the key if it is an entry of a map.
        """
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
        """Read one statement, and add its places to those of its field."""
        tokens, name, text = self._tokens, self._tokens.span, None
        field = fields.setdefault(tokens.next(), _Field())
        tokens.skip(":")
        start, is_list, block = tokens.span[0], tokens.skip("["), None
        if is_list:
            self._read_list(field, name)
        else:
            text, block = self._read_value(field)
        value = (start, tokens.end)
        tokens.skip(",", ";")
        spans = FieldSpans((name[0], tokens.end), name, value)
        field.statements.append(spans)
        if not is_list:
            field.values.append(_Value(name[0], spans, block))
        return text

    def _read_list(self, field: _Field, name: Span) -> None:
        """Read the elements of a list; the last one takes the comma before it."""
        tokens = self._tokens
        comma: int | None = None  # where the one before the next element is
        while tokens.token and not tokens.skip("]"):
            start = tokens.span[0]
            _, block = self._read_value(field)
            value = (start, tokens.end)

            statement = value
            if tokens.skip(","):
                statement = (start, tokens.end)
                comma = tokens.end - 1
            elif comma is not None:
                statement = (comma, value[1])
            field.values.append(_Value(start, FieldSpans(statement, name, value), block))

    def _read_value(self, field: _Field) -> tuple[str | None, dict[str, _Field] | None]:
        """Return the text of a scalar, or the block of a message,
        which is the next value of the field.
        """
        if not self._tokens.skip("{", "<"):
            return self._scalar(), None
        block, key = self.block()
        if key is not None:
            index = len(field.values)
            if key in field.keys:
                field.repeated.append((key, field.keys[key], index))
            field.keys[key] = index
        return None, block

    def _scalar(self) -> str:
        token = self._tokens.next()
        text = token.strip("\"'")
        if token[:1] in _QUOTES:
            while self._tokens.token[:1] in _QUOTES:  # adjacent strings are one
                text += self._tokens.next().strip("\"'")
        return text
