"""``constructs-triton diagnose --message``: what a pasted message means, without AWS."""

from __future__ import annotations

import json
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from constructs_triton.cli import main
from constructs_triton_core.facts.failures import known_failures

# A test for each entry would take longer to begin and to end than to run.
PARTS = 8


def found(text: str, capsys: pytest.CaptureFixture[str]) -> str:
    """The id of the first diagnosis of a message, which is printed with exit code 0."""
    assert main(["diagnose", "--message", text, "--json"]) == 0
    first: str = json.loads(capsys.readouterr().out)["diagnoses"][0]["id"]
    return first


@pytest.mark.parametrize("part", range(PARTS))
def test_every_known_message_is_found(part: int, capsys: pytest.CaptureFixture[str]) -> None:
    """The message of each entry has its cause; exit code 0."""
    failures = known_failures()[part::PARTS]
    other = {each.id: found(each.example, capsys) for each in failures}
    assert {name: first for name, first in other.items() if first != name} == {}


def test_messages_are_found_as_a_terminal_breaks_them(capsys: pytest.CaptureFixture[str]) -> None:
    """A message whose words are on lines of their own has its cause; one of ten is tried."""
    failures = known_failures()[::10]
    other = {each.id: found("\n".join(each.example.split(" ")), capsys) for each in failures}
    assert {name: first for name, first in other.items() if first != name} == {}


def test_text_has_cause_and_fix(capsys: pytest.CaptureFixture[str]) -> None:
    """People see the cause in the first line, the fix in the second, then the message."""
    assert main(["diagnose", "--message", "ModuleNotFoundError: No module named 'torch'"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("likely cause: the Python package torch is not installed")
    assert lines[1].startswith("  fix: ")
    assert lines[2].startswith("  from the message: ModuleNotFoundError")


def test_unknown_message_is_not_a_success(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1: the message was looked at, and no entry of the catalogue matches it."""
    assert main(["diagnose", "--message", "all is well"]) == 1
    first, second, *others = capsys.readouterr().out.splitlines()
    assert first == "cause: not known, no entry of the catalogue fits"
    assert second.startswith("  next: give the whole message, or the log of the container")
    assert len(others) <= 1


@pytest.mark.parametrize(
    ("message", "known", "step"),
    [
        (
            'Traceback (most recent call last):\n  File "/models/m/1/model.py", line 9, in f\n'
            '  File "/usr/lib/python3/dist-packages/x.py", line 3, in g\nBananaError: too ripe',
            "Python raised BananaError: too ripe, in /models/m/1/model.py, line 9",
            "look at /models/m/1/model.py, line 9",
        ),
        (
            "E1121 17:53:13.1 1 banana.cc:12] Invalid argument: the banana is straight",
            "Triton wrote it (banana.cc is a file of the server, not yours); its status "
            '"Invalid argument" means that a value of the request or of the configuration is '
            "refused",
            "collect the log of the container from its start",
        ),
    ],
)
def test_unknown_message_says_who_wrote_it(
    message: str, known: str, step: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without a cause, the first line says what the form of a message shows, the next what to do;
    a file of the server or of a package is not blamed on the user.
    """
    assert main(["diagnose", "--message", message]) == 1
    printed = " ".join(capsys.readouterr().out.split())
    assert f"no entry of the catalogue fits; {known} next: {step}" in printed


def test_message_is_diagnosed_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """An endpoint or a log beside it is an error, because only one of them is looked at."""
    assert main(["diagnose", "digits", "--message", "x"]) == 2
    assert "--message: cannot be combined with ENDPOINT" in capsys.readouterr().err
    assert main(["diagnose", "--message", "x", "--log-file", "-"]) == 2


@pytest.mark.parametrize(
    ("log", "code", "expected"),
    [
        ("I1121 17:53:13.1 1 server.cc:1] ready\n", 0, ["no known failure found"]),
        (
            "E1121 17:53:13.1 1 banana.cc:12] the banana is straight\nI1121 17:53:13.1 1 a.cc:1] b",
            1,
            [
                "cause: not known, no entry of the catalogue fits; Triton wrote it (banana.cc is a "
                "file of the server, not yours)",
                "  next: collect the log of the container from its start, with --log-verbose=1 "
                "(`diagnose --log-file FILE`)",
                "  last error in LOG: E1121 17:53:13.1 1 banana.cc:12] the banana is straight",
            ],
        ),
    ],
)
def test_an_error_without_an_entry_is_not_passed_over(
    log: str, code: int, expected: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A log whose error no entry explains is not called good: its last error is printed."""
    file = tmp_path / "triton.log"
    file.write_text(log)
    assert main(["diagnose", "--log-file", str(file)]) == code
    assert capsys.readouterr().out.replace(str(file), "LOG").splitlines() == expected


def test_a_message_that_looks_like_an_option(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error names the form with an equals sign; standard input takes any message."""
    with pytest.raises(SystemExit):
        main(["diagnose", "--message", "--zorp"])
    assert "if it is the value of --message, write --message=--zorp" in capsys.readouterr().err
    assert main(["diagnose", "--message=--zorp"]) == 1
    message = TextIOWrapper(BytesIO(b"ModuleNotFoundError: No module named 'torch'"))
    monkeypatch.setattr(sys, "stdin", message)
    assert main(["diagnose", "--message", "-"]) == 0
    assert "torch is not installed" in capsys.readouterr().out


def test_an_unexplained_exception_beside_a_wrapper_is_quoted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A line that only says that something failed does not answer for the exception above it."""
    message = "ValueError: the number of zorps must be odd\n rank=0\nError: ShardCannotStart"
    assert main(["diagnose", "--message", message]) == 0
    first = capsys.readouterr().out.splitlines()[0]
    assert first.startswith("cause: not known, no entry of the catalogue fits")
    assert "the number of zorps must be odd" in first


def test_a_general_message_says_what_it_means(capsys: pytest.CaptureFixture[str]) -> None:
    """Many causes fit a KeyError, so the first line is none of them, and the second tells them
    apart.
    """
    assert main(["diagnose", "--message", "KeyError: 'scores'"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("cause: not certain from this message: ")
    assert "scores" in lines[0]
    assert lines[1].startswith("  look at: ")
    assert any(line.startswith("  often: ") for line in lines)
    assert lines[-1].startswith("  fix: ")
