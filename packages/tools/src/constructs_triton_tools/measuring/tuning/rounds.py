"""The comparison at the end: rounds of the present configuration and the best ones, in random
order.

The rate of a round is where the latency crosses the limit. A busy machine changes the rates of a
whole round, so candidates are compared within rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import ceil, exp, log
from random import Random

from constructs_triton_tools.measuring.tuning.bench import LEAD_SECONDS
from constructs_triton_tools.measuring.tuning.candidates import Candidate
from constructs_triton_tools.measuring.tuning.racing import Measure, MeasuredStep, Outcome, Race

_NEAR_BEST = 0.8
_STEP = 1.1
_MOST_STEPS = 8
#: Rates of one round by candidate.
Round = dict[Candidate, float]


def choose_finalists(race: Race) -> list[Candidate]:
    """Return the present configuration, the best, and the simplest of those nearly as good."""
    good = [
        trial
        for trial in race.trials.values()
        if trial.outcome in (Outcome.BEST, Outcome.PRESENT) and trial.rate > _NEAR_BEST * race.rate
    ]
    simplest = min(
        (trial.candidate for trial in good),
        key=lambda candidate: candidate.complexity,
        default=race.best,
    )
    return list(dict.fromkeys([race.present, race.best, simplest]))


def measure_rounds(
    measure: Measure,
    estimates: Mapping[Candidate, float],
    *,
    latency_ms: float,
    seconds: float,
    rounds: int,
    seed: int = 0,
    report: Callable[[int, Candidate, float], None] | None = None,
) -> Iterator[Round]:
    """Measure the finalists in turns, and yield the rates of each complete round.

    ``estimates`` has the candidates, and a rate near which the rate of each is searched. ``report``
    is called with each rate.
    """
    near = dict(estimates)
    for number in range(rounds):
        found: Round = {}
        for candidate in Random(seed + number).sample(list(near), len(near)):
            rate = find_crossing(
                lambda rate, each=candidate: measure(each, rate, seconds),  # type: ignore[misc]
                near[candidate],
                latency_ms,
            )
            found[candidate] = near[candidate] = rate
            if report is not None:
                report(number, candidate, rate)
        yield found


def find_crossing(
    measure: Callable[[float], MeasuredStep], estimate: float, latency_ms: float
) -> float:
    """Return the rate at which the latency crosses the limit.

    Goes up or down from the estimate in steps of a tenth, and interpolates between the rate that is
    held and the next one, which is not, in the logarithms of latency and rate.
    """
    rate = estimate
    step = measure(estimate)
    rises = step.is_held
    for _ in range(_MOST_STEPS):
        next_rate = rate * _STEP if rises else rate / _STEP
        following = measure(next_rate)
        if following.is_held != step.is_held:
            held, missed = ((rate, step), (next_rate, following))[:: 1 if rises else -1]
            return _interpolate(held, missed, latency_ms)
        rate = next_rate
        step = following
    return rate


def _interpolate(
    held: tuple[float, MeasuredStep], missed: tuple[float, MeasuredStep], latency_ms: float
) -> float:
    low, below = held
    high, above = missed
    # A step with errors can miss although its latency is low.
    if not 0 < below.latency_ms < latency_ms < above.latency_ms:
        return low
    share = log(latency_ms / below.latency_ms) / log(above.latency_ms / below.latency_ms)
    return exp(log(low) + share * log(high / low))


# --- the time -------------------------------------------------------------------------------------

MOST_ROUNDS = 5
FEWEST_ROUNDS = 2
_FINALISTS = 3
# What a candidate costs on average: its start, short steps, and for a winner longer ones.
_START_SECONDS = 3.0
_SHORT_STEPS = 3.0
_LONG_STEPS = 0.8
_STEPS_OF_CROSSING = 3.2
_LARGEST_RESERVE = 0.45
# The present configuration of a model whose batches raise the rate of one caller twenty times.
_SHORT_STEPS_OF_PRESENT = 14


@dataclass(frozen=True, slots=True)
class Schedule:
    """The time of a search and of the comparison after it.

    ``budget_seconds`` is the time of both together, and ``step_seconds`` the length of a short
    step.
    """

    budget_seconds: float
    step_seconds: float

    @property
    def confirm_seconds(self) -> float:
        """Length of a step that confirms a rate."""
        return 2 * self.step_seconds

    def _comparison_seconds(self, finalists: int) -> float:
        return finalists * MOST_ROUNDS * _STEPS_OF_CROSSING * (self.confirm_seconds + LEAD_SECONDS)

    @property
    def least_minutes(self) -> float:
        """The smallest budget in which the search usually finds the rate of the
        present configuration.
        """
        short = _SHORT_STEPS_OF_PRESENT * (self.step_seconds + LEAD_SECONDS)
        seconds = (short + self.confirm_seconds + LEAD_SECONDS) / (1 - _LARGEST_RESERVE)
        return ceil(seconds / 6) / 10

    @property
    def search_seconds(self) -> float:
        """The time of the search; the rest is for the comparison."""
        wanted = self._comparison_seconds(_FINALISTS)
        return self.budget_seconds - min(wanted, _LARGEST_RESERVE * self.budget_seconds)

    def rounds(self, finalists: int, seconds_left: float) -> tuple[int, float]:
        """Return how many rounds fit into the time that is left, and the length of a step.

        The number is fixed before the first round: a comparison that ends as soon as it shows a
        difference often shows one that does not exist.
        """
        for rounds in range(MOST_ROUNDS, FEWEST_ROUNDS - 1, -1):
            each = seconds_left / (finalists * rounds * _STEPS_OF_CROSSING) - LEAD_SECONDS
            if each >= self.step_seconds:
                return rounds, min(each, self.confirm_seconds)
        return FEWEST_ROUNDS, self.step_seconds

    @property
    def _candidate_seconds(self) -> float:
        short = _SHORT_STEPS * (self.step_seconds + LEAD_SECONDS)
        return _START_SECONDS + short + _LONG_STEPS * (self.confirm_seconds + LEAD_SECONDS)

    @property
    def fitting_candidates(self) -> int:
        """How many candidates a search usually tries within the budget."""
        return max(1, int(self.search_seconds / self._candidate_seconds))

    def expected_seconds(self, candidates: int) -> float:
        """Return how long a search of this number of candidates and its comparison usually take."""
        search = candidates * self._candidate_seconds
        comparison = self._comparison_seconds(2)
        return min(search, self.search_seconds) + min(
            comparison, self.budget_seconds - self.search_seconds
        )
