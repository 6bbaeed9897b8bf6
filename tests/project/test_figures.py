"""``make figures``: each figure beside its limit, and the exit code."""

from __future__ import annotations

import re

import figures.__main__ as command
import pytest
from figures import findings, measurements, thermometers
from figures.table import Row, at_least, at_most
from findings_ledger import HEAD

LEDGER = """{head}
assets: 2 repositories, as `constructs-triton check` reports them

warning python-import-missing                               2

one                                              {one}
two                                              warning python-import-missing (2)

{folder}: 3 repositories, with the verdict of Triton 24.10 without a GPU

wrongly refused      0
wrongly accepted     1

error   onnx-dims                                           4

one                                              rejected: error onnx-dims (4)
"""
#: The code is in the last six lines.
PACKED = '''
"""A module."""

import os

# A comment.
first, second = 1, 2
first, second = second, first
for each in (first, second):
    print(each)  # noqa: T201
pairs = [(row, {each for each in range(row)}) for row in range(3)]
flat = [0 if row else 1 for row in pairs]
'''


def _ledger(folder: str = "tests/oracle", one: str = "no findings") -> str:
    return LEDGER.format(head=HEAD, folder=folder, one=one)


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command has a cache of its own, and removes it."""
    monkeypatch.setenv("CONSTRUCTS_TRITON_CACHE_DIR", "")


@pytest.mark.parametrize(
    ("row", "mark", "code"),
    [
        (Row("words", 61, at_most(60)), "!", 1),
        (Row("words", 60, at_most(60)), " ", 0),
        (Row("rate", 24_999, at_least(25_000)), "!", 1),
        (Row("rate", 24_999, at_least(25_000), is_goal=True), "~", 0),
        (Row("rate", None, at_least(25_000), note="run it"), " ", 0),
        (Row("time", None, "in under ten minutes"), " ", 0),
        (Row("words", 1_000_000), " ", 0),
    ],
)
def test_missed_limit_is_marked_and_fails(
    row: Row,
    mark: str,
    code: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A goal and a figure that was not measured do not fail the command,
    and every group is printed.
    """
    monkeypatch.setattr(
        command, "GROUPS", {"first": lambda: [row], "second": lambda: [Row("lines", 1)]}
    )
    assert command.main([]) == code
    printed = capsys.readouterr().out
    assert re.findall(r"^(\S+)$", printed, re.MULTILINE) == ["first", "second"]
    assert f"\n{mark} {row.what} " in printed
    assert f"2 figures: {code} miss their limit" in printed


def test_unknown_group_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    """The message has the names of the groups."""
    with pytest.raises(SystemExit):
        command.main(["wrods"])
    assert "NAMES: must be among code, density, installed, words" in capsys.readouterr().err


def test_words_are_calculated(capsys: pytest.CaptureFixture[str]) -> None:
    """Each row has a number, the limit of its test, and the path of the test."""
    assert command.main(["words"]) == 0
    line = re.compile(
        r"^  hand-written pages, words +[\d,]+  at most 55,000 +tests/project/test_docu\w+\.py$",
        re.M,
    )
    assert line.search(capsys.readouterr().out)


def test_density_is_counted() -> None:
    """Docstrings, imports, blank lines and comments are no code;
    a swap is no parallel assignment.
    """
    found = thermometers.of_module(PACKED)
    assert found == {
        "lines": 6,
        "characters": sum(len(line.strip()) for line in PACKED.splitlines()[-6:]),
        "comments": 1,
        "statements": 6,
        "loop variables": 4,
        "each": 2,
        "comprehensions": 3,
        "nested comprehensions": 1,
        "conditional expressions": 1,
        "parallel assignments": 1,
    }


def test_density_stands_beside_praised_projects() -> None:
    """Each figure has those of the installed httpx, packaging and cfn-lint in its note."""
    rows = list(thermometers.density())
    assert len(rows) == len(thermometers.FIGURES)
    assert all(
        re.search(r"httpx [\d.]+, packaging [\d.]+, cfn-lint [\d.]+$", row.note) for row in rows
    )
    assert all(row.limit == "" for row in rows)


def test_ledgers_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sums of both are shown, and how many repositories have other findings;
    their folder may move.
    """
    answers = {
        "log": "b2\n\nnew\na1\n\nold\n",
        "rev-parse": "false\n",
        "show": _ledger(one="error layout"),
    }
    monkeypatch.setattr(findings, "git", lambda *words: answers.get(words[0], ""))
    assert findings.read(_ledger()).sums == {
        "repositories": 5,
        "warnings": 2,
        "errors": 4,
        "wrongly refused": 0,
        "wrongly accepted": 1,
    }
    rows = {row.what: row for row in findings.findings("c3")}
    assert rows["repositories"].note.endswith(" at a1, the first, 5 at c3")
    now, moved = (
        findings.read(_ledger()),
        findings.read(_ledger("packages/check/oracle", "error layout")),
    )
    assert [key for key in now.findings if now.findings[key] != moved.findings[key]] == [
        ("assets", "one")
    ]


def test_clone_without_history_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without earlier commits the present sums are printed, with what to do."""
    monkeypatch.setattr(findings, "git", lambda *_: "")
    rows = {row.what: row for row in findings.findings("c3")}
    assert "git fetch --unshallow" in rows["the first ledger"].note
    assert rows["ledger at c3"].value is None
    assert rows["errors"].value


def test_recorded_figure_is_the_last_one_below_now() -> None:
    """Columns differ between the tables of the page,
    and a part that is measured alone comes last.
    """
    compared = "| figure | limit | 1a2b | now | now / before | |\n|---|\n| rate | | 1 | 2 | 2 | |"
    alone = "| package | version |\n|---|\n| figure | limit | now |\n|---|\n| rate | | 3 (2 to 4) |"
    assert measurements.read_page(compared)["rate"] == "2"
    assert measurements.read_page(f"{compared}\n{alone}")["rate"] == "3 (2 to 4)"
