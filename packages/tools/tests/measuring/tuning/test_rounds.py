"""The rounds at the end of a search, on simulated models."""

from __future__ import annotations

from math import log

import pytest
from simulated_models import LATENCY_MS, SimulatedModels, fixed_per_batch, per_item

from constructs_triton_tools.measuring.tuning.candidates import Candidate, ModelSettings
from constructs_triton_tools.measuring.tuning.racing import MeasuredStep, Outcome, Race, Trial
from constructs_triton_tools.measuring.tuning.rounds import (
    choose_finalists,
    find_crossing,
    measure_rounds,
)

PRESENT = Candidate.of(m=ModelSettings())
BATCHED = Candidate.of(m=ModelSettings(1, 32))


def test_crossing_is_interpolated() -> None:
    """The crossing of a latency that is proportional to the rate is found exactly,
    from either side.
    """

    def measure(rate: float) -> MeasuredStep:
        return MeasuredStep(2 * rate <= 100, 2 * rate)

    assert find_crossing(measure, 40, 100) == pytest.approx(50)
    assert find_crossing(measure, 64, 100) == pytest.approx(50)


def test_crossing_of_errors_is_the_rate_that_was_held() -> None:
    """A step that was missed because of errors, and not of its latency, gives the rate below it."""
    found = find_crossing(lambda rate: MeasuredStep(rate < 50, 20.0), 48, 100)
    assert found == 48


@pytest.mark.parametrize("seed", range(4))
def test_rounds_give_the_ratio_of_the_true_rates(seed: int) -> None:
    """The geometric mean of the ratios of five rounds is within 12 percent of the
    ratio of the true rates.
    """
    models = SimulatedModels({"m": fixed_per_batch}, seed)
    truth = {candidate: models.capacity(candidate) for candidate in (PRESENT, BATCHED)}

    rounds = list(
        measure_rounds(
            models.measure, truth, latency_ms=LATENCY_MS, seconds=20, rounds=5, seed=seed
        )
    )

    mean = sum(log(rates[BATCHED] / rates[PRESENT]) for rates in rounds) / 5
    assert mean == pytest.approx(log(truth[BATCHED] / truth[PRESENT]), abs=0.12)


def test_finalists_are_the_present_the_best_and_the_simplest_near_it() -> None:
    """A simpler candidate within 20 percent of the best is a finalist, a slower one is not."""
    race = Race(SimulatedModels({"m": per_item}).measure, PRESENT)
    race.best = Candidate.of(m=ModelSettings(2, 64))
    race.rate = 100.0
    simpler = Candidate.of(m=ModelSettings(1, 16))
    slower = Candidate.of(m=ModelSettings(1, 8))
    race.trials[simpler] = Trial(simpler, Outcome.BEST, 90.0)
    race.trials[slower] = Trial(slower, Outcome.BEST, 70.0)

    assert choose_finalists(race) == [PRESENT, race.best, simpler]
