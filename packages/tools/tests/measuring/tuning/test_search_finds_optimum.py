"""The search on models whose best configuration is known, on a simulated clock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache

import pytest
from simulated_models import (
    SimulatedModels,
    fixed_per_batch,
    per_item,
    quick,
    threaded,
)

from constructs_triton_tools.measuring.tuning.axes import count_candidates, search
from constructs_triton_tools.measuring.tuning.candidates import (
    Candidate,
    ModelSettings,
    SearchSpace,
)
from constructs_triton_tools.measuring.tuning.racing import (
    CandidateRefusedError,
    Outcome,
    Race,
)

SPACE = SearchSpace(2, 64, delays_microseconds=(3000, 7500, 15_000))
THREADS = replace(SPACE, most_batch=1, parameters=(("threads", ("1", "2")),))
PLAIN, TWO_THREADS = ModelSettings(), ModelSettings(parameters=(("threads", "2"),))
SEEDS = range(2)
CASES = {
    "fixed time per batch": ({"m": fixed_per_batch}, SPACE, PLAIN, ModelSettings(1, 64)),
    "time per item": ({"m": per_item}, SPACE, PLAIN, ModelSettings(2, 1)),
    "one thread each": (
        {"m": threaded},
        THREADS,
        TWO_THREADS,
        ModelSettings(2, 1, 0, (("threads", "1"),)),
    ),
}


def run(
    models: SimulatedModels,
    spaces: dict[str, SearchSpace],
    present: Candidate,
    order: Callable[[], Sequence[str]] | None = None,
) -> Race:
    race = Race(models.measure, present)
    race.begin(6.0)
    search(race, spaces, order)
    return race


@cache
def race_of(case: str, seed: int) -> tuple[SimulatedModels, Race]:
    """The race of a case, once for all tests that look at it."""
    costs, space, present, _ = CASES[case]
    models = SimulatedModels(costs, seed)
    return models, run(models, {"m": space}, Candidate.of(m=present))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", CASES)
def test_search_finds_a_configuration_within_a_tenth_of_the_optimum(name: str, seed: int) -> None:
    """On each model and with each seed, the winner's true rate is within 10 percent of the
    optimum's.

    The plan announces at least as many candidates as were tried.
    """
    _, space, _, optimum = CASES[name]
    models, race = race_of(name, seed)
    truth = models.capacity(race.best)
    assert truth >= 0.9 * models.capacity(Candidate.of(m=optimum)), race.trials
    assert models.seconds < 8 * 60
    assert len(race.trials) <= count_candidates(race.present, {"m": space})


def test_search_finds_the_slow_step_of_an_ensemble() -> None:
    """The step with the longest queue is searched first,
    and the quick steps keep their settings.
    """
    costs = {"first": quick, "slow": fixed_per_batch, "last": quick}
    models = SimulatedModels(costs)
    present = Candidate.of(first=PLAIN, slow=PLAIN, last=PLAIN)
    race = run(models, dict.fromkeys(costs, SPACE), present, lambda: ["slow", "first", "last"])
    optimum = present.with_settings("slow", ModelSettings(1, 64))
    assert models.capacity(race.best) >= 0.9 * models.capacity(optimum)
    assert race.best["first"] == race.best["last"] == PLAIN
    assert race.best.describe(present).startswith("slow: 1 instance, batches up to")


@pytest.mark.parametrize("seed", SEEDS)
def test_search_bears_disturbed_steps(seed: int) -> None:
    """If every tenth step runs at half speed, the winner is within 15 percent of the optimum."""
    models = SimulatedModels({"m": fixed_per_batch}, seed, disturbed=0.1)
    race = run(models, {"m": SPACE}, Candidate.of(m=PLAIN))
    assert models.capacity(race.best) >= 0.85 * models.capacity(
        Candidate.of(m=ModelSettings(1, 64))
    )


def test_failed_candidates_are_results() -> None:
    """A refused candidate is recorded with its reason and ends its setting; the search goes on."""
    heavy = Candidate.of(m=ModelSettings(2, 1))
    refusals = {heavy: CandidateRefusedError("out of memory")}
    models = SimulatedModels({"m": per_item}, refusals=refusals)
    race = run(models, {"m": replace(SPACE, most_instances=8)}, Candidate.of(m=PLAIN))
    assert race.trials[heavy].outcome is Outcome.REFUSED
    assert race.trials[heavy].reason == "out of memory"
    assert Candidate.of(m=ModelSettings(4, 1)) not in race.trials
    assert race.best == race.present


def test_other_outputs_end_the_setting() -> None:
    """A batch that changes the outputs is recorded as such, and larger batches are not tried."""
    wrong = Candidate.of(m=ModelSettings(1, 2))
    refusals = {wrong: CandidateRefusedError("output Y differs", is_wrong=True)}
    race = run(
        SimulatedModels({"m": fixed_per_batch}, refusals=refusals),
        {"m": SPACE},
        Candidate.of(m=PLAIN),
    )
    assert race.trials[wrong].outcome is Outcome.WRONG
    assert not any(candidate["m"].batch > 1 for candidate in race.trials if candidate != wrong)
    assert race.best["m"].batch == 1


def test_a_winning_batch_gets_delays() -> None:
    """Delays are tried only after a batch has won, and one that does not help is below the best."""
    _, batched = race_of("fixed time per batch", 0)
    _, single = race_of("time per item", 0)
    assert {candidate["m"].delay_microseconds for candidate in batched.trials} == {
        0,
        3000,
        7500,
        15_000,
    }
    assert {candidate["m"].delay_microseconds for candidate in single.trials} == {0}


def test_present_configuration_without_a_rate_can_be_beaten() -> None:
    """If the present configuration holds no rate within the limit,
    a candidate that holds one wins.
    """

    def slow_alone(settings: ModelSettings, size: int) -> tuple[float, int]:
        return (0.2, 2) if settings.instances == 1 else (0.05, 1)

    race = run(SimulatedModels({"m": slow_alone}), {"m": SPACE}, Candidate.of(m=PLAIN))
    assert race.trials[race.present].rate == 0
    assert race.best["m"].instances == 2


def test_step_keeps_the_batches_of_its_ensemble() -> None:
    """A step gets no dynamic batching, or batches of at least what its ensemble allows."""
    models = SimulatedModels({"m": fixed_per_batch})
    race = run(models, {"m": replace(SPACE, least_batch=16)}, Candidate.of(m=PLAIN))
    assert {candidate["m"].batch for candidate in race.trials} == {1, 16, 32, 64}
