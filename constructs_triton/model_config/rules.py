"""What a rule is: a function that looks at one model and tells of problems, with what is known about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from constructs_triton.findings import Finding, Severity
from constructs_triton.model_config.locations import FieldPath

if TYPE_CHECKING:
    from constructs_triton.model_config.model_under_check import ModelUnderCheck, RepositoryContext

__all__ = ["RULES", "Problem", "Rule", "rule"]

Scope = Literal["model", "fault", "config", "ensemble", "sequence", "python", "repository"]
"""When a rule is asked: of every folder; of texts that do not parse; of configurations that parse; of
ensembles; of models with ``sequence_batching``; of models of the Python backend; once a repository."""


class Problem(NamedTuple):
    """One thing wrong. ``field`` is where in ``config.pbtxt``; ``path`` a file or folder in its place."""

    message: str
    field: FieldPath = ()
    hint: str | None = None
    path: str | None = None
    line: int | None = None
    column: int | None = None


RuleFunction = Callable[[Any], Iterable[Problem]]
"""Takes a ``ModelUnderCheck``, or the ``RepositoryContext`` where the scope is ``"repository"``."""


@dataclass(frozen=True)
class Rule:
    """A rule, as the documentation lists it.

    ``refuses``: whether the server itself refuses to load. ``needs_files``: whether the rule judges by what
    lies beside ``config.pbtxt``, and is left out where weights are stored elsewhere. ``when``: fields of the
    configuration without which there is nothing to judge; empty for any configuration.
    """

    code: str
    severity: Severity
    scope: Scope
    source: str
    hint: str
    refuses: bool
    needs_files: bool
    when: tuple[str, ...]
    function: RuleFunction

    @property
    def summary(self) -> str:
        """The rule in a sentence."""
        return (self.function.__doc__ or "").split("\n\n")[0].replace("\n    ", " ").strip()

    @property
    def reason(self) -> str:
        """Why the rule is there."""
        return " ".join((self.function.__doc__ or "").split("\n\n", 1)[-1].split())

    @property
    def group(self) -> str:
        """The module of the rule, which is its chapter in the documentation."""
        return self.function.__module__.rsplit(".", 1)[-1]

    def finding(self, subject: ModelUnderCheck, problem: Problem) -> Finding:
        """A problem that the rule told of, as a finding."""
        place = subject.model.locate(problem.field) if problem.path is None else None
        line, column = place or (problem.line, problem.column)
        hint = self.hint if problem.hint is None else problem.hint
        path = subject.place(problem)
        return Finding(self.code, self.severity, path, problem.message, hint, self.source, line, column)

    def repository_findings(self, around: RepositoryContext) -> Iterator[Finding]:
        """The findings of a rule that is asked once for the whole repository."""
        for problem in self.function(around):
            hint = self.hint if problem.hint is None else problem.hint
            yield Finding(self.code, self.severity, problem.path or ".", problem.message, hint, self.source)


RULES: dict[str, Rule] = {}
"""Every rule by its code, in the order of the modules."""


def rule(
    code: str,
    scope: Scope = "config",
    *,
    source: str,
    hint: str = "",
    severity: Severity = Severity.ERROR,
    refuses: bool | None = None,
    needs_files: bool = False,
    when: tuple[str, ...] = (),
) -> Callable[[RuleFunction], RuleFunction]:
    """Register a function as the rule ``code``; errors are the server's refusals unless said otherwise."""

    def register(function: RuleFunction) -> RuleFunction:
        if code in RULES:
            raise ValueError(f"two rules are called {code}")
        server_refuses = severity is Severity.ERROR if refuses is None else refuses
        RULES[code] = Rule(code, severity, scope, source, hint, server_refuses, needs_files, when, function)
        return function

    return register
