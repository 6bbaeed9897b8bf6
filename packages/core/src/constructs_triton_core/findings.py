"""What a check reports about a model repository,
a model configuration or a construct's properties.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from constructs_triton_core.visible_text import visible, visible_lines

__all__ = ["Edit", "Finding", "Fix", "Place", "Severity", "Verdict", "format_findings"]


class Severity(StrEnum):
    """How serious a finding is.

    ``ERROR``: the server refuses it, or it loads and can never serve on SageMaker.
    ``WARNING``: it loads and serves, but causes trouble later.
    """

    ERROR = "error"
    WARNING = "warning"


class Place(NamedTuple):
    """Where an editor marks a finding; lines and columns count from 1.

    ``file`` is relative to the folder that was checked. The end is the place after the last
    character.
    """

    file: str
    line: int
    column: int
    end_line: int
    end_column: int


class Edit(NamedTuple):
    """Replace the characters of a file from ``start`` to before ``end``; both count from 0."""

    path: str
    start: int
    end: int
    text: str


class Fix(NamedTuple):
    """The edits that remove a finding. ``is_safe``: no other spelling can have been meant."""

    is_safe: bool
    edits: tuple[Edit, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """One mistake: where it is, what is wrong, and how to fix it.

    ``str(finding)`` is the form that ``constructs-triton check`` prints::

        pipe/config.pbtxt:3:1: error[ensemble-no-step]: ensemble_scheduling has no step
            hint: add a step

    Args:
        code: Name of the rule, stable across releases; users acknowledge a finding by it.
        severity: Error or warning.
        path: File, relative to the folder that was checked, or the property of a construct.
        message: What is wrong.
        hint: How to fix it; may be empty.
        source: Where the rule comes from; may be empty.
        line: Line of the file, from 1; ``None`` if the finding has no place in a file.
        column: Column of the line, from 1; ``None`` if the finding has no place in a file.
        rejects: Whether Triton refuses to load the model because of it; only of errors in model
            repositories.
        place: Where to show it. Each finding of a model repository has one, also if it has no line.
        fix: What ``--fix`` or ``--unsafe-fixes`` changes; ``None`` if only a person can fix it.
    """

    code: str
    severity: Severity
    path: str
    message: str
    hint: str = ""
    source: str = ""
    line: int | None = None
    column: int | None = None
    rejects: bool = False
    place: Place | None = None
    fix: Fix | None = None

    @property
    def location(self) -> str:
        """Path, line and column as editors read them: ``m/config.pbtxt:3:1``."""
        return ":".join(
            str(part) for part in (self.path, self.line, self.column) if part is not None
        )

    @property
    def one_line(self) -> str:
        """``location: message; hint``, for a place that shows the code itself,
        such as an annotation.
        """
        text = f"{self.location}: {self.message}"
        return visible_lines(f"{text}; {self.hint}" if self.hint else text)

    def __str__(self) -> str:
        text = visible(f"{self.location}: {self.severity}[{self.code}]: {self.message}")
        return f"{text}\n    hint: {visible(self.hint)}" if self.hint else text

    def to_dict(self) -> dict[str, Any]:
        """Return what commands print with ``--json``."""
        values = asdict(self)
        del values["rejects"]  # the verdict on the whole repository is beside the findings
        del values["place"], values["fix"]
        if self.place is None:
            return values
        fix = self.fix and {"safe": self.fix.is_safe, "edits": [*map(Edit._asdict, self.fix.edits)]}
        return {**values, "place": self.place._asdict(), "fix": fix}


class Verdict(StrEnum):
    """What becomes of a model repository; the value of ``verdict`` in ``check --json``.

    Everything that says whether a repository can be deployed takes it from here: the text and the
    JSON of ``check``, its exit code, and the message of ``RepositoryError``. An error decides
    before what is not known, because nothing that is looked at later makes it right.

    ``LOADS``: everything that decides was looked at, and there is no error.
    ``UNKNOWN``: there is no error, but something that decides was not looked at.
    ``CANNOT_BE_SERVED``: Triton loads the models, and no endpoint can answer with them.
    ``REJECTED``: Triton refuses to load a model.
    """

    LOADS = "loads"
    UNKNOWN = "unknown"
    CANNOT_BE_SERVED = "cannot-be-served"
    REJECTED = "rejected"

    @classmethod
    def of(cls, findings: Iterable[Finding], not_checked: Collection[str] = ()) -> Verdict:
        """Return the verdict on a repository with these findings.

        Args:
            findings: What was found.
            not_checked: What was not looked at. Default: nothing was left out.
        """
        errors = [finding for finding in findings if finding.severity is Severity.ERROR]
        if any(finding.rejects for finding in errors):
            return cls.REJECTED
        if errors:
            return cls.CANNOT_BE_SERVED
        return cls.UNKNOWN if not_checked else cls.LOADS

    @property
    def words(self) -> str:
        """The verdict as a summary and a message print it."""
        return _WORDS[self]


_WORDS = {
    Verdict.LOADS: "Triton loads it",
    Verdict.UNKNOWN: "unknown: Triton accepts what was checked",
    Verdict.CANNOT_BE_SERVED: "it cannot be served",
    Verdict.REJECTED: "Triton rejects it",
}


def format_findings(findings: Iterable[Finding]) -> str:
    """Return all findings as text, one after the other."""
    return "\n".join(str(finding) for finding in findings)
