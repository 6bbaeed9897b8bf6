"""What a check says of a model repository, a model configuration or a construct's properties."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum

__all__ = ["Finding", "Severity", "format_findings"]


class Severity(StrEnum):
    """How much a finding hurts.

    ``ERROR``: the server refuses it, or it loads and can never serve on SageMaker.
    ``WARNING``: it loads and serves, but will hurt.
    """

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Finding:
    """One mistake, where it is, and the change that mends it.

    ``code`` is stable across releases and is what users acknowledge. ``path`` is the file, relative to
    the folder that was checked, or the property of a construct; ``line`` and ``column`` count from 1 and
    are ``None`` where the finding concerns no place in a text. ``source`` says where the rule comes from.
    """

    code: str
    severity: Severity
    path: str
    message: str
    hint: str = ""
    source: str = ""
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (self.path, self.line, self.column) if part is not None)
        text = f"{place}: {self.message}"
        return f"{text}; {self.hint}" if self.hint else text

    def to_dict(self) -> dict[str, str | int | None]:
        """The finding as JSON-ready values."""
        return asdict(self)


def format_findings(findings: Iterable[Finding]) -> str:
    """All findings, a line each, with severity and code."""
    return "\n".join(f"{finding.severity}[{finding.code}] {finding}" for finding in findings)
