"""The comparison at the end: rounds of the present configuration and the best ones, in random
order.

The rate of a round is where the latency crosses the limit. A busy machine changes the rates of a
whole round, so candidates are compared within rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import exp, log
from random import Random

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
