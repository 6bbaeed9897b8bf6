"""The comparison of two configurations: intervals, and rounds on a simulated clock."""

from __future__ import annotations

from collections.abc import Callable
from math import exp
from random import Random

import pytest

from constructs_triton.errors import InvalidValueError
from constructs_triton.measuring.tuning.comparison import (
    ComparisonVerdict,
    compare_in_turns,
    compare_rounds,
    geometric_mean,
    t_quantile,
)


@pytest.mark.parametrize(
    ("degrees", "confidence", "value"),
    [
        (1, 0.95, 12.706204736174694),
        (2, 0.95, 4.302652729749462),
        (3, 0.95, 3.1824463052837078),
        (4, 0.95, 2.7764451051977934),
        (9, 0.95, 2.262157162798205),
        (29, 0.95, 2.045229642132703),
        (5, 0.99, 4.032142983555228),
    ],
)
def test_quantiles_are_those_of_scipy(degrees: int, confidence: float, value: float) -> None:
    """scipy.stats.t.ppf returned these values."""
    assert t_quantile(degrees, confidence) == pytest.approx(value, rel=1e-9)


def test_the_interval_is_that_of_paired_logarithms() -> None:
    """scipy.stats.ttest_rel of the logarithms returned this interval."""
    found = compare_rounds([100, 80, 120, 90, 110], [125, 90, 140, 120, 130])
    assert (found.ratio, found.low, found.high) == pytest.approx(
        (1.2092044750874598, 1.1134271693407334, 1.3132205705356568), rel=1e-9
    )
    assert (found.verdict, found.rounds) == (ComparisonVerdict.FASTER, 5)
    assert str(found) == "faster: 1.21 times the rate (1.11 to 1.31 with 95% confidence, 5 rounds)"


def test_the_exchanged_comparison_has_the_inverse_ratio() -> None:
    """Twice as fast is as far from equal as half as fast."""
    first, second = [10.0, 12.0, 11.0], [5.0, 6.5, 5.4]
    there, back = compare_rounds(first, second), compare_rounds(second, first)
    assert (back.ratio, back.low, back.high) == pytest.approx(
        (1 / there.ratio, 1 / there.high, 1 / there.low)
    )
    assert [each.verdict for each in (there, back)] == [ComparisonVerdict.SLOWER, ComparisonVerdict.FASTER]


class Machine:
    """A simulated clock: each measurement takes a minute, and the machine's speed drifts and jitters."""

    def __init__(self, seed: int, noise: float = 0.05) -> None:
        self._random, self._noise, self._minute = Random(seed), noise, 0

    def configuration(self, rate: float) -> Callable[[], float]:
        def measure() -> float:
            drift = 0.5 if self._minute // 2 % 2 else 1.0  # every second round
            self._minute += 1
            return rate * drift * exp(self._random.gauss(0, self._noise))

        return measure


def verdicts(ratio: float, count: int = 100) -> list[ComparisonVerdict]:
    found = []
    for seed in range(count):
        machine = Machine(seed)
        first, second = machine.configuration(50.0), machine.configuration(50.0 * ratio)
        found.append(compare_in_turns(first, second, rounds=5, seed=seed).verdict)
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
def test_too_few_or_empty_rounds_are_errors(first: list[float], second: list[float], message: str) -> None:
    """There is no interval of one round, and no ratio to a configuration that holds nothing."""
    with pytest.raises(InvalidValueError, match=message):
        compare_rounds(first, second)


@pytest.mark.parametrize("options", [{"rounds": 1}, {"confidence": 1.0}])
def test_options_out_of_range_are_errors(options: dict[str, float]) -> None:
    """The message names the option."""
    with pytest.raises(InvalidValueError, match=next(iter(options))):
        compare_in_turns(lambda: 1.0, lambda: 2.0, **options)  # type: ignore[arg-type]


def test_geometric_mean() -> None:
    """The mean of half and twice is once."""
    assert geometric_mean([0.5, 2.0]) == pytest.approx(1.0)
