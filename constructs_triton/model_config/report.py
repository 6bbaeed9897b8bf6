"""What the checks of a repository found, all of it at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from constructs_triton.errors import RepositoryError
from constructs_triton.findings import Finding, Severity

__all__ = ["Report", "Verdict"]

Verdict = Literal["loads", "rejected"]


@dataclass(frozen=True)
class Report:
    """The findings of a repository, and what the server would say of it.

    ``verdict`` speaks for the server alone: ``"rejected"`` only where it refuses to load. A model that loads
    and can never serve on SageMaker is an error in ``findings`` and leaves the verdict at ``"loads"``.
    """

    repository: str
    findings: tuple[Finding, ...]
    verdict: Verdict

    @cached_property
    def errors(self) -> tuple[Finding, ...]:
        """What the server refuses, or what loads and can never serve."""
        return tuple(finding for finding in self.findings if finding.severity is Severity.ERROR)

    @cached_property
    def warnings(self) -> tuple[Finding, ...]:
        """What loads and serves, but will hurt."""
        return tuple(finding for finding in self.findings if finding.severity is Severity.WARNING)

    def raise_for_errors(self) -> None:
        """Raise all errors together.

        :raises RepositoryError: with every error, where there is one.
        """
        if self.errors:
            raise RepositoryError(self.repository, self.errors)
