"""Offsets in a text, and the lines and columns by which the Language Server Protocol names them.

A column is a number of code units: of UTF-16, unless client and server agree on others. So a
character such as an emoji has two columns. Source: Language Server Protocol 3.17, Position.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from lsprotocol.types import Position, PositionEncodingKind, Range

from constructs_triton_core.findings import Place

# Python's splitlines() knows more ends of lines, which the protocol does not have.
_END = re.compile(r"\r\n|\n|\r")
_FIRST_OF_TWO_UNITS = 0x10000


class Lines:
    """The lines of one text.

    Args:
        text: Text of a document.
        encoding: The code units that columns count. Default: UTF-16.
    """

    def __init__(
        self, text: str, encoding: PositionEncodingKind | str = PositionEncodingKind.Utf16
    ) -> None:
        self._text = text
        self._encoding = str(getattr(encoding, "value", encoding))
        ends = list(_END.finditer(text))
        self._starts = [0, *(end.end() for end in ends)]
        self._ends = [*(end.start() for end in ends), len(text)]

    def position(self, offset: int) -> Position:
        """Return the line and column of an offset, from 0."""
        line = bisect_right(self._starts, offset) - 1
        before = self._text[self._starts[line] : offset]
        return Position(line, self._units(before))

    def range(self, start: int, end: int) -> Range:
        """Return the range between two offsets."""
        return Range(self.position(start), self.position(end))

    def offset(self, position: Position) -> int:
        """Return the offset of a line and column; what is behind the end is the end."""
        if position.line >= len(self._starts):
            return len(self._text)
        start = self._starts[position.line]
        line = self._text[start : self._ends[position.line]]
        return start + self._characters(line, position.character)

    def range_of(self, place: Place) -> Range:
        """Return the range of a finding, which counts characters and only ends lines at ``\\n``."""
        start = self._offset_of(place.line, place.column)
        return self.range(start, max(start, self._offset_of(place.end_line, place.end_column)))

    def _offset_of(self, line: int, column: int) -> int:
        """Return the offset of a line and column that count characters from 1."""
        start = 0
        for _ in range(line - 1):
            found = self._text.find("\n", start)
            if found < 0:
                return len(self._text)
            start = found + 1
        return min(start + column - 1, len(self._text))

    def _units(self, text: str) -> int:
        """Return how many code units a text has."""
        if self._encoding == "utf-32" or text.isascii():
            return len(text)
        if self._encoding == "utf-8":
            return len(text.encode("utf-8", "surrogatepass"))
        return len(text) + sum(ord(character) >= _FIRST_OF_TWO_UNITS for character in text)

    def _characters(self, line: str, column: int) -> int:
        """Return how many characters of a line are before a column."""
        if line.isascii():
            return min(column, len(line))
        units = 0
        for index, character in enumerate(line):
            if units >= column:
                return index
            units += self._units(character)
        return len(line)
