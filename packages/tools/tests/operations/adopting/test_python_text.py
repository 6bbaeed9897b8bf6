"""Python text: values, calls that are too long for a line, and strings with quotes."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from constructs_triton_tools.operations.adopting.python_text import (
    Call,
    assignment,
    literal,
    render,
)

VALUES = st.recursive(
    st.text() | st.integers() | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


# The first strings of a process need a table of all characters, which a busy machine builds slowly.
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(VALUES)
def test_literal_is_the_value(value: Any) -> None:
    """The text of a value evaluates to it, whatever its strings contain."""
    text = render(literal(value), "")
    assert ast.literal_eval(text) == value
    assert text.isprintable() or "\n" in text


@pytest.mark.parametrize("length", [10, 40, 70, 120])
def test_text_is_as_the_formatter_writes_it(length: int, tmp_path: Path) -> None:
    """ruff leaves calls, lists, mappings and strings of every length as they are."""
    word = "x" * length
    quoted = [word, f"it's {word}", f'"{word}"', f"""'{word}' "x" """, "\x1b\u202e\\"]
    call = Call(
        "build", ["self", literal(word)], {"tags": literal({word: quoted}), "size": literal(3.0)}
    )
    lines = [
        assignment("short", literal(word)),
        assignment("made", call),
        assignment("", Call("run", [word])),
    ]
    nested = assignment("inner", Call("call", [literal(word), literal(quoted)]), "    ")
    file = tmp_path / "written.py"
    file.write_text("\n".join([*lines, "", "", "def function():", nested]) + "\n")
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "--diff", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
