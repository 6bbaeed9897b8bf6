"""``constructs-triton explain``: codes of checks, rehearsals and diagnoses alike."""

from __future__ import annotations

import json
import re

import pytest
from parts import part

from cdk_rehearse.cli import main as rehearse
from cdk_rehearse.updates.codes import CODES
from constructs_triton.cli import main
from constructs_triton_core.facts.failures import known_failures
from triton_model_check.cli import main as check
from triton_model_check.facts.compatibility import RULES


# A test for each code would take longer to begin and to end than to run.
@pytest.mark.parametrize(
    "codes",
    [
        list(CODES),
        part(each.id for each in known_failures()),
        [each.code for each in RULES],
    ],
    ids=["rehearsals", "failures", "targets"],
)
def test_every_code_is_explained(codes: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """What it means and how to fix it, without placeholders;
    a code of two commands has both meanings.
    """
    assert [code for code in codes if not is_explained(code, capsys)] == []


def is_explained(code: str, capsys: pytest.CaptureFixture[str]) -> bool:
    """Whether ``explain`` prints title and fix of each meaning of a code."""
    if main(["explain", code, "--json"]) != 0:
        return False
    found = json.loads(capsys.readouterr().out)["codes"]
    return (
        len(found) == (2 if code == "backend-unknown" else 1)
        and all(each["code"] == code and each["title"] and each["fix"] for each in found)
        and not re.search(r"\{\w", found[-1]["title"] + found[-1]["fix"])
    )


@pytest.mark.parametrize("code", ["text-enum", "rehearse-leftover", "ping-health-check"])
def test_every_program_explains_every_code(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    """``explain`` of the checker, of the rehearsal and of the constructs print the same."""
    printed = [
        (program(["explain", code]), capsys.readouterr().out) for program in (main, check, rehearse)
    ]
    assert printed[0][0] == 0
    assert printed[0][1].startswith(f"{code}: ")
    assert len({*printed}) == 1


@pytest.mark.parametrize(
    ("code", "title"),
    [
        ("py-execute", "execute() of model.py raised: ValueError: bad row."),
        (
            "archive-too-large",
            "The archive is larger than the memory or the disk of the instance type.",
        ),
    ],
)
def test_title_keeps_the_case_of_code(
    code: str, title: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A title begins in upper case, but not a function or a file,
    and is one line of the message.
    """
    assert main(["explain", code]) == 0
    assert capsys.readouterr().out.startswith(f"{code}: {title}\n")


def test_unknown_code_asks_for_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    """A misspelt code of a rehearsal is an error with a question,
    in the program of the rehearsal too.
    """
    assert rehearse(["explain", "rehearse-leftovers"]) == 2
    assert 'did you mean "rehearse-leftover"?' in capsys.readouterr().err
