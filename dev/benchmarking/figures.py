"""The figures of the benchmarks: ``benchmarks/limits.toml``.

A figure is found in what its benchmark prints, so scripts of different commits can be compared.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

_NUMBER = r"([\d,.]+)"
_Entry = TypeVar("_Entry")


class LimitsError(ValueError):
    """The file of limits has a name that does not exist."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A number in what a benchmark prints.

    Args:
        name: What is measured, with its unit.
        pattern: Regular expression. The value is its group, or the quotient of its two groups.
        limit: What the number should be, such as "at most 1.3".
        more_is_better: Whether a higher number is better, as for a rate.
        by_clock: Why the number is not processor time; empty if it is.
    """

    name: str
    pattern: str
    limit: str = ""
    more_is_better: bool = False
    by_clock: str = ""

    def find(self, output: str) -> list[float]:
        """Return the values in what a run printed."""
        expression = self.pattern.replace("<n>", _NUMBER)
        return [_value(match.groups()) for match in re.finditer(expression, output, re.MULTILINE)]

    def times_as_slow(self, before: float, now: float) -> float:
        """Return how many times as slow it is now; below 1 if it became faster."""
        return before / now if self.more_is_better else now / before

    def shown_limit(self, value: float) -> str:
        """Return the limit, and whether the value misses it."""
        if not self.limit:
            return ""
        return f"{self.limit}, missed" if misses(self.limit, value) else self.limit


def misses(limit: str, value: float) -> bool:
    """Return whether a value misses a limit, such as "at most 25,000" or "at least 0.4"."""
    words, _, last = limit.rpartition(" ")
    bound = float(last.replace(",", ""))
    return value < bound if words == "at least" else value > bound


@dataclass(frozen=True, slots=True)
class Run:
    """A call of a benchmark.

    Args:
        script: Name of the benchmark.
        figures: Figures of its output.
        arguments: Its arguments in a comparison.
        is_shared: Whether the script imports nothing of the project, so that this commit's script
            also measures the earlier commit.
        is_compared: Whether it is short enough for a comparison.
        rounds: Rounds of a comparison. Default: those of the command.
    """

    script: str
    figures: tuple[Figure, ...]
    arguments: tuple[str, ...] = ()
    is_shared: bool = False
    is_compared: bool = True
    rounds: int = 0


@dataclass(frozen=True, slots=True)
class Slower:
    """A figure that may be slower than before.

    Args:
        figure: Name of the figure.
        up_to: It may be slower than at this commit, and than at earlier ones.
        at_most: How many times as slow it may be.
        reason: Why.
    """

    figure: str
    up_to: str
    at_most: float
    reason: str


@dataclass(frozen=True, slots=True)
class Limits:
    """What the file of limits has."""

    runs: tuple[Run, ...]
    slower: tuple[Slower, ...] = ()


def read_limits(path: Path) -> Limits:
    """Read the file of limits.

    Raises:
        LimitsError: a name does not exist, or two figures have the same name.
    """
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    if unknown := sorted(set(document) - {"run", "slower"}):
        raise LimitsError(
            f"{path.name}: must have only [[run]] and [[slower]], got {', '.join(unknown)}"
        )
    runs = tuple(_run(path, table) for table in document.get("run", ()))
    slower = tuple(_entry(path, Slower, table) for table in document.get("slower", ()))
    names = [figure.name for run in runs for figure in run.figures]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise LimitsError(
            f"{path.name}: each figure needs its own name, got twice: {', '.join(twice)}"
        )
    for each in slower:
        if each.figure not in names:
            raise LimitsError(
                f"{path.name}: [[slower]] has no figure {each.figure!r}; use a name of the file"
            )
    return Limits(runs, slower)


def _run(path: Path, table: Mapping[str, Any]) -> Run:
    if not (script := path.with_name(f"{table.get('script')}.py")).is_file():
        raise LimitsError(
            f"{path.name}: script must be a file of {script.parent.name}/, got {script.name}"
        )
    figures = tuple(_entry(path, Figure, each) for each in table.get("figure", ()))
    rest = {name: value for name, value in table.items() if name != "figure"}
    return _entry(
        path, Run, {**rest, "arguments": tuple(rest.get("arguments", ())), "figures": figures}
    )


def _entry(path: Path, kind: type[_Entry], table: Mapping[str, Any]) -> _Entry:
    try:
        return kind(**table)
    except TypeError as error:  # an unknown or a missing key
        raise LimitsError(
            f"{path.name}: {str(error).partition('() ')[2]}; see the top of the file"
        ) from None


@dataclass(frozen=True, slots=True)
class Values:
    """The values of a figure in all rounds of a commit, and why there are none."""

    values: list[float]
    reasons: list[str]

    @property
    def median(self) -> float:
        return median(self.values)

    def __str__(self) -> str:
        return cell(self.values) if self.values else f"none: {self.reasons[0]}"


def cell(values: Sequence[float]) -> str:
    """Return the median of all runs and, in brackets, the lowest and the highest value."""
    middle = number(median(values))
    if len(set(values)) == 1:
        return middle
    return f"{middle} ({number(min(values))} to {number(max(values))})"


def number(value: float) -> str:
    """Return a number with three digits, or all digits before the point."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _value(groups: Sequence[str]) -> float:
    first, *others = (float(group.replace(",", "")) for group in groups)
    return first / others[0] if others else first
