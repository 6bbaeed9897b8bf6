"""What the command line prints of names that other people chose."""

from __future__ import annotations

import ast
import contextlib
import json
import os
from pathlib import Path

import pytest
from workspace import PACKAGES

from constructs_triton.cli import COMMANDS, main

HOSTILE = "\x1b]0;T\x07\n::error::x\u202e"


def _direct_output(path: Path) -> set[str]:
    """Return the calls of a module that write without constructs_triton_core.untrusted.terminal."""
    calls = (
        ast.unparse(node)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
    )
    return {
        call
        for call in calls
        if call.startswith(("print(", "sys.stdout.write(", "sys.stderr.write(", "Console().print"))
        or (call.startswith("json.dump(") and "sys.stdout" in call)
    }


def test_commands_print_through_one_module() -> None:
    """No module of the command line prints, writes to a standard stream or
    draws a table by itself.
    """
    found = {
        path.relative_to(each.root).as_posix(): _direct_output(path)
        for each in PACKAGES.values()
        for path in each.modules
        if {"cli", "program"} & {*path.relative_to(each.root).parts}
    }
    assert len(found) > len(COMMANDS)
    assert not {path for path, calls in found.items() if calls}


def _repository(root: Path) -> Path:
    """Write a repository whose names of a folder, a tensor and a file are hostile."""
    model = root / f"m{HOSTILE.replace('/', '')}"
    (model / "1").mkdir(parents=True)
    (model / "config.pbtxt").write_text(
        'backend: "python"\ninput { name: '
        '"\\033]0;T\\007\\n::error::x" data_type: TYPE_FP32 dims: 1 }\n'
    )
    (model / "1" / os.fsdecode(b"\xff\x1b[2J")).write_text("")
    return root


@pytest.mark.parametrize(
    "words",
    [
        ["check", "{repository}"],
        ["check", "{repository}", "--target", "sagemaker"],
        ["pack", "{repository}", "-o", "{out}"],
        ["config", "show", "{repository}"],
        ["config", "show", "{repository}", "--mermaid"],
        ["model", "new", "{repository}" + HOSTILE],
        ["plan", HOSTILE.replace("\n", "")],
        ["invoke", "x", "--input", HOSTILE],
        ["facts", "instance", HOSTILE],
        ["check", "{repository}", "--target", HOSTILE],
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_no_control_character_is_sent(
    words: list[str], as_json: bool, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Neither output nor errors contain control characters or a forged command for a CI service."""
    repository = _repository(tmp_path / "r")
    given = [word.format(repository=repository, out=tmp_path / "out") for word in words]
    with contextlib.suppress(SystemExit):
        main([*given, "--json"] if as_json else given)
    for stream in capsysbinary.readouterr():
        lines = stream.decode("utf-8").split("\n")
        assert not [line for line in lines if not line.isprintable()]
        assert not [line for line in lines if line.lstrip().startswith("::")]


@pytest.mark.parametrize(
    ("words", "code"),
    [(["check", "missing"], 2), (["plan"], 2), (["pack", "empty", "-o", "out"], 1)],
)
def test_failure_is_json_too(
    words: list[str],
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """With --json a program that reads standard output gets a JSON object for each failure."""
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    try:
        ended = main([*words, "--json"])
    except SystemExit as stop:
        ended = int(str(stop.code))
    document = json.loads(capsys.readouterr().out)
    assert ended == code
    assert document["error"]
    assert bool(document["findings"]) == (words[0] == "pack")
