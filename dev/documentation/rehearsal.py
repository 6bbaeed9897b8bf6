"""Writes the tables of a rehearsal's problems, from the codes and refusals of ``cdk_rehearse``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from cdk_rehearse.updates.codes import CODES, REFUSALS

PROJECT = Path(__file__).parents[2]
_PAGE = "rehearsal_problems.md"
_CODES = "| code | meaning | severity | basis |\n|---|---|---|---|\n"
_REFUSALS = "| change | basis |\n|---|---|\n"


def write_rehearsal_problems(folder: Path) -> None:
    """Write the page to a folder: the text of ``docs/``, with tables of what the code has today."""
    text = (PROJECT / "docs" / "reference" / _PAGE).read_text(encoding="utf-8")
    codes = (
        f"| `{name}` | {each.meaning} | {each.severity} | {each.basis} |"
        for name, each in CODES.items()
    )
    text = _with_table(text, _CODES, codes)
    text = _with_table(text, _REFUSALS, (f"| {each.meaning} | {each.basis} |" for each in REFUSALS))
    (folder / _PAGE).write_text(text, encoding="utf-8")


def _with_table(text: str, head: str, rows: Iterable[str]) -> str:
    """The text with other rows below the head of a table."""
    before, after = text.split(head)
    return f"{before}{head}" + "\n".join(rows) + "\n\n" + after.partition("\n\n")[2]
