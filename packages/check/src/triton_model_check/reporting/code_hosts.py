"""Prints findings as code hosts show them beside the lines of a change: SARIF 2.1.0,
GitHub and GitLab.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

from constructs_triton_core.code_hosts import (
    NOT_CHECKED,
    Row,
    file_uri,
    github_command,
    github_notice,
    print_commands,
    sarif,
    sarif_rule,
    sentence,
)
from constructs_triton_core.untrusted.terminal import print_json, print_lines
from triton_model_check import __version__
from triton_model_check.checks.chapters import RULES
from triton_model_check.reporting.results import NotChecked, Result, Shown, shown
from triton_model_check.reporting.text import summary


def print_sarif(results: Sequence[Result]) -> None:
    """Print one run with the findings of all folders.

    The verdicts are among the properties of the run.
    """
    rows = [_row(each) for each in shown(results)]
    driver = {"name": "triton-model-check", "version": __version__}
    rules = {row.code: _rule(row.code) for row in rows}
    verdicts = [{"path": each.name, "verdict": each.report.verdict} for each in results]
    not_checked = [f"{each.path}: {each.reason}" for each in _not_checked(results)]
    print_json(sarif(driver, rules, rows, not_checked, {"verdicts": verdicts}))


def _not_checked(results: Sequence[Result]) -> Iterator[NotChecked]:
    for result in results:
        yield from result.from_working_folder().not_checked


def _rule(code: str) -> dict[str, Any]:
    """Return the description of a rule for SARIF."""
    rule = RULES[code]
    hint = sentence(rule.hint or "see the message of each finding")
    help_text = f"To fix it: {hint} Source: {rule.source}."
    return sarif_rule(
        code,
        rule.severity,
        summary=rule.summary,
        reason=rule.reason or rule.summary,
        help_text=help_text,
        tags=["triton", rule.group],
    )


def _row(each: Shown) -> Row:
    """Return a finding as a row of a report for code hosts."""
    return Row(
        each.finding.code,
        each.finding.severity,
        each.message,
        each.place._replace(file=each.file),
        each.line_hash,
        _fixes(each),
        properties={"path": each.finding.path, "rejects": each.finding.rejects},
    )


def _fixes(each: Shown) -> list[dict[str, Any]]:
    """Return the change that removes the finding, if it is in the file of the finding alone."""
    fix = each.finding.fix
    if fix is None or any(edit.path != each.place.file for edit in fix.edits):
        return []
    rows = [
        {
            "deletedRegion": {"charOffset": edit.start, "charLength": edit.end - edit.start},
            "insertedContent": {"text": edit.text},
        }
        for edit in fix.edits
    ]
    change = {"artifactLocation": {"uri": file_uri(each.file)}, "replacements": rows}
    hint = each.finding.hint if fix.is_safe else f"it is not certain: {each.finding.hint}"
    return [{"description": {"text": sentence(hint)}, "artifactChanges": [change]}]


def print_github(results: Sequence[Result]) -> None:
    """Print a command for each finding, what was not checked, and the verdicts."""
    print_commands(github_command(_row(each)) for each in shown(results))
    print_commands(github_notice(str(left)) for left in _not_checked(results))
    print_lines(*map(summary, results))


def print_gitlab(results: Sequence[Result]) -> None:
    """Print the list of GitLab's Code Quality report.

    It has no place for a verdict. What was not checked is an issue of the severity "info".
    """
    issues = [_issue(each) for each in shown(results)]
    issues += [_issue_of_unchecked(left) for left in _not_checked(results)]
    print_json(issues)


def _issue_of_unchecked(left: NotChecked) -> dict[str, Any]:
    """Return what was not checked as an issue of GitLab's Code Quality."""
    identity = repr((NOT_CHECKED, left.path, left.reason))
    return {
        "check_name": NOT_CHECKED,
        "description": str(left),
        "severity": "info",
        "fingerprint": hashlib.sha256(identity.encode("utf-8", "backslashreplace")).hexdigest(),
        "location": {"path": left.path, "lines": {"begin": 1}},
    }


def _issue(each: Shown) -> dict[str, Any]:
    """Return a finding as an issue of GitLab's Code Quality."""
    (_, line, column, end_line, end_column), found = each.place, each.finding
    identity = repr((found.code, found.path, found.message, each.file, each.line_hash, column))
    positions = {
        "begin": {"line": line, "column": column},
        "end": {"line": end_line, "column": end_column},
    }
    return {
        "check_name": found.code,
        "description": each.message,
        "severity": {"error": "major", "warning": "minor"}[found.severity],
        "fingerprint": hashlib.sha256(identity.encode("utf-8", "backslashreplace")).hexdigest(),
        "location": {"path": each.file, "positions": positions},
    }
