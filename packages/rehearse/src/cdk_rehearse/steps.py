"""The steps of an operation on a stack, by which failures are chosen and readings are ordered."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Action = Literal[
    "start", "create", "update", "replace", "rollback", "restore", "delete", "end", "meanwhile"
]
When = Literal["before", "after", "answers FAILED"]
"""Whether a step fails before or after its service carried it out. After that, a custom resource
loses the response of its function, or its function answers FAILED."""


@dataclass(frozen=True)
class Step:
    """What an operation does to one resource; a rollback restores resources.

    The actions ``start``, ``rollback`` and ``end`` are the beginning, turning point and end of an
    operation; their subject is the status of the stack. That of ``meanwhile`` is what happened
    between two operations.

    ``place`` is the path of the stack of the resource, as ``Stack.path``: two nested stacks can
    have the same logical ID. Steps are equal whatever their places.
    """

    action: Action
    subject: str
    place: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"{self.action} {self.subject}"
