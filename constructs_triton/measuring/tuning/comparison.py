"""Compares two configurations by rounds in which both were measured, and says how sure the result is.

A busy machine slows down a whole round, so the rates of one round are compared with each other, and only
their ratios over the rounds. The logarithm of a ratio makes half and twice as fast equally far from equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import atan, cos, exp, log, pi, sin, sqrt
from random import Random
from statistics import mean, stdev

from constructs_triton.errors import InvalidValueError

__all__ = [
    "Comparison",
    "ComparisonVerdict",
    "compare_in_turns",
    "compare_rounds",
    "geometric_mean",
    "t_quantile",
]

_BISECTIONS = 60
_HIGHEST_QUANTILE = 1e6


class ComparisonVerdict(StrEnum):
    """What a comparison shows of the second configuration."""

    FASTER = "faster"
    SLOWER = "slower"
    NOT_DISTINGUISHABLE = "not distinguishable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """How many times the rate of the first configuration the second one has.

    Args:
        ratio: Geometric mean of the ratios of the rounds.
        low: Lower end of the interval of the ratio.
        high: Upper end of the interval of the ratio.
        confidence: Confidence of the interval, such as 0.95.
        rounds: Number of rounds.
    """

    ratio: float
    low: float
    high: float
    confidence: float
    rounds: int

    @property
    def verdict(self) -> ComparisonVerdict:
        """Whether the second is faster or slower; not distinguishable if the interval contains 1."""
        if self.low > 1:
            return ComparisonVerdict.FASTER
        return ComparisonVerdict.SLOWER if self.high < 1 else ComparisonVerdict.NOT_DISTINGUISHABLE

    def __str__(self) -> str:
        interval = f"{self.low:.2f} to {self.high:.2f} with {self.confidence:.0%} confidence"
        return f"{self.verdict}: {self.ratio:.2f} times the rate ({interval}, {self.rounds} rounds)"


def compare_rounds(
    first: Sequence[float], second: Sequence[float], *, confidence: float = 0.95
) -> Comparison:
    """Compare the rates of two configurations that were measured in the same rounds.

    The interval is Student's t for the mean of the logarithms of the ratios.

    Args:
        first: Rate of the first configuration in each round.
        second: Rate of the second configuration in each round.
        confidence: Confidence of the interval, above 0 and below 1.

    Raises:
        InvalidValueError: there are fewer than two rounds, a rate is not positive, or ``confidence`` is out
            of range.
    """
    if len(first) != len(second) or len(first) < 2:
        raise InvalidValueError(
            f"rounds: must be at least 2 with both configurations, got {len(first)} and {len(second)} rates; "
            "measure more rounds"
        )
    if min(*first, *second) <= 0:
        raise InvalidValueError(
            f"rates: must be above 0, got {min(*first, *second)}; leave out a configuration without a rate"
        )
    if not 0 < confidence < 1:
        raise InvalidValueError(f"confidence: must be above 0 and below 1, got {confidence}; use 0.95")
    ratios = [log(after / before) for before, after in zip(first, second, strict=True)]
    half = t_quantile(len(ratios) - 1, confidence) * stdev(ratios) / sqrt(len(ratios))
    center = mean(ratios)
    return Comparison(
        ratio=exp(center),
        low=exp(center - half),
        high=exp(center + half),
        confidence=confidence,
        rounds=len(ratios),
    )


def compare_in_turns(
    first: Callable[[], float],
    second: Callable[[], float],
    *,
    rounds: int = 5,
    confidence: float = 0.95,
    seed: int = 0,
) -> Comparison:
    """Measure two configurations in turns, in a random order in each round, and compare them.

    The number of rounds is fixed: a comparison that ends as soon as it shows a difference often shows one
    that does not exist.

    Args:
        first: Measures the rate of the first configuration.
        second: Measures the rate of the second configuration.
        rounds: Number of rounds, at least 2.
        confidence: Confidence of the interval.
        seed: Start of the random orders.

    Raises:
        InvalidValueError: a number is out of range, or a measured rate is not positive.
    """
    if rounds < 2:
        raise InvalidValueError(f"rounds: must be at least 2, got {rounds}; use 5")
    measured = list(_measure_rounds([first, second], rounds, Random(seed)))
    return compare_rounds(
        [each[0] for each in measured], [each[1] for each in measured], confidence=confidence
    )


def _measure_rounds(
    measures: Sequence[Callable[[], float]], rounds: int, random: Random
) -> Iterator[dict[int, float]]:
    numbers = range(len(measures))
    for _ in range(rounds):
        yield {number: measures[number]() for number in random.sample(numbers, len(numbers))}


def geometric_mean(values: Sequence[float]) -> float:
    """Return the geometric mean of positive values."""
    return exp(mean(map(log, values)))


def t_quantile(degrees: int, confidence: float) -> float:
    """Return the value within which Student's t is with this probability, on both sides of 0.

    It is 2.776 for 4 degrees of freedom (5 rounds) and 0.95.
    """
    low, high = 0.0, _HIGHEST_QUANTILE
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        low, high = (middle, high) if _t_probability(middle, degrees) < confidence else (low, middle)
    return low


def _t_probability(value: float, degrees: int) -> float:
    """Return the probability of Student's t between -value and value.

    Source: Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.3 and 26.7.4.
    """
    angle = atan(value / sqrt(degrees))
    term = cos(angle) if degrees % 2 else 1.0
    total = term if degrees > 1 else 0.0
    for step in range(2 + degrees % 2, degrees, 2):
        term *= cos(angle) ** 2 * (step - 1) / step
        total += term
    total *= sin(angle)
    return (angle + total) * 2 / pi if degrees % 2 else total
