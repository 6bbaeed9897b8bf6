"""The result of checking a repository."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from constructs_triton_core.errors import RepositoryError
from constructs_triton_core.findings import Finding, Severity, Verdict

__all__ = ["Report"]


@dataclass(frozen=True)
class Report:
    """The findings of a repository, and the verdict on it.

    Args:
        repository: Path of the repository, for messages.
        findings: Errors and warnings. A model that loads but can never serve on SageMaker is an
            error too.
        not_checked: Model files whose content was not checked, each with the reason.
        ignored: Findings that comments, options or settings ignore. They do not count.
    """

    repository: str
    findings: tuple[Finding, ...]
    not_checked: tuple[str, ...] = ()
    ignored: tuple[Finding, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """Whether Triton loads the repository, and whether SageMaker can serve it."""
        return Verdict.of(self.findings)

    @cached_property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that the server rejects, or that load but can never serve."""
        return tuple(finding for finding in self.findings if finding.severity is Severity.ERROR)

    @cached_property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings that load and serve, but cause trouble later."""
        return tuple(finding for finding in self.findings if finding.severity is Severity.WARNING)

    def raise_for_errors(self) -> None:
        """Raise one exception for all errors.

        Raises:
            RepositoryError: there is at least one error.
        """
        if self.errors:
            raise RepositoryError(self.repository, self.errors)
