"""What a rehearsal reports before it has ended."""

from __future__ import annotations

from dataclasses import dataclass

from .report import Problem, Rehearsal


@dataclass(frozen=True)
class Calm:
    """The update without failures.

    Args:
        rehearsal: All that is known before steps have failed.
        settled: The problems with which the whole rehearsal begins.
        failures: How often steps will fail; an estimate with two orders.
    """

    rehearsal: Rehearsal
    settled: tuple[Problem, ...]
    failures: int


@dataclass(frozen=True)
class Attempted:
    """A step has failed, and its stack was rolled back."""
