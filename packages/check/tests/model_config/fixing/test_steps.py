"""What the steps of a fix change in a text: only their place, with the comments and the layout around it."""

from __future__ import annotations

import pytest

from triton_model_check.model_config.fixing.steps import (
    Step,
    add,
    put,
    remove,
    rename,
    replace_string,
    replace_word,
    safe,
)
from triton_model_check.model_config.locations import Locations

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


def _applied(text: str, *steps: Step) -> str | None:
    changes = safe(*steps).changes(text, Locations(text))
    for start, end, new in reversed(changes or ()):
        text = f"{text[:start]}{new}{text[end:]}"
    return None if changes is None else text


@pytest.mark.parametrize(
    ("step", "old", "new"),
    [
        (remove("instance_group", 0, "gpus"), "    gpus: [ 0, 1 ]\n", ""),
        (remove("instance_group", 0, "count"), "count: 1  # one", "# one"),
        (remove("instance_group", 0, "gpus", 1), "[ 0, 1 ]", "[ 0 ]"),
        (remove("instance_group", 0, "gpus", 0), "[ 0, 1 ]", "[ 1 ]"),
        (remove("instance_group", 1), ",\n  {\n    count: 2\n  }", ""),
        (remove("instance_group"), BLOCK, ""),
        (put(("instance_group", 1, "count"), "3"), "count: 2", "count: 3"),
        (put(("instance_group", 1, "kind"), "KIND_CPU"), "count: 2\n", "count: 2\n    kind: KIND_CPU\n"),
        (put(("name",), '"m"'), "  }\n]\n", '  }\n]\nname: "m"\n'),
        (rename(("instance_group", 0, "gpus"), "profile"), "gpus:", "profile:"),
    ],
)
def test_step_changes_only_its_place(step: Step, old: str, new: str) -> None:
    """The text is as before but for this replacement, with either line end."""
    assert _applied(BLOCK, step) == BLOCK.replace(old, new)
    windows = BLOCK.replace("\n", "\r\n")
    assert _applied(windows, step) == BLOCK.replace(old, new).replace("\n", "\r\n")


@pytest.mark.parametrize(
    ("step", "text", "fixed"),
    [
        (remove("a"), "a: 1; b: 2", "b: 2"),
        (remove("b"), "a: 1; b: 2  # last", "a: 1; # last"),
        (remove("a"), "a: 1\na: 2\nb: 3", "b: 3"),
        (remove("a"), "a: 1", ""),
        (remove("m", "a"), "m {a: 1}", "m {}"),
        (add(("m",), "a: 1"), "m {}", "m { a: 1 }"),
        (add(("m",), "a: 1"), "m {\n}", "m {\n  a: 1\n}"),
        (add(("m",), "a: 1"), "m <\n  # c\n  b: 2 >", "m <\n  # c\n  b: 2 a: 1 >"),
        (add((), "a: 1"), "b: 2", "b: 2\na: 1\n"),
        (put(("m", 0, "a"), "1"), "m: [ { b: 2 } ]", "m: [ { b: 2 a: 1 } ]"),
        (replace_word("exec", "execute"), "def exec(self): ...", "def execute(self): ..."),
        (replace_string("x", "X", 2), "'x'\n'x'", "'x'\n'X'"),
    ],
)
def test_layout_in_one_line_is_kept(step: Step, text: str, fixed: str) -> None:
    """Blanks, signs and comments beside the place remain."""
    assert _applied(text, step) == fixed


def test_several_elements_take_their_commas() -> None:
    """Of a list, what remains is a list without a comma at its end."""
    steps = [remove("a", index) for index in (1, 2)]
    assert _applied("a: [ 0, 1, 2 ]", *steps) == "a: [ 0 ]"
    assert _applied("a: [1, 2]", remove("a", 0), remove("a", 1)) == "a: []"


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (remove("b"), "a: 1"),
        (put(("a",), "1"), "a: 1 a: 2"),
        (put(("m", "a"), "1"), "b: 2"),
        (rename(("a",), "b"), "a: 1 a: 2"),
        (replace_word("exec", "execute"), "exec exec"),
        (replace_string("x", "X"), "x"),
    ],
)
def test_step_without_its_place_makes_no_fix(step: Step, text: str) -> None:
    """Where the place is absent, or one of several, nothing is proposed."""
    assert _applied(text, step) is None
