"""Compares the rates of two configurations over rounds, and says how sure the result is.

A busy machine slows down a whole round, so the rates of one round are compared with each other, and
only their ratios over the rounds. The logarithm of a ratio makes half and twice as fast equally far
from equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import exp, log, sqrt
from statistics import mean, stdev

from constructs_triton_core.errors import InvalidValueError

# Student's t with 1, 2, 3 ... degrees of freedom, for 95%: scipy.stats.t.ppf(0.975, degrees).
_T = (
    12.7062,
    4.3027,
    3.1824,
    2.7764,
    2.5706,
    2.4469,
    2.3646,
    2.3060,
    2.2622,
    2.2281,
    2.2010,
    2.1788,
    2.1604,
    2.1448,
    2.1314,
    2.1199,
    2.1098,
    2.1009,
    2.0930,
    2.0860,
)


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
        low: Lower end of the 95% confidence interval of the ratio.
        high: Upper end of the interval.
        rounds: Number of rounds.
    """

    ratio: float
    low: float
    high: float
    rounds: int

    @property
    def verdict(self) -> ComparisonVerdict:
        """Whether the second is faster or slower;
        not distinguishable if the interval contains 1.
        """
        if self.low > 1:
            return ComparisonVerdict.FASTER
        return ComparisonVerdict.SLOWER if self.high < 1 else ComparisonVerdict.NOT_DISTINGUISHABLE

    def __str__(self) -> str:
        interval = f"{self.low:.2f} to {self.high:.2f} with 95% confidence"
        return f"{self.verdict}: {self.ratio:.2f} times the rate ({interval}, {self.rounds} rounds)"


def compare_rounds(first: Sequence[float], second: Sequence[float]) -> Comparison:
    """Compare the rates of two configurations that were measured in the same rounds.

    The interval is Student's t for the mean of the logarithms of the ratios.

    Args:
        first: Rate of the first configuration in each round.
        second: Rate of the second configuration in each round.

    Raises:
        InvalidValueError: there are fewer than two rounds, or a rate is not positive.
    """
    if len(first) != len(second) or len(first) < 2:
        raise InvalidValueError(
            f"rounds: must be at least 2 with both configurations, got {len(first)} and "
            f"{len(second)} rates; measure more rounds"
        )
    if min(*first, *second) <= 0:
        raise InvalidValueError(
            f"rates: must be above 0, got {min(*first, *second)}; "
            "leave out a configuration without a rate"
        )
    ratios = [log(after / before) for before, after in zip(first, second, strict=True)]
    # With more rounds than the table has, the interval is up to 6 percent wider than it must be.
    half = _T[min(len(ratios) - 1, len(_T)) - 1] * stdev(ratios) / sqrt(len(ratios))
    center = mean(ratios)
    return Comparison(
        ratio=exp(center), low=exp(center - half), high=exp(center + half), rounds=len(ratios)
    )
