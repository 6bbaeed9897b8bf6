"""Offsets, and the lines and columns of the protocol."""

from __future__ import annotations

import pytest
from lsprotocol.types import Position, PositionEncodingKind, Range

from constructs_triton_core.findings import Place
from triton_model_check.editor.lines import Lines

TEXT = "Äb 🎉c\r\nsecond\rthird\u2028still third\nlast"


@pytest.mark.parametrize(
    ("encoding", "column"),
    [
        (PositionEncodingKind.Utf8, 8),
        (PositionEncodingKind.Utf16, 5),
        (PositionEncodingKind.Utf32, 4),
    ],
)
def test_columns_count_the_units_of_the_encoding(
    encoding: PositionEncodingKind, column: int
) -> None:
    """The letter behind an umlaut and an emoji has another column in each encoding."""
    lines = Lines(TEXT, encoding)
    assert lines.position(TEXT.index("c")) == Position(0, column)
    assert lines.offset(Position(0, column)) == TEXT.index("c")


def test_lines_end_where_the_protocol_ends_them() -> None:
    """Three ends of lines count, and a separator that Python knows does not."""
    lines = Lines(TEXT)
    found = [lines.position(TEXT.index(word)).line for word in ("second", "third", "still", "last")]
    assert found == [1, 2, 2, 3]


@pytest.mark.parametrize("offset", range(len(TEXT)))
def test_offsets_come_back(offset: int) -> None:
    """Each character that is not in an end of a line has its own place."""
    lines = Lines(TEXT)
    if TEXT[offset] not in "\r\n":
        assert lines.offset(lines.position(offset)) == offset


def test_places_behind_the_end_are_the_end() -> None:
    """A column behind a line is its end, and a line behind the text is the end of the text."""
    lines = Lines(TEXT)
    assert lines.offset(Position(1, 99)) == TEXT.index("second") + len("second")
    assert lines.offset(Position(99, 0)) == len(TEXT)


def test_place_of_a_finding_counts_characters() -> None:
    """A finding ends lines only at line feeds; what is behind the text is its end."""
    text = "# 🎉\r\nname: 🎉 x\n"
    lines = Lines(text)
    found = lines.range_of(Place("config.pbtxt", 2, 9, 2, 10))
    assert found == Range(Position(1, 9), Position(1, 10))
    behind = lines.range_of(Place("config.pbtxt", 9, 1, 9, 1))
    assert behind == Range(Position(2, 0), Position(2, 0))
