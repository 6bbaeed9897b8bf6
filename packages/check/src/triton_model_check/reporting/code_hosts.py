"""Prints findings as code hosts show them beside the lines of a change: SARIF 2.1.0,
GitHub and GitLab.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from constructs_triton_core.untrusted.terminal import print_json, print_lines
from constructs_triton_core.visible_text import visible
from triton_model_check import __version__
from triton_model_check.checks.chapters import RULES
from triton_model_check.reporting.results import NotChecked, Result, Shown, shown
from triton_model_check.reporting.text import summary

_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_LONGEST_DESCRIPTION = 1024  # GitHub rejects more
#: The code of what was not checked, where a format needs one.
_NOT_CHECKED = "not-checked"
_REGION = ("startLine", "startColumn", "endLine", "endColumn")


def print_sarif(results: Sequence[Result]) -> None:
    """Print one run with the findings of all folders.

    The verdicts are among the properties of the run. What was not checked is a notification of the
    tool, because it is no result: a viewer shows it beside the results.
    Source: SARIF 2.1.0, 3.20.21 and 3.58.
    """
    found = shown(results)
    codes = list(dict.fromkeys(each.finding.code for each in found))
    rules = [_rule(code) for code in codes]
    driver = {"name": "triton-model-check", "version": __version__, "rules": rules}
    rows = [_result(each, codes.index(each.finding.code)) for each in found]
    verdicts = [{"path": each.name, "verdict": each.report.verdict} for each in results]
    run = {
        "tool": {"driver": driver},
        "invocations": [_invocation(results)],
        "columnKind": "unicodeCodePoints",
        "results": rows,
        "properties": {"verdicts": verdicts},
    }
    print_json({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]})


def _invocation(results: Sequence[Result]) -> dict[str, Any]:
    """Return the notifications about what was not checked."""
    rows = [
        {
            "descriptor": {"id": _NOT_CHECKED},
            "level": "note",
            "message": {"text": _sentence(f"{each.path}: {each.reason}")},
        }
        for result in results
        for each in result.from_working_folder().not_checked
    ]
    return {"executionSuccessful": True, "toolExecutionNotifications": rows}


def _rule(code: str) -> dict[str, Any]:
    rule = RULES[code]
    hint = _sentence(rule.hint or "see the message of each finding")
    return {
        "id": code,
        "shortDescription": {"text": _sentence(rule.summary)},
        "fullDescription": {"text": _sentence(rule.reason or rule.summary)[:_LONGEST_DESCRIPTION]},
        "help": {"text": f"To fix it: {hint} Source: {rule.source}."},
        "defaultConfiguration": {"level": rule.severity.value},
        "properties": {"tags": ["triton", rule.group]},
    }


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _result(each: Shown, index: int) -> dict[str, Any]:
    region = dict(zip(_REGION, each.place[1:], strict=True))
    place = {"artifactLocation": {"uri": _uri(each.file)}, "region": region}
    return {
        "ruleId": each.finding.code,
        "ruleIndex": index,
        "level": each.finding.severity.value,
        "message": {"text": _sentence(each.message)},
        "locations": [{"physicalLocation": place}],
        "partialFingerprints": {"primaryLocationLineHash": each.line_hash},
        "fixes": _fixes(each),
        "properties": {"path": each.finding.path, "rejects": each.finding.rejects},
    }


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
    change = {"artifactLocation": {"uri": _uri(each.file)}, "replacements": rows}
    hint = each.finding.hint if fix.is_safe else f"it is not certain: {each.finding.hint}"
    return [{"description": {"text": _sentence(hint)}, "artifactChanges": [change]}]


def _uri(file: str) -> str:
    quoted = quote(os.fsencode(file.lstrip("/")), "/:")
    return f"file:///{quoted}" if os.path.isabs(file) else quoted  # noqa: PTH117 - it is a string


def print_github(results: Sequence[Result]) -> None:
    """Print a command for each finding, what was not checked, and the verdicts.

    A step shows 10 errors and 10 warnings beside the code; the log has all. Source:
    actions/toolkit, ``docs/problem-matchers.md``.
    """
    encoding = sys.stdout.encoding or "utf-8"
    for each in shown(results):  # not by print_lines, which would make the command harmless
        sys.stdout.write(
            f"{_command(each)}\n".encode(encoding, "backslashreplace").decode(encoding)
        )
    for result in results:
        for left in result.from_working_folder().not_checked:
            notice = f"::notice title={_NOT_CHECKED}::{_escaped(str(left))}"
            sys.stdout.write(f"{notice}\n".encode(encoding, "backslashreplace").decode(encoding))
    print_lines(*map(summary, results))


def _command(each: Shown) -> str:
    place, code = each.place, each.finding.code
    values = {"title": code, "file": each.file, "line": place.line, "endLine": place.end_line}
    if place.line == place.end_line:  # GitHub ignores columns of several lines
        values |= {"col": place.column, "endColumn": place.end_column}
    listed = ",".join(f"{name}={_escaped(value, ':,')}" for name, value in values.items())
    text = f"{each.file}:{place.line}:{place.column}: {code}: {each.message}"
    return f"::{each.finding.severity.value} {listed}::{_escaped(text)}"


def _escaped(value: object, signs: str = "") -> str:
    """Escape as the toolkit does; line breaks and control characters become visible escapes."""
    text = visible(str(value))
    for sign in f"%{signs}":
        text = text.replace(sign, f"%{ord(sign):02X}")
    return text


def print_gitlab(results: Sequence[Result]) -> None:
    """Print the list of GitLab's Code Quality report.

    It has no place for a verdict. What was not checked is an issue of the severity "info".
    """
    issues = [_issue(each) for each in shown(results)]
    issues += [
        _issue_of_unchecked(left)
        for result in results
        for left in result.from_working_folder().not_checked
    ]
    print_json(issues)


def _issue_of_unchecked(left: NotChecked) -> dict[str, Any]:
    identity = repr((_NOT_CHECKED, left.path, left.reason))
    return {
        "check_name": _NOT_CHECKED,
        "description": str(left),
        "severity": "info",
        "fingerprint": hashlib.sha256(identity.encode("utf-8", "backslashreplace")).hexdigest(),
        "location": {"path": left.path, "lines": {"begin": 1}},
    }


def _issue(each: Shown) -> dict[str, Any]:
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
