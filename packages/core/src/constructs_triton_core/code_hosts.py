"""Findings as code hosts show them beside the lines of a change: SARIF 2.1.0 and GitHub's commands.

The command that found them gives rows; what they mean is its own.
"""

from __future__ import annotations

# os is several times faster than pathlib.
# ruff: noqa: PTH100
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from constructs_triton_core.findings import Place, Severity
from constructs_triton_core.untrusted.regular_files import read_regular
from constructs_triton_core.visible_text import visible

__all__ = [
    "NOT_CHECKED",
    "Row",
    "file_uri",
    "from_folder",
    "github_command",
    "github_notice",
    "line_hash",
    "print_commands",
    "sarif",
    "sarif_rule",
    "sentence",
    "text_to_hash",
]

_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_LONGEST_DESCRIPTION = 1024  # GitHub rejects more
_REGION = ("startLine", "startColumn", "endLine", "endColumn")
_WINDOW = 100  # characters that GitHub hashes
#: The end of the text of a link, "[text](target)", which viewers show also in plain text messages.
#: Source: SARIF 2.1.0, 3.11.6.
_LINK = re.compile(r"(?<!\\)(\\*)\](?=\()")

NOT_CHECKED = "not-checked"
"""The code of what was not looked at, where a format needs one."""


@dataclass(frozen=True)
class Row:
    """One finding, as a code host shows it.

    Args:
        code: Name of the rule.
        severity: Error or warning.
        message: What is wrong and how to fix it.
        place: The lines to mark; its file counts from the working folder, if it is in there.
            ``None`` if no file is known.
        line_hash: What tells the finding from others if its line moves; see ``line_hash()``.
        fixes: The changes that remove it, in the form of SARIF.
        construct: Path of the construct that it is about. Default: none.
        properties: What else a program may want to know.
    """

    code: str
    severity: Severity
    message: str
    place: Place | None
    line_hash: str = ""
    fixes: Sequence[Mapping[str, Any]] = ()
    construct: str = ""
    properties: Mapping[str, Any] = field(default_factory=dict)


def sarif(
    driver: Mapping[str, Any],
    rules: Mapping[str, Mapping[str, Any]],
    rows: Sequence[Row],
    not_checked: Iterable[str],
    properties: Mapping[str, Any],
) -> dict[str, Any]:
    """Return a document with one run.

    What was not looked at is a notification of the tool, because it is no result: a viewer shows it
    beside the results. Source: SARIF 2.1.0, 3.20.21 and 3.58.

    Args:
        driver: Name and version of the program.
        rules: The rules by their code; the document has those that a row has.
        rows: The findings.
        not_checked: What was not looked at, each a sentence.
        properties: What else the run has.
    """
    codes = list(dict.fromkeys(row.code for row in rows))
    notifications = [
        {
            "descriptor": {"id": NOT_CHECKED},
            "level": "note",
            "message": {"text": sentence(text)},
        }
        for text in not_checked
    ]
    run = {
        "tool": {"driver": {**driver, "rules": [rules[code] for code in codes]}},
        "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": notifications}],
        "columnKind": "unicodeCodePoints",
        "results": [_result(row, codes.index(row.code)) for row in rows],
        "properties": properties,
    }
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def sarif_rule(
    code: str,
    severity: Severity,
    *,
    summary: str,
    reason: str,
    help_text: str,
    tags: Sequence[str],
) -> dict[str, Any]:
    """Return the description of a rule."""
    return {
        "id": code,
        "shortDescription": {"text": sentence(summary)},
        "fullDescription": {"text": sentence(reason)[:_LONGEST_DESCRIPTION]},
        "help": {"text": help_text},
        "defaultConfiguration": {"level": severity.value},
        "properties": {"tags": list(tags)},
    }


def sentence(text: str) -> str:
    """Return a text with the full stop that SARIF asks for, and without links.

    A name of a foreign file could otherwise be a link to any address.
    """
    plain = _LINK.sub(r"\1\1\\]", text)
    return plain if plain.endswith((".", "!", "?")) else f"{plain}."


