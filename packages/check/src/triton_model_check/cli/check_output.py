"""Prints what a check found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from constructs_triton_core.findings import Finding, Severity, Verdict
from constructs_triton_core.untrusted.regular_files import read_regular
from constructs_triton_core.untrusted.terminal import Line, print_json, print_lines
from triton_model_check.cli.check_paths import from_working_folder
from triton_model_check.cli.target_check import Checked
from triton_model_check.model_config.choosing.choice import count_codes

_COLOURS = {Severity.ERROR: "1;31", Severity.WARNING: "1;33"}
_BOLD, _DIM = "1", "2"
#: Warnings about models that load only in an image that contains more than AWS's.
_DEPENDS_ON_IMAGE = ("python-import-missing", "python-environment-elsewhere")


Answers = dict[str, str] | None
"""What a server says of each model, if one was asked."""


def print_reports(checked: Sequence[Checked], answers: Sequence[Answers], *, counts_only: bool) -> None:
    """Print what was found in each repository, with one line that sums it up.

    Paths are relative to the repository if there is one, else to the working folder.
    """
    is_one = len(checked) == 1
    for each, answer in zip(checked, answers, strict=True):
        report = each.report if is_one else from_working_folder(each.report)
        if counts_only:
            print_lines(*(f"{count:>6}  {code}" for code, count in count_codes(report.findings)))
        else:
            root = Path(report.repository if is_one else ".")
            print_lines(*(line for finding in report.findings for line in _block(finding, root)))
        print_lines([("" if is_one else f"{report.repository}: ", ""), (_summary(each), _BOLD)])
        print_lines(*(f"  {line}" for line in report.not_checked))
        print_lines(*(f"server: {name}: {said}" for name, said in (answer or {}).items()))


def print_reports_json(checked: Sequence[Checked], answers: Sequence[Answers], *, with_counts: bool) -> None:
    """Print one document, or with several repositories a list of their documents."""
    if len(checked) == 1:
        print_json(_document(checked[0], answers[0], with_counts=with_counts))
        return
    documents = []
    for each, answer in zip(checked, answers, strict=True):
        moved = each._replace(report=from_working_folder(each.report))
        documents.append(
            {"path": each.report.repository, **_document(moved, answer, with_counts=with_counts)}
        )
    print_json({"repositories": documents})


def _document(checked: Checked, answers: Answers, *, with_counts: bool) -> dict[str, object]:
    report = checked.report
    document: dict[str, object] = {
        "endpoint": checked.endpoint,
        "default_models": list(checked.default_models),
        "verdict": report.verdict,
        "findings": [finding.to_dict() for finding in report.findings],
        "not_checked": list(report.not_checked),
        "ignored": [finding.to_dict() for finding in report.ignored],
    }
    if with_counts:
        document["statistics"] = dict(count_codes(report.findings))
    if answers is not None:
        document["server"] = answers
    return document


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
    report, where = checked.report, checked.where
    counts = f"{_plural(len(report.errors), 'error')}, {_plural(len(report.warnings), 'warning')}"
    if report.ignored:
        counts += f", {len(report.ignored)} ignored"
    is_open = report.not_checked or any(each.code in _DEPENDS_ON_IMAGE for each in report.warnings)
    if report.verdict is Verdict.LOADS and is_open:
        return f"{counts}: Triton accepts what was checked{where}"
    return f"{counts}: {report.verdict.words}{where}"


def _plural(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"
