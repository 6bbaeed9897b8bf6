"""The result of checking one folder, and its findings as a reader outside that folder finds them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import NamedTuple

from constructs_triton_core.findings import Finding, Place, Severity
from constructs_triton_core.untrusted.regular_files import read_regular
from triton_model_check.model_config.report import Report
from triton_model_check.model_config.text_spellings import MAX_TEXT_BYTES


@dataclass(frozen=True)
class Result:
    """What a check of one folder found.

    Args:
        report: The findings, and the folder.
        where: What follows the verdict in the last line, such as the endpoint in words.
        details: What JSON has of the target.
        answers: What a server says of each model. Default: none was asked.
    """

    report: Report
    where: str = ""
    details: Mapping[str, object] = field(default_factory=dict)
    answers: Mapping[str, str] | None = None

    @property
    def root(self) -> Path:
        """The folder."""
        return Path(self.report.repository)


class Shown(NamedTuple):
    """A finding as a code host shows it.

    ``file`` is relative to the working folder, if it is in there, and ``text`` its content without blanks.
    """

    finding: Finding
    place: Place
    file: str
    text: str

    @property
    def message(self) -> str:
        """What is wrong and how to fix it, with the path if the place is in another file."""
        found = self.finding
        message = f"{found.message}; {found.hint}" if found.hint else found.message
        return message if found.path in (".", self.place.file) else f"{found.path}: {message}"

    @property
    def line_hash(self) -> str:
        """Return GitHub's ``primaryLocationLineHash``; its upload warns of another value.

        It is a hash of the 100 characters from the beginning of the line on that are no blanks, and the
        number of such lines so far. Source: codeql-action, ``fingerprints.ts``.
        """
        packed = self.text + "\uffff"
        starts = [0, *(match.end() for match in re.finditer("\n", packed))][: self.place.line]
        windows = [packed[start : start + 100].ljust(100, "\0") for start in starts]
        value = 0
        for character in windows[-1]:
            value = (value * 37 + ord(character)) % 2**64
        return f"{value:x}:{windows.count(windows[-1])}"


def shown(results: Iterable[Result]) -> list[Shown]:
    """Return all findings, errors first: code hosts cut off what is too much."""
    text_of, found = cache(text_without_blanks), []
    for result in results:
        for each in result.report.findings:
            if each.place is not None:
                file = _from_here(result.root / each.place.file)
                found.append(Shown(each, each.place, file, text_of(file)))
    return sorted(found, key=lambda each: each.finding.severity is not Severity.ERROR)


def _from_here(path: Path) -> str:
    """Return the path relative to the working folder; of a link, the file, which code hosts can show."""
    here, absolute = Path.cwd().resolve(), Path(os.path.abspath(path))  # noqa: PTH100 - it keeps links
    inside = [each for each in (path.resolve(), absolute) if each.is_relative_to(here)]
    return inside[0].relative_to(here).as_posix() if inside else path.resolve().as_posix()


def text_without_blanks(path: str) -> str:
    """Return the text of a file without blanks and with one kind of line breaks; "" if it is no text."""
    try:
        text = read_regular(path, MAX_TEXT_BYTES).decode("utf-8", "replace")
    except OSError:
        return ""
    return re.sub("[ \t]", "", re.sub("\r\n?", "\n", text))
