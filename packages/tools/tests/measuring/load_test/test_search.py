"""The search for the highest rate, on queues whose knee is known."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from math import inf
from random import Random
from typing import Any

import pytest

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.measuring.load_test.open_loop import due_times
from constructs_triton_tools.measuring.load_test.samples import Recording, Sample
from constructs_triton_tools.measuring.load_test.search import (
    GENERATOR_WAS_BUSY,
    NO_HIGHER_RATE,
    HeldSteps,
    Search,
)
from constructs_triton_tools.measuring.load_test.step import (
    Limits,
    StepResult,
    StepSettings,
    evaluate,
)


def queue_step(
    servers: int, seconds: float, limit_ms: float
) -> Callable[[float, float], StepResult]:
    """Measure an M/M/c queue: random arrivals, exponential service times, ``servers`` at a time."""
    rng = Random(1)
    limits = Limits(latency_ms=limit_ms)

    def measure(rate: float, times: float) -> StepResult:
        free = [0.0] * servers
        samples = []
        for due in due_times(rate, 200 * times, rng):
            end = max(due, heapq.heappop(free)) + rng.expovariate(1 / seconds)
            heapq.heappush(free, end)
            samples.append(Sample(0.0, end - due, 200))
        return evaluate(rate, StepSettings(seconds=200 * times), limits, [Recording(samples)])

    return measure


def latency_above(servers: int, seconds: float, rate: float, limit: float) -> float:
    """The probability that a request of an M/M/c queue takes longer than ``limit`` (Erlang C)."""
    load = rate * seconds
    all_busy = load**servers / math.factorial(servers) * servers / (servers - load)
    some_free = sum(load**busy / math.factorial(busy) for busy in range(servers))
    waits = all_busy / (some_free + all_busy)
    service = 1 / seconds
    drain = servers / seconds - rate + 1e-6
    # The sum of a wait (with probability `waits`, exponential with the rate `drain`) and a service
    # time.
    both = (drain * math.exp(-service * limit) - service * math.exp(-drain * limit)) / (
        drain - service
    )
    return (1 - waits) * math.exp(-service * limit) + waits * both


def knee(servers: int, seconds: float, limit: float) -> float:
    """The rate at which exactly 5 percent of the requests take longer than ``limit``."""
    low, high = 0.0, servers / seconds
    for _ in range(60):
        middle = (low + high) / 2
        if latency_above(servers, seconds, middle, limit) < 0.05:
            low = middle
        else:
            high = middle
    return low


@pytest.mark.parametrize(
    ("servers", "seconds", "limit"), [(1, 0.02, 0.2), (4, 0.05, 0.25), (16, 0.1, 0.5)]
)
def test_search_finds_the_knee_of_a_queue(servers: int, seconds: float, limit: float) -> None:
    """The highest rate that is held is within 10 percent of where the p95 reaches the limit."""
    search = Search(queue_step(servers, seconds, limit * 1000))
    steps = list(search.run())
    assert search.best is not None
    assert search.best.rate == pytest.approx(knee(servers, seconds, limit), rel=0.1)
    assert search.best in steps
    assert search.best.seconds == 600
    assert len(steps) <= 17


def result(rate: float, verdict: str = "held", times: float = 1) -> StepResult:
    """A step with a verdict: errors for one that is not held, a busy CPU for a void one."""
    errors = [] if verdict == "held" else [Sample(0, 0.01, 500)]
    recording = Recording([Sample(0, 0.01, 200), *errors], cpu=0.9 if verdict == "void" else 0.1)
    return evaluate(rate, StepSettings(seconds=10 * times), Limits(latency_ms=50), [recording])


def search_with(
    verdict: Callable[[float, float], str], **settings: Any
) -> tuple[Search, list[float]]:
    """Search with a verdict for each rate and length of a step, and return the measured rates."""
    search = Search(lambda rate, times: result(rate, verdict(rate, times), times), **settings)
    return search, [step.rate for step in search.run()]


@pytest.mark.parametrize(
    ("most", "confirmed", "measured"),
    [
        (11, 11, [1, 2, 4, 8, 16, 12, 10, 11, 11, 12]),
        (1, 1, [1, 2, 1, 2]),
        (2, 1, [1, 2, 4, 3, 2, 1, 2]),
        (1, 0, [1, 2, 1]),
        (0, 0, [1]),
    ],
)
def test_numbers_of_open_requests_are_whole(most: int, confirmed: int, measured: list[int]) -> None:
    """The search ends between two neighbors, and a number that is not confirmed
    is lowered by one or more.
    """

    holds = _holds(most, confirmed=confirmed)
    search, rates = search_with(holds, start=1.9, is_whole=True)
    assert rates == measured
    assert (search.best.rate if search.best else 0) == confirmed


def _holds(
    most: float, miss: str = "not held", confirmed: float | None = None
) -> Callable[[float, float], str]:
    """An endpoint that holds rates up to ``most``, in long steps up to ``confirmed``."""

    def verdict(rate: float, times: float) -> str:
        highest = most
        if times > 1 and confirmed is not None:
            highest = confirmed
        return "held" if rate <= highest else miss

    return verdict


LOW = 48 / 1.1**2


@pytest.mark.parametrize(
    ("verdict", "maximum", "best", "measured"),
    [
        # Rates double and are bisected. Then comes the confirmation, and the lowest miss again.
        (_holds(50), inf, 48, [4, 8, 16, 32, 64, 48, 56, 52, 48, 52]),
        # A rate that only a short step holds is lowered, also below the rates of the search.
        (
            _holds(50, confirmed=42),
            inf,
            LOW,
            [4, 8, 16, 32, 64, 48, 56, 52, 48, 48 / 1.1, LOW, 48 / 1.1],
        ),
        # Three attempts that are all void count as not held.
        (_holds(50, "void"), inf, 48, [4, 8, 16, 32, *[64] * 3, 48, *[56] * 3, *[52] * 3, 48]),
        # The first rate is halved until one is held.
        (_holds(1), inf, 1, [4, 2, 1, 1.5, 1.25, 1.125, 1.0625, 1, 1.0625]),
        # The highest rate to try is measured exactly, and confirmed.
        (_holds(inf), 20, 20, [4, 8, 16, 20, 20]),
    ],
)
def test_rates_of_a_search(
    verdict: Callable[[float, float], str], maximum: float, best: float, measured: list[float]
) -> None:
    """The confirmed rate is the result, and was measured three times as long."""
    search, rates = search_with(verdict, maximum=maximum)
    assert rates == pytest.approx(measured)
    assert search.best is not None
    assert search.best.rate == pytest.approx(best)
    assert search.best.seconds == 30


def test_search_ends_where_nothing_is_held() -> None:
    """Nothing is confirmed, and no rate is below a tenth of a request per second."""
    search, rates = search_with(lambda *_: "not held")
    assert search.best is None
    assert min(rates) >= 0.1


def test_void_step_is_repeated() -> None:
    """A disturbed step is measured again, and counts if it is held then."""
    attempts: list[float] = []

    def verdict(rate: float, _: float) -> str:
        attempts.append(rate)
        if rate == 8 and attempts.count(8) == 1:
            return "void"
        return "held" if rate <= 10 else "not held"

    _, rates = search_with(verdict)
    assert rates[:4] == [4, 8, 8, 16]


@pytest.mark.parametrize(
    ("verdicts", "reason"),
    [
        ("4 held, 8 held, 16 not held, 8 held", ""),
        ("4 held, 8 held, 16 void, 16 not held, 8 held", ""),
        ("4 held, 8 held, 8 not held, 7 held", ""),
        ("4 held, 8 held, 8 held", NO_HIGHER_RATE),
        ("4 void, 4 held", NO_HIGHER_RATE),
        ("4 held, 8 void, 8 void, 4 held", GENERATOR_WAS_BUSY),
        ("4 held, 16 not held, 8 void, 4 held", GENERATOR_WAS_BUSY),
    ],
)
def test_rate_is_a_lower_bound_unless_a_higher_one_was_not_held(verdicts: str, reason: str) -> None:
    """A maximum and a busy generator end a test before the endpoint's limit is known."""
    held = HeldSteps.of(results(verdicts))
    assert held.lower_bound_reason == reason


