"""The rows of the table."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType

from benchmarking.figures import misses, number

from figures import PROJECT

LEGEND = """
! a limit is missed
~ the last benchmark did not reach a goal; "Where the time goes" in dev/project/maintaining.md says
  why"""


@dataclass(frozen=True, slots=True)
class Row:
    """A figure.

    Args:
        what: What is counted or measured.
        value: The number; ``None`` if it was not measured.
        limit: The limit, such as "at most 60"; empty without one.
        place: The file or the module that has the limit or checks the figure.
        note: Anything else, such as why the figure was not measured.
        is_goal: Whether the limit depends on the machine, so that nothing fails if it is missed.
    """

    what: str
    value: float | None
    limit: str = ""
    place: str | ModuleType = ""
    note: str = ""
    is_goal: bool = False

    @property
    def mark(self) -> str:
        """Shows that the limit is missed."""
        if not self.limit or self.value is None or not misses(self.limit, self.value):
            return " "
        return "~" if self.is_goal else "!"

    def __str__(self) -> str:
        value = "-" if self.value is None else number(self.value)
        place = self.place if isinstance(self.place, str) else str(self.place.__file__)
        notes = "; ".join(filter(None, (place.removeprefix(f"{PROJECT}/"), self.note)))
        return f"{self.mark} {self.what:63}{value:>10}  {self.limit:19} {notes}".rstrip()


def at_most(bound: float) -> str:
    """Return a limit."""
    return f"at most {number(bound)}"


def at_least(bound: float) -> str:
    """Return a limit of what should be many."""
    return f"at least {number(bound)}"
