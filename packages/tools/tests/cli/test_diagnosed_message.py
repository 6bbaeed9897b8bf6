"""``constructs-triton diagnose --message``: what a pasted message means, without AWS."""

from __future__ import annotations

import json

import pytest

from constructs_triton.cli import main
from constructs_triton_core.facts.failures import Failure, known_failures


@pytest.mark.parametrize("failure", known_failures(), ids=lambda each: each.id)
def test_every_known_message_is_found(failure: Failure, capsys: pytest.CaptureFixture[str]) -> None:
    """The message of each entry, pasted as a page or a terminal breaks it, has its cause;
    exit code 0.
    """
    broken = "\n".join(failure.example.split(" "))
    for text in (failure.example, broken):
        assert main(["diagnose", "--message", text, "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["diagnoses"][0]["id"] == failure.id


def test_text_has_cause_and_fix(capsys: pytest.CaptureFixture[str]) -> None:
    """People see the cause in the first line, the fix in the second, then the message."""
    assert main(["diagnose", "--message", "ModuleNotFoundError: No module named 'torch'"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("cause: the Python package torch is not installed")
    assert lines[1].startswith("  fix: ")
    assert lines[2].startswith("  from the message: ModuleNotFoundError")


def test_unknown_message_is_not_a_success(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1: the message was looked at, and no entry of the catalogue matches it."""
    assert main(["diagnose", "--message", "all is well"]) == 1
    next_step = "give the whole message, or the log of the container with --log-file"
    assert capsys.readouterr().out == f"no known failure found; {next_step}\n"


def test_message_is_diagnosed_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """An endpoint or a log beside it is an error, because only one of them is looked at."""
    assert main(["diagnose", "digits", "--message", "x"]) == 2
    assert "--message: cannot be combined with ENDPOINT" in capsys.readouterr().err
    assert main(["diagnose", "--message", "x", "--log-file", "-"]) == 2
