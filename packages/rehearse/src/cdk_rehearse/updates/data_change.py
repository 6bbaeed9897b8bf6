"""One change of data: what happens to a resource, and what becomes of its data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["DataChange", "DataChanges", "Fate", "Kind"]

Kind = Literal[
    "removed",
    "may be removed",
    "replaced",
    "emptied",
    "may be replaced",
    "may be emptied",
    "expires",
    "unprotected",
    "new id",
    "moved",
]
"""What happens to the resource."""
Fate = Literal["lost", "kept", "snapshot", "kept if not empty", "unknown"]
"""What becomes of its data; unknown if a function decides the policy."""


@dataclass(frozen=True)
class DataChange:
    """A change of one resource with data, or of a custom resource whose physical ID changes.

    Args:
        stack: Name of the stack; of a nested stack, with the logical IDs that lead to it.
        logical_id: Logical ID of the resource.
        type: Its type.
        kind: What happens to it.
        fate: What becomes of its data.
        causes: The properties or attributes that cause it, each in the words of the template.
        has_successor: Whether an empty resource of its type takes its place.
    """

    stack: str
    logical_id: str
    type: str
    kind: Kind
    fate: Fate = "lost"
    causes: tuple[str, ...] = ()
    has_successor: bool = True


@dataclass(frozen=True)
class DataChanges:
    """All changes of data, and the other resources that may be replaced.

    Args:
        changes: Those of resources with data, in the order of the stacks and templates.
        may_be_replaced: Stack, logical ID and properties of each resource without data that
            CloudFormation may replace.
    """

    changes: tuple[DataChange, ...] = ()
    may_be_replaced: tuple[tuple[str, str, tuple[str, ...]], ...] = ()
