"""Where the findings of a check point to."""

from __future__ import annotations

from pathlib import Path

from constructs_triton_core.findings import Finding
from triton_model_check.checks.report import Report

_FIXED = "config.pbtxt"


def misplaced(report: Report, root: Path) -> list[Finding]:
    """Return the findings whose place is not in a file, or not within its text.

    A repository without any file has a fixed name in place of one.
    """
    is_empty = not any(path.is_file() for path in root.rglob("*"))
    return [each for each in report.findings if not _is_in_file(each, root, is_empty)]


def _is_in_file(finding: Finding, root: Path, is_empty: bool) -> bool:
    place = finding.place
    if place is None:
        return False
    file = root / place.file
    if not file.is_file():
        return is_empty and file.name == _FIXED and place[1:] == (1, 1, 1, 1)
    lines = file.read_bytes().decode("utf-8", "replace").split("\n")
    is_ordered = (1, 1) <= (place.line, place.column) <= (place.end_line, place.end_column)
    ends = ((place.line, place.column), (place.end_line, place.end_column))
    return is_ordered and all(
        line <= len(lines) and column <= len(lines[line - 1]) + 1 for line, column in ends
    )
