"""What the steps of a fix change in a text: only their place,
with the comments and the layout around it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from triton_model_check.fixes.steps import (
    Remedy,
    put,
    remove,
    rename,
    replace_word,
    safe,
    string_meant,
)
from triton_model_check.model.folder import ModelFolder
from triton_model_check.model_config.locations import FieldPath

BLOCK = """\
instance_group [
  # the first GPU
  {
    count: 1  # one
    gpus: [ 0, 1 ]
    kind: KIND_GPU
  },
  {
    count: 2
  }
]
"""
ONE, TWO = ("instance_group", 0), ("instance_group", 1)


def _fixed(
    folder: Path, text: str, remedy: Remedy | None, field: FieldPath, file: str
) -> str | None:
    """Apply a fix to a file of a model; ``None`` if it is not possible there."""
    (folder / file).write_bytes(text.encode())
    assert remedy is not None
    fix = remedy.fix(ModelFolder("m", folder), f"m/{file}", field)
    for edit in reversed(fix.edits if fix else ()):
        text = f"{text[: edit.start]}{edit.text}{text[edit.end :]}"
    return None if fix is None else text


def _config(folder: Path, text: str, remedy: Remedy, field: FieldPath) -> str | None:
    return _fixed(folder, text, remedy, field, "config.pbtxt")


@pytest.mark.parametrize(
    ("remedy", "field", "old", "new"),
    [
        (safe(remove()), (*ONE, "gpus"), "    gpus: [ 0, 1 ]\n", ""),
        (safe(remove("count")), ONE, "count: 1  # one", "# one"),
        (safe(remove(1)), (*ONE, "gpus"), "[ 0, 1 ]", "[ 0 ]"),
        (safe(remove(0)), (*ONE, "gpus"), "[ 0, 1 ]", "[ 1 ]"),
        (safe(remove()), TWO, ",\n  {\n    count: 2\n  }", ""),
        (safe(remove(path=("instance_group",))), ONE, BLOCK, ""),
        (safe(put("3")), (*TWO, "count"), "count: 2", "count: 3"),
        (safe(put("KIND_CPU", "kind")), TWO, "count: 2\n", "count: 2\n    kind: KIND_CPU\n"),
        (safe(put('"m"', path=("name",))), ONE, "  }\n]\n", '  }\n]\nname: "m"\n'),
        (
            safe(rename("profile"), put('[ "0" ]')),
            (*ONE, "gpus"),
            "gpus: [ 0, 1 ]",
            'profile: [ "0" ]',
        ),
    ],
)
def test_fix_changes_only_its_place(
    tmp_path: Path, remedy: Remedy, field: FieldPath, old: str, new: str
) -> None:
    """The text is as before but for this replacement, with either line end."""
    assert _config(tmp_path, BLOCK, remedy, field) == BLOCK.replace(old, new)
    windows = BLOCK.replace("\n", "\r\n")
    assert _config(tmp_path, windows, remedy, field) == BLOCK.replace(old, new).replace(
        "\n", "\r\n"
    )


@pytest.mark.parametrize(
    ("remedy", "field", "text", "fixed"),
    [
        (safe(remove()), ("a",), "a: 1; b: 2", "b: 2"),
        (safe(remove()), ("b",), "a: 1; b: 2  # last", "a: 1; # last"),
        (safe(remove()), ("a",), "a: 1\na: 2\nb: 3", "b: 3"),
        (safe(remove()), ("a",), "a: 1", ""),
        (safe(remove("a")), ("m",), "m {a: 1}", "m {}"),
        (safe(put("1", "a")), ("m",), "m {}", "m { a: 1 }"),
        (safe(put("1", "a")), ("m",), "m {\n}", "m {\n  a: 1\n}"),
        (safe(put("1", "a")), ("m",), "m <\n  # c\n  b: 2 >", "m <\n  # c\n  b: 2 a: 1 >"),
        (safe(put("1", "a")), ("m", 0), "m: [ { b: 2 } ]", "m: [ { b: 2 a: 1 } ]"),
        (safe(put("1")), ("a",), "b: 2", "b: 2\na: 1\n"),
        (safe(remove(1), remove(2)), ("a",), "a: [ 0, 1, 2 ]", "a: [ 0 ]"),
        (safe(remove(0), remove(1)), ("a",), "a: [1, 2]", "a: []"),
    ],
)
def test_layout_of_a_line_is_kept(
    tmp_path: Path, remedy: Remedy, field: FieldPath, text: str, fixed: str
) -> None:
    """Blanks, signs and comments beside the place remain, and a list has no comma at its end."""
    assert _config(tmp_path, text, remedy, field) == fixed


@pytest.mark.parametrize(
    ("remedy", "field", "text"),
    [
        (safe(remove()), ("b",), "a: 1"),
        (safe(put("1")), ("a",), "a: 1 a: 2"),
        (safe(put("1", "a")), ("m",), "b: 2"),
        (safe(rename("b")), ("a",), "a: 1 a: 2"),
        (safe(remove(), put("1", "x", "y")), ("a",), "a: 1"),
    ],
)
def test_step_without_its_place_makes_no_fix(
    tmp_path: Path, remedy: Remedy, field: FieldPath, text: str
) -> None:
    """Where the place is absent, or one of several, nothing is proposed."""
    assert _config(tmp_path, text, remedy, field) is None


def test_word_of_a_python_file_is_replaced_if_it_is_the_only_one(tmp_path: Path) -> None:
    """A name that the code uses again, and a name beside its string,
    are not mistaken for the place.
    """

    def python(text: str, remedy: Remedy | None) -> str | None:
        return _fixed(tmp_path, text, remedy, (), "model.py")

    rename_method, hint = safe(replace_word("exec", "execute")), 'did you mean "image"?'
    assert python("def exec(self): ...", rename_method) == "def execute(self): ..."
    assert python("def exec(self): self.exec()", safe(replace_word("self", "this"))) is None
    assert python("img = get('imgae')", string_meant("imgae", hint, 1)) == "img = get('image')"
    assert (
        python("get('imgae')\nget('imgae')", string_meant("imgae", hint, 2))
        == "get('imgae')\nget('image')"
    )
    assert python("get('imgae', 'imgae')", string_meant("imgae", hint, 1)) is None
    assert string_meant("imgae", "add it") is None
    assert string_meant("img", hint) is None  # could be a name of its own
