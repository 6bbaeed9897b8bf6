"""The fields of a configuration that is being typed."""

from __future__ import annotations

import pytest

from triton_model_check.editor.outline import Cursor, Outline, cursor_at

COMPLETE = """# a comment { [
name: "first" 'second'
input [ { name: "a" dims: [ 1, -1 ] }, { name: "b" } ]
parameters { key: "k" value < string_value: "v" >; }
"""


def _cursor(text: str) -> Cursor:
    """Return the cursor at the bar of a text."""
    offset = text.index("|")
    found = cursor_at(text.replace("|", ""), offset)
    assert found is not None
    return found


def _all(text: str) -> list[tuple[str, list[str]]]:
    """Return the path of each field with its values."""
    return sorted(
        (
            ".".join((*field.block.names, field.name)),
            [scalar.text for scalar in field.scalars],
        )
        for field in Outline(text).fields()
    )


def test_complete_text() -> None:
    """Strings after each other are one, lists and both kinds of brackets are read."""
    assert _all(COMPLETE) == [
        ("input", []),
        ("input.dims", ["1", "-1"]),
        ("input.name", ["a"]),
        ("input.name", ["b"]),
        ("name", ["firstsecond"]),
        ("parameters", []),
        ("parameters.key", ["k"]),
        ("parameters.value", []),
        ("parameters.value.string_value", ["v"]),
    ]


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ('backend:\nname: "x"', [("backend", []), ("name", ["x"])]),
        ("backend:\ninput {", [("backend", []), ("input", [])]),
        ("backend:\ninput [", [("backend", []), ("input", [])]),
        ("max\nname: 'x'", [("max", []), ("name", ["x"])]),
        ('name "x"', [("name", ["x"])]),
        ("} ] name: 1", [("name", ["1"])]),
        ('"stray" name: 1', [("name", ["1"])]),
        ("dims: [ 1, 2 } name: 3", [("dims", ["1", "2"]), ("name", ["3"])]),
        ("{ a: 1", [("", []), (".a", ["1"])]),
    ],
)
def test_incomplete_text(text: str, fields: list[tuple[str, list[str]]]) -> None:
    """A field without a value, or a bracket without its partner, does not hide what follows."""
    assert _all(text) == fields


@pytest.mark.parametrize(
    ("text", "block", "field", "word"),
    [
        ("|", (), None, ""),
        ("max_ba|", (), None, "max_ba"),
        ("input { da| }", ("input",), None, "da"),
        ("input { data_type:| }", ("input",), "data_type", ""),
        ("input { data_type: TYPE_| }", ("input",), "data_type", "TYPE_"),
        ("input { data_type: TYPE_FP32 | }", ("input",), None, ""),
        ("input [ { name: 'a' }, { |", ("input",), None, ""),
        ("dims: [ 1, |", (), "dims", ""),
        ('name: "ab|c"', (), "name", "ab"),
        ('name: "ab|', (), "name", "ab"),
        ('name: "abc"|', (), None, ""),
        ("input { } |", (), None, ""),
    ],
)
def test_cursor(text: str, block: tuple[str, ...], field: str | None, word: str) -> None:
    """The message around the cursor, the field whose value comes next, and the word so far."""
    cursor = _cursor(text)
    assert cursor.block.names == block
    assert (cursor.field and cursor.field.name) == field
    assert cursor.word == word


def test_word_at_the_cursor_is_replaced_as_a_whole() -> None:
    """A string that is not closed ends at the cursor, so that what follows stays."""
    assert _cursor("max_|batch: 1").span == (0, 9)
    assert _cursor('name: "ab|cd"').span == (7, 11)
    assert _cursor('name: "ab| }').span == (7, 9)


def test_comment_has_no_cursor() -> None:
    """Nothing is proposed in a comment, at its end neither."""
    assert cursor_at("# comment", 4) is None
    assert cursor_at("# comment", 9) is None
    assert cursor_at("# comment\n", 10) is not None


def test_text_that_is_too_large_has_no_fields() -> None:
    """A file beyond the bound of a configuration is not read."""
    text = "a: 1\n" * 300_000
    assert list(Outline(text).fields()) == []
    assert cursor_at(text, 3) is None
