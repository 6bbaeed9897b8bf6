"""Prints what a check found for a person, and as JSON for a program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path

from constructs_triton_core.findings import Finding, Severity, Verdict
from constructs_triton_core.untrusted.regular_files import read_regular
from constructs_triton_core.untrusted.terminal import Line, print_json, print_lines
from triton_model_check.reporting.results import Result

_COLOURS = {Severity.ERROR: "1;31", Severity.WARNING: "1;33"}
_BOLD, _DIM = "1", "2"
#: Of the JSON; a change that a reader can notice, beside a new field, makes it 3. Version 2 has the
#: verdict "unknown", and an object for each thing that was not checked.
_VERSION = 2


def print_as_json(results: Sequence[Result]) -> None:
    """Print one object: of the folder, or with a list of them if there are several."""
    if len(results) == 1:
        document = _document(results[0])
    else:
        several = (each.from_working_folder() for each in results)
        documents = [{"path": each.name, **_document(each)} for each in several]
        document = {"repositories": documents}
    print_json({"version": _VERSION, **document})


def _document(result: Result) -> dict[str, object]:
    report = result.report
    document: dict[str, object] = {
        **result.details,
        "verdict": report.verdict,
        "findings": [finding.to_dict() for finding in report.findings],
        "not_checked": [each._asdict() for each in result.not_checked],
        "ignored": [finding.to_dict() for finding in report.ignored],
    }
    if result.is_counted:
        document["statistics"] = dict(_counts(report.findings))
    return document if result.answers is None else {**document, "server": dict(result.answers)}


def print_text(results: Sequence[Result]) -> None:
    """Print what was found in each folder, or how often, with one line that sums it up."""
    _lines.cache_clear()  # a file may have changed since
    is_one = len(results) == 1
    for each in results:
        result = each if is_one else each.from_working_folder()
        report = result.report
        if result.is_counted:
            print_lines(*(f"{count:>6}  {code}" for code, count in _counts(report.findings)))
        else:
            print_lines(*(line for found in report.findings for line in _block(found, result.root)))
        print_lines([("" if is_one else f"{result.name}: ", ""), (summary(result), _BOLD)])
        print_lines(*(f"  {line}" for line in (*_fixable(report.findings), *result.not_checked)))
        print_lines(*(f"server: {name}: {said}" for name, said in (result.answers or {}).items()))


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
    """Replace control characters by one character each,
    so that the caret is in the right column.
    """
    return "".join(
        character if character.isprintable() else " " if character == "\t" else "?"
        for character in text
    )


def summary(result: Result) -> str:
    """Return the numbers of findings and the verdict."""
    report = result.report
    counts = f"{plural(len(report.errors), 'error')}, {plural(len(report.warnings), 'warning')}"
    if report.ignored:
        counts += f", {len(report.ignored)} ignored"
    words = report.verdict.words.replace("Triton", result.subject, 1)
    if report.verdict is not Verdict.UNKNOWN:
        words = " ".join(result.thing if word == "it" else word for word in words.split(" "))
    if report.verdict is Verdict.CANNOT_BE_SERVED:
        words += result.where
    return f"{counts}: {words}"


def _fixable(findings: Iterable[Finding]) -> list[str]:
    """Return the line that says how many findings ``--fix`` would correct, if it is any."""
    safe = [each.fix.is_safe for each in findings if each.fix is not None]
    flags = {"--fix": sum(safe), "--fix --unsafe-fixes": len(safe) - sum(safe)}
    counts = [f"{count} fixable with {flag}" for flag, count in flags.items() if count]
    return [", ".join(counts)] if counts else []


def plural(count: int, word: str) -> str:
    """Return a number with its noun."""
    return f"{count} {word}{'' if count == 1 else 's'}"


def _counts(findings: Iterable[Finding]) -> list[tuple[str, int]]:
    """Return the codes with the number of their findings, the most frequent first."""
    return sorted(
        Counter(each.code for each in findings).items(), key=lambda row: (-row[1], row[0])
    )
