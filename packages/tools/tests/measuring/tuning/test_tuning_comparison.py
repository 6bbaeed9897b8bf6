"""The comparison of two configurations: intervals, and rounds on a simulated clock."""

from __future__ import annotations

from collections.abc import Callable
from math import exp, log, sqrt
from random import Random
from statistics import stdev

import pytest

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.measuring.tuning.comparison import ComparisonVerdict, compare_rounds


@pytest.mark.parametrize(
    ("rounds", "value"), [(2, 12.706205), (5, 2.776445), (10, 2.262157), (21, 2.085963)]
)
def test_half_of_the_interval_is_that_of_student(rounds: int, value: float) -> None:
    """The interval of ratios with a standard error of 1 is as wide as
    scipy.stats.t.ppf(0.975, ...) says.
    """
    offsets = [1, -1] * (rounds // 2) + [0] * (rounds % 2)
    error = stdev(offsets) / sqrt(rounds)
    found = compare_rounds([1.0] * rounds, [exp(offset / error) for offset in offsets])
    assert log(found.high / found.ratio) == pytest.approx(value, rel=1e-4)


def test_the_interval_is_that_of_paired_logarithms() -> None:
    """scipy.stats.ttest_rel of the logarithms returned this interval."""
    found = compare_rounds([100, 80, 120, 90, 110], [125, 90, 140, 120, 130])
    assert (found.ratio, found.low, found.high) == pytest.approx(
        (1.2092045, 1.1134272, 1.3132206), rel=1e-5
    )
    assert (found.verdict, found.rounds) == (ComparisonVerdict.FASTER, 5)
    assert str(found) == "faster: 1.21 times the rate (1.11 to 1.31 with 95% confidence, 5 rounds)"


def test_the_exchanged_comparison_has_the_inverse_ratio() -> None:
    """Twice as fast is as far from equal as half as fast."""
    first = [10.0, 12.0, 11.0]
    second = [5.0, 6.5, 5.4]

    forward = compare_rounds(first, second)
    back = compare_rounds(second, first)

    assert (back.ratio, back.low, back.high) == pytest.approx(
        (1 / forward.ratio, 1 / forward.high, 1 / forward.low)
    )
    assert forward.verdict == ComparisonVerdict.SLOWER
    assert back.verdict == ComparisonVerdict.FASTER


class Machine:
    """A simulated clock: each measurement takes a minute,
    and the machine's speed drifts and jitters.
    """

    def __init__(self, seed: int, noise: float = 0.05) -> None:
        self._random = Random(seed)
        self._noise = noise
        self._minute = 0

    def configuration(self, rate: float) -> Callable[[], float]:
        """What measures a configuration that holds this rate on a quiet machine."""

        def measure() -> float:
            drift = 0.5 if self._minute // 2 % 2 else 1.0  # every second round
            self._minute += 1
            return rate * drift * exp(self._random.gauss(0, self._noise))

        return measure


def in_random_order(measures: list[Callable[[], float]], random: Random) -> tuple[float, float]:
    """Measure both configurations once, in random order, and return their rates."""
    rates = {number: measures[number]() for number in random.sample(range(2), 2)}
    return rates[0], rates[1]


def verdicts(ratio: float, count: int = 100) -> list[ComparisonVerdict]:
    """The verdicts on many machines, where the second rate is ``ratio`` times the first."""
    found = []
    for seed in range(count):
        machine = Machine(seed)
        measures = [machine.configuration(50.0), machine.configuration(50.0 * ratio)]
        first_rates = []
        second_rates = []
        for number in range(5):
            first, second = in_random_order(measures, Random(seed * 10 + number))
            first_rates.append(first)
            second_rates.append(second)
        found.append(compare_rounds(first_rates, second_rates).verdict)
    return found


def test_a_faster_configuration_is_found_on_a_machine_that_drifts() -> None:
    """Rounds are half as fast from one to the next, and a gain of a fifth is still seen."""
    assert verdicts(1.2).count(ComparisonVerdict.FASTER) >= 95
    assert verdicts(0.8).count(ComparisonVerdict.SLOWER) >= 95


def test_equal_configurations_are_seldom_distinguished() -> None:
    """At most about one comparison in twenty is wrong, which is what 95 percent means."""
    assert verdicts(1.0).count(ComparisonVerdict.NOT_DISTINGUISHABLE) >= 88


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ([1.0], [1.0], "rounds: must be at least 2"),
        ([1.0, 2.0], [1.0], "rounds: must be at least 2"),
        ([1.0, 0.0], [1.0, 1.0], "rates: must be above 0"),
    ],
)
def test_too_few_or_empty_rounds_are_errors(
    first: list[float], second: list[float], message: str
) -> None:
    """There is no interval of one round, and no ratio to a configuration that holds nothing."""
    with pytest.raises(InvalidValueError, match=message):
        compare_rounds(first, second)
