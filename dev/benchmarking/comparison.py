"""Compares two commits: ``make bench AGAINST=<commit>``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from benchmarking.figures import Figure, Limits, Run, Slower, Values, number
from benchmarking.versions import Version

TOLERANCE = 1.1  # times as slow
FIX = (
    "make these figures faster (`python benchmarks/shares.py` and `python -X importtime` show "
    "where the time goes), or give the reason in a [[slower]] of benchmarks/limits.toml"
)
_ROWS = "| figure | limit | {before} | now | now / before | |\n|---|---|---|---|---|---|"


@dataclass(frozen=True, slots=True)
class Compared:
    """A figure of both commits, and why it may be slower, if it may."""

    figure: Figure
    before: Values
    now: Values
    slower: Slower | None = None

    @property
    def times_as_slow(self) -> float | None:
        """How many times as slow the figure is now; ``None`` if a commit lacks it."""
        if not self.before.values or not self.now.values:
            return None
        return self.figure.times_as_slow(self.before.median, self.now.median)

    @property
    def is_slower(self) -> bool:
        """Whether the figure fell by more than is allowed."""
        allowed = max(TOLERANCE, self.slower.at_most if self.slower else 0)
        return self.times_as_slow is not None and self.times_as_slow > allowed

    def problem(self, commit: str) -> str:
        """Return what is wrong, or an empty string."""
        if not self.now.values:
            return (
                f"{self.figure.name}: not measured, {self.now.reasons[0]}; run its benchmark alone"
            )
        if not self.is_slower:
            return ""
        return (
            f"{self.figure.name}: {number(self.before.median)} at {commit}, "
            f"{number(self.now.median)} now, {self.times_as_slow:.2f} times as slow"
        )

    def row(self) -> str:
        """Return the row of the table."""
        limit = self.figure.shown_limit(self.now.median) if self.now.values else self.figure.limit
        ratio = note = ""
        if self.times_as_slow is not None:
            ratio = f"{self.now.median / self.before.median:.2f}"
            note = "slower" if self.times_as_slow > TOLERANCE else ""
        if note and self.slower:
            note += f", at most {self.slower.at_most} times: {self.slower.reason}"
        return f"| {self.figure.name} | {limit} | {self.before} | {self.now} | {ratio} | {note} |"


def compare(
    limits: Limits, now: Version, before: Version, rounds: int, names: Sequence[str]
) -> Iterator[Compared]:
    """Measure both commits in turns, print each value, and yield the figures of each run."""
    for run in limits.runs:
        if run.is_compared and run.script in names:
            print(f"{run.script} {' '.join(run.arguments)} ...", flush=True)
            yield from _compare(run, limits, now, before, rounds)


def _compare(
    run: Run, limits: Limits, now: Version, before: Version, rounds: int
) -> Iterable[Compared]:
    allowed = {each.figure: each for each in limits.slower if before.is_up_to(each.up_to)}
    found = [
        Compared(figure, Values([], []), Values([], []), allowed.get(figure.name))
        for figure in run.figures
    ]
    for version in turns(before, now, run.rounds or rounds):
        outcome = version.run(run.script, run.arguments, is_shared=run.is_shared)
        for each in found:
            values = each.figure.find(outcome.output)
            kept = each.before if version is before else each.now
            kept.values.extend(values)
            if not values:
                kept.reasons.append(outcome.reason or "not printed")
            shown = ", ".join(map(number, values)) or f"none: {kept.reasons[-1]}"
            print(f"  {version.name:10} {each.figure.name}: {shown}", flush=True)
    return found


def turns(before: Version, now: Version, rounds: int) -> Iterator[Version]:
    """Yield both commits in turns; the first of a round is the last of the next,
    so none is favored.
    """
    for number_of_round in range(rounds):
        yield from (before, now) if number_of_round % 2 == 0 else (now, before)


def table(found: Iterable[Compared], commit: str) -> list[str]:
    """Return the lines of the table on the page."""
    return [_ROWS.format(before=commit), *(each.row() for each in found)]


def load(read: Callable[[], tuple[float, float, float]] = os.getloadavg) -> str:
    """Return the load of the machine, and what it means."""
    load, cores = read()[0], os.cpu_count() or 1
    busy = (
        "; other programs are running, so figures by the clock say little" if load > cores else ""
    )
    return f"load {load:.1f} on {cores} cores{busy}"