def results(verdicts: str) -> list[StepResult]:
    """Steps such as "4 held, 8 not held": each has a rate and its verdict."""
    steps = []
    for step in verdicts.split(", "):
        rate, verdict = step.split(" ", 1)
        steps.append(result(float(rate), verdict))
    return steps


@pytest.mark.parametrize("disturbed", [3, 4, 8, 9])
def test_a_busy_minute_does_not_lower_the_result(disturbed: int) -> None:
    """One step that something else disturbs, early, late or in the confirmation,
    is measured again.
    """
    number = 0

    def verdict(rate: float, _: float) -> str:
        nonlocal number
        number += 1
        return "held" if rate <= 50 and number != disturbed else "not held"

    search, rates = search_with(verdict)
    assert search.best is not None
    assert 45 < search.best.rate <= 50
    assert len(rates) <= 18


def test_a_disturbed_minute_leaves_rows_up_to_the_confirmed_rate() -> None:
    """Several misses of one busy minute do not add up:
    all rows below the confirmed rate are written.
    """
    number = 0

    def verdict(rate: float, _: float) -> str:
        nonlocal number
        number += 1
        return "held" if rate <= 300 and not 5 <= number <= 11 else "not held"

    search = Search(lambda rate, times: result(rate, verdict(rate, times), times), start=32)
    steps = list(search.run())
    assert search.best is not None
    assert search.best.rate > 250
    assert HeldSteps.of(steps).steps[-1].rate >= search.best.rate


