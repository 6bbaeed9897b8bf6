"""The result of checking one folder, and its findings as a reader outside
that folder finds them.
"""

# os is several times faster than pathlib.
# ruff: noqa: PTH118

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

from constructs_triton_core.code_hosts import from_folder, line_hash, text_to_hash
from constructs_triton_core.findings import Finding, Place, Severity
from triton_model_check.checks.report import Report
from triton_model_check.untrusted.limits import MAX_TEXT_BYTES


@dataclass(frozen=True)
class Result:
    """What a check of one folder found.

    Args:
        report: The findings, and the folder.
        subject: The server in words, such as ``Triton 26.08 on a server``.
        where: The target in words, such as ``on a server``.
        thing: What the verdict is on, in words.
        details: What JSON has of the target.
        answers: What a server says of each model. Default: none was asked.
        is_counted: Whether a reader wants to know how often each code was found.
        is_moved: Whether the paths of the findings count from the working folder.
    """

    report: Report
    subject: str = "Triton"
    where: str = ""
    thing: str = "it"
    details: Mapping[str, object] = field(default_factory=dict)
    answers: Mapping[str, str] | None = None
    is_counted: bool = False
    is_moved: bool = False

    @property
    def not_checked(self) -> list[NotChecked]:
        """What was not looked at, with paths as those of the findings."""
        rows = [line.partition(": ") for line in self.report.not_checked]
        return [
            NotChecked(path.partition("/")[0], self._here(path) if self.is_moved else path, reason)
            for path, _, reason in rows
        ]

    @property
    def name(self) -> str:
        """The folder that was checked, as the user wrote it."""
        return self.report.repository

    @property
    def root(self) -> Path:
        """The folder from which the paths of the findings count."""
        return Path("." if self.is_moved else self.name)

    def from_working_folder(self) -> Result:
        """Return the result with paths from the working folder in place of the checked one."""
        report, here = self.report, self._here

        def moved(found: Finding) -> Finding:
            place = found.place and found.place._replace(file=here(found.place.file))
            edits = (
                each._replace(path=here(each.path))
                for each in (found.fix.edits if found.fix else ())
            )
            fix = found.fix and found.fix._replace(edits=tuple(edits))
            return replace(found, path=here(found.path), place=place, fix=fix)

        findings, ignored = (tuple(map(moved, each)) for each in (report.findings, report.ignored))
        return replace(
            self, report=replace(report, findings=findings, ignored=ignored), is_moved=True
        )

    def _here(self, path: str) -> str:
        """Return a path in the checked folder as one from the working folder."""
        root = os.path.relpath(self.name).replace(os.sep, "/")
        return posixpath.normpath(f"{root}/{path}")


class NotChecked(NamedTuple):
    """One thing that decides and was not looked at: the model, the path, and the reason."""

    model: str
    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}"


class Shown(NamedTuple):
    """A finding as a code host shows it.

    ``file`` is relative to the working folder, if it is in there, and ``text`` its content for
    hashes.
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
        """Return GitHub's ``primaryLocationLineHash``."""
        return line_hash(self.text, self.place.line)


def shown(results: Iterable[Result]) -> list[Shown]:
    """Return all findings, errors first: code hosts cut off what is too much."""
    from_here = cache(partial(from_folder, os.path.realpath(".")))
    text_of = cache(_text_to_hash)
    found: list[Shown] = []
    for result in results:
        for each in result.report.findings:
            if each.place is not None:
                file = from_here(os.path.join(result.report.repository, each.place.file))
                found.append(Shown(each, each.place, file, text_of(file)))
    return sorted(found, key=lambda each: each.finding.severity is not Severity.ERROR)


def _text_to_hash(path: str) -> str:
    return text_to_hash(path, MAX_TEXT_BYTES)
