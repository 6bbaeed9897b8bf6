"""The steps of an operation on a stack, by which failures are chosen and readings are ordered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Action = Literal["start", "create", "update", "replace", "rollback", "restore", "delete", "end"]
When = Literal["before", "after"]
"""Whether a step fails before or after its service carried it out."""


@dataclass(frozen=True)
class Step:
    """What an operation does to one resource; a rollback restores resources.

    The actions ``start``, ``rollback`` and ``end`` are the beginning, turning point and end of an operation;
    their subject is the status of the stack.
    """

    action: Action
    subject: str

    def __str__(self) -> str:
        return f"{self.action} {self.subject}"