@pytest.mark.parametrize(
    ("first", "last"), [("not held", [48, 48 / 1.1, 48, 52]), ("void", [56, 52, 48, 48, 52])]
)
def test_a_disturbed_confirmation_is_repeated(first: str, last: list[float]) -> None:
    """The long step that holds at the second attempt is the confirmation;
    a late generator lowers no rate.
    """
    number = 0

    def verdict(rate: float, times: float) -> str:
        nonlocal number
        if times == 3:
            number += 1
            if number == 1:
                return first
        return "held" if rate <= 50 else "not held"

    search, rates = search_with(verdict)
    assert rates[-len(last) :] == pytest.approx(last)
    assert search.best is not None
    assert (search.best.rate, search.best.seconds) == (48, 30)


def test_a_rate_above_a_disturbed_one_counts() -> None:
    """Of repeated rounds one unlucky step is left out;
    one lucky step above a miss still does not count.
    """
    verdicts = "30 not held, 30 held, 33 held, 36 not held, 30 held, 33 held, 36 not held, 40 held"
    held = HeldSteps.of(results(verdicts))
    assert [step.rate for step in held.steps] == [30, 33]
    assert [step.rate for step in held.disturbed] == [30]
    assert held.lower_bound_reason == ""


def test_the_longest_step_of_a_rate_is_written() -> None:
    """A confirmation is worth more than the short steps before and after it."""
    steps = [result(8), result(8, times=3), result(8), result(9, "not held")]
    assert HeldSteps.of(steps).steps == [steps[1]]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"start": 0}, r"start: must be from 0\.1"),
        ({"precision": 10}, r"precision: .* write 10 percent as 0\.1"),
    ],
)
def test_invalid_settings_are_refused(settings: Any, message: str) -> None:
    """The message has the range."""
    with pytest.raises(InvalidValueError, match=message):
        Search(lambda rate, _: result(rate), **settings)
