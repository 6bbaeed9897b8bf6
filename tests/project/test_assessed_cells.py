"""The comparison with other libraries: each cell was assessed under the row's published name.

``assessed.csv`` is the study of the other libraries: for each row the name under which it was
assessed, the words of the study, the day, the basis, and for each library a verdict that begins
with a mark. ``peers.csv`` and the table of features are what is published. Who changes the name of
a row assesses its cells again.
"""

from __future__ import annotations

import csv
from datetime import date
from pathlib import Path

from documentation.comparison import PEERS, compared
from members import PROJECT

FOLDER = PROJECT / "dev" / "documentation"
#: The marks of the study, and what the page says.
MARKS = {"Y": "yes", "P": "partly", "N": "no", "L1": "raw", "—": "n/a"}
#: Rows whose cells are words instead of marks.
IN_WORDS = ("111", "112")
IN_OTHER_WORDS = {"N": "none", "on by default (TelemetryOptOut)": "on by default"}


def _read(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


ASSESSED = {row["number"]: row for row in _read(FOLDER / "assessed.csv")}


def _verdict(number: str, cell: str) -> str:
    if number in IN_WORDS:
        return IN_OTHER_WORDS.get(cell, cell)
    return MARKS[cell.partition(" ")[0]]


def test_each_cell_was_assessed_under_the_published_name() -> None:
    """The name of each row is the one under which it was assessed,
    and each cell has the verdict of then.
    """
    published = {number: (name, *cells) for number, name, _, *cells in compared()}
    expected = {
        number: (row["name"], *(_verdict(number, row[library]) for library in PEERS))
        for number, row in ASSESSED.items()
    }
    differing = {
        number: (published.get(number), expected.get(number))
        for number in published.keys() | expected.keys()
        if published.get(number) != expected.get(number)
    }
    assert differing == {}, (
        "assess these cells again under the new name, then write assessed.csv and peers.csv"
    )


def test_each_assessment_has_its_words_day_and_basis() -> None:
    """A row whose name differs from the study's says why the verdict still holds,
    and when it was given.
    """
    for row in ASSESSED.values():
        assert date(2026, 11, 20) <= date.fromisoformat(row["assessed"])
        assert row["basis"]
        assert row["studied_as"] == row["name"] or row["basis"] != "the study's own name", row[
            "number"
        ]


def test_neighbours_name_rows_and_what_was_read() -> None:
    """Each tool outside the table names rows that exist, what it does better, a source,
    and that it was read, not run.
    """
    for row in _read(FOLDER / "neighbours.csv"):
        assert row["url"].startswith("https://")
        assert row["better"]
        assert row["basis"].startswith("read, not run: ")
        assert set(row["rows"].split()) <= ASSESSED.keys()
