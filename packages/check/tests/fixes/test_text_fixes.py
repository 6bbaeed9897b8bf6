"""Which faults of a text have a fix, and that the text can be parsed with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from triton_model_check.fixes.text_fixes import fix_of_fault
from triton_model_check.model.folder import ModelFolder
from triton_model_check.model_config.text import read_text_fault


def _fixed(folder: Path, text: str) -> str | None:
    """Apply the fix of the first fault; ``None`` if it has none."""
    (folder / "config.pbtxt").write_bytes(text.encode())
    _, fault = read_text_fault(text)
    assert fault is not None
    remedy = fix_of_fault(fault, text)
    fix = remedy.fix(ModelFolder("m", folder), "m/config.pbtxt", ()) if remedy else None
    for edit in fix.edits if fix else ():
        text = f"{text[: edit.start]}{edit.text}{text[edit.end :]}"
    return None if fix is None else text


@pytest.mark.parametrize(
    ("text", "fixed"),
    [
        ("max_batch_size 8", "max_batch_size: 8"),
        ("name: 'm'\r\nmax_batch_size = 8", "name: 'm'\r\nmax_batch_size : 8"),
        ("input { dims [ 4 ] }", "input { dims: [ 4 ] }"),
        ('max_batch_size: "8"', "max_batch_size: 8"),
        ("max_batch_size: 0b101", "max_batch_size: 5"),
        ("max_batch_size: -1_0", "max_batch_size: -10"),
        ("backend: python\n", 'backend: "python"\n'),
        ("input { optional: 'True' }", "input { optional: true }"),
        ("max_batch_size:\u00a08", "max_batch_size: 8"),
        ("instance_group { kind: 'KIND_CPU' }", "instance_group { kind: KIND_CPU }"),
        ("input { name: 'x' name: 'x' }", "input { name: 'x' }"),
        ("input { nam: 'x' }", "input { name: 'x' }"),
    ],
)
def test_fault_with_one_spelling_is_fixed(tmp_path: Path, text: str, fixed: str) -> None:
    """The place of the fault is spelled as Triton reads it, and the text parses."""
    assert _fixed(tmp_path, text) == fixed
    assert read_text_fault(fixed)[1] is None


@pytest.mark.parametrize(
    "text",
    [
        "max_batch_size: '8.5'",
        "max_batch_size / 8",
        "max_batch_size",
        "max_batch_size  # none\n8",
        "name: \u201cm\u201d",
        "input { name: 'x' name: 'y' }",
        "max_batch_size: ${size}",
        "backend: python-2\n",
        '{ "name": "m" }',
        "zzzzzzzz: 1",
    ],
)
def test_fault_with_several_meanings_has_no_fix(tmp_path: Path, text: str) -> None:
    """Nothing is guessed from a text that may mean several things."""
    assert _fixed(tmp_path, text) is None