def _result(row: Row, index: int) -> dict[str, Any]:
    location: dict[str, Any] = {}
    if row.place is not None:
        region = dict(zip(_REGION, row.place[1:], strict=True))
        file = {"uri": file_uri(row.place.file)}
        location["physicalLocation"] = {"artifactLocation": file, "region": region}
    if row.construct:
        name = {"fullyQualifiedName": row.construct, "kind": "resource"}
        location["logicalLocations"] = [name]
    return {
        "ruleId": row.code,
        "ruleIndex": index,
        "level": row.severity.value,
        "message": {"text": sentence(row.message)},
        "locations": [location],
        "partialFingerprints": {"primaryLocationLineHash": row.line_hash} if row.line_hash else {},
        "fixes": list(row.fixes),
        "properties": dict(row.properties),
    }


def file_uri(file: str) -> str:
    """Return the URI of a file: relative, or with its whole path."""
    quoted = quote(os.fsencode(file.lstrip("/")), "/:")
    return f"file:///{quoted}" if os.path.isabs(file) else quoted  # noqa: PTH117 - it is a string


def from_folder(folder: str, path: str) -> str:
    """Return the path relative to a folder; of a link, the file, which code hosts can show."""
    real = os.path.realpath(path)
    for place in (real, os.path.abspath(path)):
        if place.startswith(f"{folder}{os.sep}"):
            return Path(place).relative_to(folder).as_posix()
    return Path(real).as_posix()


def text_to_hash(path: str, most_bytes: int) -> str:
    """Return the text of a file without blanks, as GitHub sees it; of an unreadable file,
    an empty one.
    """
    try:
        text = read_regular(path, most_bytes).decode("utf-8", "replace")
    except OSError:
        text = ""
    return re.sub("[ \t]", "", re.sub("\r\n?", "\n", text)) + "\uffff" + "\0" * _WINDOW


def line_hash(text: str, line: int) -> str:
    """Return GitHub's ``primaryLocationLineHash``; its upload warns of another value.

    It is a hash of the first 100 non-blank characters from the beginning of the line on, and the
    number of lines so far with the same hash. Source: codeql-action, ``fingerprints.ts``.

    Args:
        text: The file, as ``text_to_hash()`` returns it.
        line: Number of the line, from 1.
    """
    starts = _line_starts(text)[:line]
    window = text[starts[-1] : starts[-1] + _WINDOW]
    value = 0
    for character in window:
        value = (value * 37 + ord(character)) % 2**64
    return f"{value:x}:{sum(text.startswith(window, start) for start in starts)}"


@lru_cache(maxsize=1)
def _line_starts(text: str) -> list[int]:
    return [0, *(match.end() for match in re.finditer("\n", text))]


def github_command(row: Row) -> str:
    """Return the command that shows a finding beside the code.

    A step shows 10 errors and 10 warnings; the log has all. Source: actions/toolkit,
    ``docs/problem-matchers.md``.
    """
    place = row.place
    if place is None:
        return f"::{row.severity.value} title={row.code}::{_escaped(f'{row.code}: {row.message}')}"
    values = {"title": row.code, "file": place.file, "line": place.line, "endLine": place.end_line}
    if place.line == place.end_line:  # GitHub ignores columns of several lines
        values |= {"col": place.column, "endColumn": place.end_column}
    listed = ",".join(f"{name}={_escaped(value, ':,')}" for name, value in values.items())
    text = f"{place.file}:{place.line}:{place.column}: {row.code}: {row.message}"
    return f"::{row.severity.value} {listed}::{_escaped(text)}"


def github_notice(text: str) -> str:
    """Return the command that shows what was not looked at."""
    return f"::notice title={NOT_CHECKED}::{_escaped(text)}"


def print_commands(commands: Iterable[str]) -> None:
    """Print commands; ``print_lines`` would make them harmless."""
    encoding = sys.stdout.encoding or "utf-8"
    for command in commands:
        sys.stdout.write(f"{command}\n".encode(encoding, "backslashreplace").decode(encoding))


def _escaped(value: object, signs: str = "") -> str:
    """Escape as the toolkit does; line breaks and control characters become visible escapes."""
    text = visible(str(value))
    for sign in f"%{signs}":
        text = text.replace(sign, f"%{ord(sign):02X}")
    return text
