"""How sure a percentile of a number of requests is;
the reference values are those of scipy.stats.
"""

from __future__ import annotations

from random import Random

import pytest

from constructs_triton_tools.measuring.load_test.confidence import (
    Decision,
    allowed_over,
    decide,
    held_confidence,
    least_requests,
    probability_of_at_most,
)


@pytest.mark.parametrize(
    ("count", "requests", "share", "probability"),
    [
        (1, 40, 0.1, 0.0804736960144773),
        (0, 459, 0.01, 0.009920974),
        (3, 3, 0.5, 1),
        (-1, 3, 0.5, 0),
        (0, 3, 1, 0),
    ],
)
def test_sums_are_those_of_scipy(
    count: int, requests: int, share: float, probability: float
) -> None:
    """scipy.stats.binom.cdf returned these values; the last ones are its limits."""
    assert probability_of_at_most(count, requests, share) == pytest.approx(probability, rel=1e-7)


def test_a_percentile_needs_more_requests_the_higher_it_is() -> None:
    """459 requests without one over the limit give 99 percent for a 99th percentile,
    as in MLPerf.
    """
    assert held_confidence(0, 459, 99) >= 0.99 > held_confidence(0, 458, 99)
    assert held_confidence(0, 59, 95) >= 0.95 > held_confidence(0, 58, 95)
    assert (least_requests(90), least_requests(95), least_requests(99)) == (30, 76, 386)
    assert probability_of_at_most(allowed_over(76, 95), 76, 0.1) <= 0.05


@pytest.mark.parametrize("requests", [20, 40, 100, 101, 999])
@pytest.mark.parametrize("percentile", [50, 95, 99])
def test_the_allowed_number_is_that_of_the_percentile(requests: int, percentile: float) -> None:
    """With one more request over the limit, the percentile of the load test is over it."""
    allowed = allowed_over(requests, percentile)
    for over, is_held in ((allowed, True), (allowed + 1, False)):
        latencies = [0.0] * (requests - over) + [1.0] * over
        assert (latencies[int(percentile / 100 * requests)] == 0.0) == is_held


def test_a_step_can_end_early() -> None:
    """Clear cases are decided after few requests, and an endpoint near the limit is not."""
    assert decide(0, 100, 95) is Decision.HELD
    assert decide(20, 50, 95) is Decision.NOT_HELD
    assert decide(5, 100, 95) is Decision.UNDECIDED


@pytest.mark.parametrize(("share", "wrong"), [(0.02, Decision.NOT_HELD), (0.1, Decision.HELD)])
def test_early_ends_are_seldom_wrong(share: float, wrong: Decision) -> None:
    """An answer after each 50 of 1,000 requests: less than 3 of 100 are wrong,
    and most come early.
    """
    found = [_first_decision(share, Random(seed)) for seed in range(300)]
    assert sum(decision is wrong for decision, _ in found) < 9
    assert sum(requests for _, requests in found) / len(found) < 500


def _first_decision(share: float, random: Random) -> tuple[Decision, int]:
    over = 0
    for requests in range(50, 1050, 50):
        over += sum(random.random() < share for _ in range(50))
        decision = decide(over, requests, 95)
        if decision is not Decision.UNDECIDED:
            return decision, requests
    return Decision.UNDECIDED, 1000
