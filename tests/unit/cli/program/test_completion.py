"""``constructs-triton completion``, and the answers to the scripts that it prints."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from constructs_triton.cli import COMMANDS, main


def _completions(line: str, folder: Path) -> list[str]:
    """What the program answers to the script of a shell, with the cursor at the end of the line."""
    answer = folder.with_suffix(".answer")
    environment = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_SUPPRESS_SPACE": "1",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
    }
    command = [sys.executable, "-m", "constructs_triton.cli"]
    answer.write_text("")
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, capture_output=True, check=True
    )
    assert done.stdout == b""
    return sorted(answer.read_text().split("\n"))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("rehe", ["rehearse"]),
        ("cost prices --out", ["--output"]),
        ("completion ", ["--help", "bash", "fish", "zsh"]),
        ("plan ben", ["benchmark.csv"]),
        ("status digits --region ", [""]),
        ("cost pricse ", [""]),
        ("nosuch ", [""]),
    ],
    ids=[
        "command",
        "option of a command of two words",
        "choices",
        "file",
        "value that is no path",
        "after a misspelt second word",
        "after a misspelt command",
    ],
)
def test_words_are_completed(words: str, expected: list[str], tmp_path: Path) -> None:
    """Only by what may follow, and after an error by nothing."""
    for name in ("benchmark.csv", "requests.json"):
        (tmp_path / name).touch()
    assert _completions(f"constructs-triton {words}", tmp_path) == expected


def test_commands_of_a_command_are_beside_its_arguments(tmp_path: Path) -> None:
    """The word after ``cost`` is one of its commands, a template, or an option."""
    (tmp_path / "template.json").touch()
    completed = _completions("constructs-triton cost ", tmp_path)
    assert [name for name in completed if not name.startswith("--")] == [
        "idle",
        "prices",
        "template.json",
    ]
    assert "--requests-per-second" in completed


def test_every_command_is_completed(tmp_path: Path) -> None:
    """The first word is completed to each command of one word."""
    top = [name for name in COMMANDS if " " not in name]
    completed = _completions("constructs-triton ", tmp_path)
    assert completed == sorted([*top, "--help", "--version"])


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_script_registers_the_program(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Each shell gets a script that asks constructs-triton."""
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert "_ARGCOMPLETE" in script
    registered = {"bash": "complete ", "zsh": "compdef ", "fish": "complete --command "}
    assert any(
        line.lstrip().startswith(registered[shell]) and "constructs-triton" in line
        for line in script.splitlines()
    )
