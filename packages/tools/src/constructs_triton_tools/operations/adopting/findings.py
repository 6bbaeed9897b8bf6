"""What an adoption found: what is carried over, what differs, and what stops it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Difference:
    """A member of AWS's answers that the app changes on purpose.

    Args:
        path: Where it is: the operation, then the members, such as
            ``DescribeModel.ExecutionRoleArn``.
        reason: What the app has instead, and why.
    """

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is not carried over, or an error of the models.

    Args:
        code: Stable name, for ``--accept``.
        message: Where it is, what it is, and what to do.
        is_final: Whether there is no app without it, so that it cannot be accepted.
    """

    code: str
    message: str
    is_final: bool = False


@dataclass(slots=True)
class Adoption:
    """What is written into ADOPT.md, and printed.

    Args:
        name: Name of the endpoint.
        carried: What the app has as it runs today.
        differences: What the app changes on purpose.
        not_read: What could not be read.
        problems: What is not carried over, and errors of the models.
        parameters: Parameters that the deployment asks for: what each is, by its logical id.
    """

    name: str
    carried: list[str] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    not_read: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    parameters: dict[str, str] = field(default_factory=dict)

    def differ(self, path: str, reason: str) -> None:
        """Note a difference once."""
        found = Difference(path, reason)
        if found not in self.differences:
            self.differences.append(found)

    def refuse(self, code: str, message: str, *, is_final: bool = False) -> None:
        """Note a problem once."""
        found = Problem(code, message, is_final)
        if found not in self.problems:
            self.problems.append(found)

    @property
    def is_impossible(self) -> bool:
        """Whether no app can be written."""
        return any(problem.is_final for problem in self.problems)

    def open_problems(self, accepted: Collection[str]) -> list[Problem]:
        """Return the problems that are not accepted."""
        return [
            problem for problem in self.problems if problem.is_final or problem.code not in accepted
        ]
