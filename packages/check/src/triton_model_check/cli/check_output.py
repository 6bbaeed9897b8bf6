"""Prints what a check found."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from constructs_triton_core.findings import Finding, Severity, Verdict
from constructs_triton_core.untrusted.regular_files import read_regular
from constructs_triton_core.untrusted.terminal import Line, print_json, print_lines
from triton_model_check.cli.target_check import Checked

_COLOURS = {Severity.ERROR: "1;31", Severity.WARNING: "1;33"}
_BOLD, _DIM = "1", "2"
#: Warnings about models that load only in an image that contains more than AWS's.
_DEPENDS_ON_IMAGE = ("python-import-missing", "python-environment-elsewhere")


def print_report_json(checked: Checked, answers: dict[str, str] | None) -> None:
    report = checked.report
    document: dict[str, object] = {
        "target": checked.target and checked.target.platform,
        "image_version": checked.target and checked.target.image_version,
        "default_models": list(checked.default_models),
        "verdict": report.verdict,
        "findings": [finding.to_dict() for finding in report.findings],
        "not_checked": list(report.not_checked),
    }
    if answers is not None:
        document["server"] = answers
    print_json(document)


def print_report(checked: Checked, root: Path, answers: dict[str, str] | None) -> None:
    report = checked.report
    for finding in report.findings:
        print_lines(*_block(finding, root))
    print_lines([(_summary(checked), _BOLD)])
    print_lines(*(f"  {line}" for line in report.not_checked))
    print_lines(*(f"server: {name}: {answer}" for name, answer in (answers or {}).items()))


def _block(finding: Finding, root: Path) -> Iterator[Line]:
    severity = (f"{finding.severity.value}[{finding.code}]", _COLOURS[finding.severity])
    yield [(finding.location, _BOLD), ": ", severity, f": {finding.message}"]
    yield from _excerpt(finding, root)
    if finding.hint:
        yield ["    ", ("hint:", _BOLD), f" {finding.hint}"]


def _excerpt(finding: Finding, root: Path) -> Iterator[Line]:
    """Yield the line of a finding with a caret below the column; a long line is cut."""
    if finding.line is None:
        return
    lines = _lines(root / finding.path)
    if finding.line > len(lines):
        return
    text, column = lines[finding.line - 1].rstrip("\r"), (finding.column or 1) - 1
    start = max(0, column - 60)
    gutter = f"{finding.line:>4} | "
    yield [(gutter, _DIM), _one_column_each(text[start : start + 100])]
    yield [" " * len(gutter) + " " * (column - start), ("^", _COLOURS[finding.severity])]


@lru_cache(maxsize=1)
def _lines(path: Path) -> list[str]:
    """Return the lines of a file; the findings of a file follow each other."""
    try:
        return read_regular(path).decode("utf-8", "replace").split("\n")
    except OSError:
        return []


def _one_column_each(text: str) -> str:
    """Replace control characters by one character each, so that the caret is in the right column."""
    return "".join(
        character if character.isprintable() else " " if character == "\t" else "?" for character in text
    )


def _summary(checked: Checked) -> str:
    report = checked.report
    counts = f"{_plural(len(report.errors), 'error')}, {_plural(len(report.warnings), 'warning')}"
    is_open = report.not_checked or any(each.code in _DEPENDS_ON_IMAGE for each in report.warnings)
    words = report.verdict.words
    if report.verdict is Verdict.LOADS and is_open:
        words = "Triton accepts what was checked"
    if words.startswith("Triton"):
        return f"{counts}: {words.replace('Triton', checked.subject, 1)}"
    return f"{counts}: {words}{checked.where}"


def _plural(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"
