"""Prints what a check found for a person, and as JSON for a program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from pathlib import Path

from constructs_triton_core.findings import Finding, Severity, Verdict
from constructs_triton_core.untrusted.regular_files import read_regular
from constructs_triton_core.untrusted.terminal import Line, print_json, print_lines
from triton_model_check.reporting.results import Result

_COLOURS = {Severity.ERROR: "1;31", Severity.WARNING: "1;33"}
_BOLD = "1"
_DIM = "2"
#: Of the JSON; a change that a reader can notice, beside a new field, makes it 3. Version 2 has the
#: verdict "unknown", and an object for each thing that was not checked.
_VERSION = 2


def print_as_json(results: Sequence[Result]) -> None:
    """Print one object: of the folder, or with a list of them if there are several."""
    if len(results) == 1:
        print_json({"version": _VERSION, **_document(results[0])})
        return

    documents = []
    for result in results:
        printed = result.from_working_folder()
        documents.append({"path": printed.name, **_document(printed)})
    print_json({"version": _VERSION, "repositories": documents})


def _document(result: Result) -> dict[str, object]:
    """Return a result as ``--json`` prints it."""
    report = result.report
    document: dict[str, object] = {
        **result.details,
        "verdict": report.verdict,
        "findings": [finding.to_dict() for finding in report.findings],
        "not_checked": [item._asdict() for item in result.not_checked],
        "ignored": [finding.to_dict() for finding in report.ignored],
    }
    if result.is_counted:
        document["statistics"] = dict(_counts(report.findings))
    if result.answers is not None:
        document["server"] = dict(result.answers)
    return document


def print_text(results: Sequence[Result]) -> None:
    """Print what was found in each folder, or how often, with one line that sums it up."""
    _lines.cache_clear()  # a file may have changed since
    if len(results) == 1:
        _print_result(results[0], "")
        return
    for result in results:
        printed = result.from_working_folder()
        _print_result(printed, f"{printed.name}: ")


def _print_result(result: Result, title: str) -> None:
    """Print the findings of a result, its summary and what was not checked."""
    findings = result.report.findings
    if result.is_counted:
        print_lines(*(f"{count:>6}  {code}" for code, count in _counts(findings)))
    else:
        blocks = (_block(finding, result.root) for finding in findings)
        print_lines(*chain.from_iterable(blocks))

    print_lines([(title, ""), (summary(result), _BOLD)])
    print_lines(*(f"  {line}" for line in _fixable(findings)))
    print_lines(*(f"  {item}" for item in result.not_checked))
    answers = result.answers or {}
    print_lines(*(f"server: {model}: {answer}" for model, answer in answers.items()))


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

    text = lines[finding.line - 1].rstrip("\r")
    column = (finding.column or 1) - 1
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
    """Replace control characters by one character each,
    so that the caret is in the right column.
    """
    return "".join(
        character if character.isprintable() else "?" for character in text.replace("\t", " ")
    )


def summary(result: Result) -> str:
    """Return the numbers of findings and the verdict."""
    report = result.report
    counts = [plural(len(report.errors), "error"), plural(len(report.warnings), "warning")]
    if report.ignored:
        counts.append(f"{len(report.ignored)} ignored")

    words = report.verdict.words.replace("Triton", result.subject, 1)
    if report.verdict is not Verdict.UNKNOWN:
        words = " ".join(result.thing if word == "it" else word for word in words.split(" "))
    if report.verdict is Verdict.CANNOT_BE_SERVED:
        words += result.where
    return f"{', '.join(counts)}: {words}"


def _fixable(findings: Iterable[Finding]) -> list[str]:
    """Return the line that says how many findings ``--fix`` would correct, if there are any."""
    fixes = [finding.fix for finding in findings if finding.fix is not None]
    safe = sum(fix.is_safe for fix in fixes)
    unsafe = len(fixes) - safe

    counts = []
    if safe:
        counts.append(f"{safe} fixable with --fix")
    if unsafe:
        counts.append(f"{unsafe} fixable with --fix --unsafe-fixes")
    return [", ".join(counts)] if counts else []


def plural(count: int, word: str) -> str:
    """Return a number with its noun."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def _counts(findings: Iterable[Finding]) -> list[tuple[str, int]]:
    """Return the codes with the number of their findings, the most frequent first."""
    counted = Counter(finding.code for finding in findings)
    return sorted(counted.items(), key=lambda row: (-row[1], row[0]))
