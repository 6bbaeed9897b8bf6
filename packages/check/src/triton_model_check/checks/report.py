"""The result of checking a repository."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from constructs_triton_core.errors import RepositoryError
from constructs_triton_core.findings import Finding, Severity, Verdict

__all__ = ["Report", "lines_of_open_findings"]

#: Warnings about models of which only the image knows whether they load: AWS does not publish the
#: packages of its images, and another Python than the image's may not know its syntax.
_DEPENDS_ON_IMAGE = (
    "python-import-missing",
    "python-environment-elsewhere",
    "python-syntax-other-version",
    "python-backend-module-copy",
)
#: Warnings about models that load only in a certain working directory of the server.
_DEPENDS_ON_DIRECTORY = (
    "python-environment-working-directory",
    "python-relative-file-on-server",
)


def lines_of_open_findings(findings: Iterable[Finding]) -> tuple[str, ...]:
    """Return the lines of ``not_checked`` of the findings that depend on the image or server."""
    causes = {
        **dict.fromkeys(_DEPENDS_ON_IMAGE, "the image"),
        **dict.fromkeys(_DEPENDS_ON_DIRECTORY, "the working directory of the server"),
    }
    return tuple(
        f"{finding.path}: it depends on {causes[finding.code]}: {finding.message}"
        for finding in findings
        if finding.code in causes
    )


@dataclass(frozen=True)
class Report:
    """The findings of a repository, and the verdict on it.

    Args:
        repository: Path of the repository, for messages.
        findings: Errors and warnings. A model that loads but can never serve on SageMaker is an
            error too.
        not_checked: What decides and was not looked at, each as ``path: reason``. The path begins
            with the folder of the model. This is the only thing that makes a verdict unknown: a
            check that cannot look at something adds a line here, and a line here is never about
            what does not decide.
        ignored: Findings that comments, options or settings ignore. They do not count.
    """

    repository: str
    findings: tuple[Finding, ...]
    not_checked: tuple[str, ...] = ()
    ignored: tuple[Finding, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """Whether Triton loads the repository, and whether SageMaker can serve it."""
        return Verdict.of(self.findings, self.not_checked)

    @cached_property
    def errors(self) -> tuple[Finding, ...]:
        """The findings that the server rejects, or that load but can never serve."""
        return tuple(finding for finding in self.findings if finding.severity is Severity.ERROR)

    @cached_property
    def warnings(self) -> tuple[Finding, ...]:
        """The findings that load and serve, but cause trouble later."""
        return tuple(finding for finding in self.findings if finding.severity is Severity.WARNING)

    def with_findings(self, kept: Iterable[Finding], ignored: Iterable[Finding]) -> Report:
        """Return the report with other findings; what is ignored is not open any more.

        Args:
            kept: The findings that count.
            ignored: The findings that comments, options or settings ignore.
        """
        chosen = tuple(kept)
        dropped = {*lines_of_open_findings(self.findings)} - {*lines_of_open_findings(chosen)}
        not_checked = tuple(line for line in self.not_checked if line not in dropped)
        return Report(self.repository, chosen, not_checked, tuple(ignored))

    def raise_for_errors(self) -> None:
        """Raise one exception for all errors.

        Raises:
            RepositoryError: there is at least one error.
        """
        if self.errors:
            raise RepositoryError(self.repository, self.errors)
