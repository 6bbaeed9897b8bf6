"""The table of what the rehearsal said of each app, and the ledger of what is known to differ."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path

TABLE = Path(__file__).with_name("table.csv")
LEDGER = Path(__file__).with_name("ledger.csv")
RIGHT = "right"
STOPPED = "false stop"
NOT_BUILT = "not built"


@dataclass(frozen=True, order=True)
class Row:
    """One construct.

    Args:
        corpus: ``l2``, ``solutions`` or ``libraries``.
        construct: Its name in JSII.
        resources: Resources of its app.
        simulated: How many of them are of a type that the rehearsal simulates.
        wrong_found: Wrong edits of the app that were reported.
        wrong_edits: Wrong edits of the app.
        verdict: ``right``, ``false stop`` or ``not built``.
        note: What was reported, or why there is no app.
    """

    corpus: str
    construct: str
    resources: int
    simulated: int
    wrong_found: int
    wrong_edits: int
    verdict: str
    note: str = ""


def read_table() -> list[Row]:
    """The rows of the last complete run."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    numbers = ("resources", "simulated", "wrong_found", "wrong_edits")
    return [
        Row(**{name: int(text) if name in numbers else text for name, text in row.items()})  # type: ignore[arg-type]
        for row in rows
    ]


def write_table(rows: Iterable[Row]) -> None:
    """Replace the table."""
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        names = [field.name for field in fields(Row)]
        writer = csv.DictWriter(file, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(row) for row in sorted(rows))


def read_ledger() -> dict[str, str]:
    """The stops that are known, by construct, each with a reason."""
    with LEDGER.open(encoding="utf-8", newline="") as file:
        return {row["construct"]: row["reason"] for row in csv.DictReader(file)}


def figures(rows: Iterable[Row]) -> str:
    """A Markdown table with a line for each corpus."""
    every = list(rows)
    lines = [
        "| corpus | constructs | apps | resources | simulated | false stops | wrong edits found |",
        f"|{'---|' * 7}",
    ]
    for corpus in dict.fromkeys(row.corpus for row in every):
        own = [row for row in every if row.corpus == corpus]
        apps = [row for row in own if row.verdict != NOT_BUILT]
        cells = (
            corpus,
            len(own),
            len(apps),
            sum(row.resources for row in apps),
            sum(row.simulated for row in apps),
            sum(row.verdict == STOPPED for row in apps),
            f"{sum(row.wrong_found for row in apps)} of {sum(row.wrong_edits for row in apps)}",
        )
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines)
