"""What an adoption found: what is carried over, what differs, and what stops it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["Adoption", "Difference", "Problem", "SecretParameter", "code_of"]

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")


@dataclass(frozen=True, slots=True)
class Difference:
    """A member of AWS's answers that the app changes on purpose.

    Args:
        path: Where it is: the operation, then the members, such as ``DescribeModel.ExecutionRoleArn``.
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


@dataclass(frozen=True, slots=True)
class SecretParameter:
    """A parameter of the stack in place of a secret.

    Args:
        logical_id: Name of the parameter.
        variable: Name of the variable or of the tag.
        owner: The model or the resource that has it.
    """

    logical_id: str
    variable: str
    owner: str


@dataclass(slots=True)
class Adoption:
    """What is written into ADOPT.md, and printed.

    Args:
        name: Name of the endpoint.
        carried: What the app has as it runs today.
        differences: What the app changes on purpose.
        not_read: What could not be read.
        problems: What is not carried over, and errors of the models.
        left: What stays in the account, and costs or confuses.
        parameters: Parameters that the deployment asks for.
    """

    name: str
    carried: list[str] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    not_read: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    parameters: list[SecretParameter] = field(default_factory=list)

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

    def refuse_rest(
        self, where: str, answer: Mapping[str, Any], known: Collection[str], names: Iterable[str] = ()
    ) -> None:
        """Note each member of an answer that is set, and that the app does not carry over."""
        for member, value in answer.items():
            if member not in known and value not in (None, False, "", [], {}):
                self.refuse(
                    code_of(member), f"{where}: {member} is not carried over; set it by hand in app.py"
                )
        for name in names:
            self.refuse(code_of(name), f"{where}: {name} is not carried over; set it by hand in app.py")

    def open_problems(self, accepted: Collection[str]) -> list[Problem]:
        """Return the problems that are not accepted."""
        return [each for each in self.problems if each.is_final or each.code not in accepted]

    @property
    def is_impossible(self) -> bool:
        """Whether no app can be written."""
        return any(each.is_final for each in self.problems)

    def to_dict(self) -> dict[str, Any]:
        """Return the content as values that JSON can hold."""
        return asdict(self)


def code_of(member: str) -> str:
    """Return the code of a member of an answer: ``container-hostname`` for ``ContainerHostname``."""
    return "-".join(word.lower() for word in _WORD.findall(member))
