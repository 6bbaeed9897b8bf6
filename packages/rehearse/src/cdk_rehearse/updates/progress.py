"""What a rehearsal reports before it has ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..copies import Alive
from .report import Rehearsal

__all__ = ["Alive", "Attempted", "Calm", "Notify", "Progress", "Stepping", "ignore"]


@dataclass(frozen=True)
class Stepping:
    """A change of a resource begins, or has ended.

    Args:
        work: What the account does, such as ``deploying NEW``.
        place: Stack and logical ID of the resource, as ``STACK/ID``.
    """

    work: str
    place: str


@dataclass(frozen=True)
class Calm:
    """The update without failures is known.

    Args:
        rehearsal: All that is known before steps have failed.
        failures: How many failures follow; an estimate, since two orders may differ.
    """

    rehearsal: Rehearsal
    failures: int


@dataclass(frozen=True)
class Attempted:
    """A step has failed, and its stack was rolled back."""


Progress = Stepping | Calm | Attempted | Alive
Notify = Callable[[Progress], None]


def ignore(_: Progress) -> None:
    """Do nothing with what is reported."""
