"""How sure a percentile is, from the number of requests over the limit.

Each request is over the limit or not, so their number has a binomial distribution. These are exact
sums, not the approximation by a normal distribution, which is wrong for the few requests over a
99th percentile.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cache
from math import exp, lgamma, log, log1p

_MOST_REQUESTS = 100_000


class Decision(StrEnum):
    """Whether the requests so far show that the percentile is within the limit."""

    HELD = "held"
    NOT_HELD = "not held"
    UNDECIDED = "undecided"


def probability_of_at_most(count: int, requests: int, share: float) -> float:
    """Return the probability that at most ``count`` of the requests are over,
    if each is with ``share``.
    """
    if count < 0:
        return 0.0
    if count >= requests or share <= 0:
        return 1.0
    if share >= 1:
        return 0.0
    terms = (_log_probability(number, requests, share) for number in range(count + 1))
    return min(1.0, sum(map(exp, terms)))


def _log_probability(count: int, requests: int, share: float) -> float:
    ways = lgamma(requests + 1) - lgamma(count + 1) - lgamma(requests - count + 1)
    return ways + count * log(share) + (requests - count) * log1p(-share)


def allowed_over(requests: int, percentile: float) -> int:
    """Return how many requests may be over the limit so that the percentile
    of these is within it.
    """
    return max(0, requests - 1 - int(percentile / 100 * requests))


def held_confidence(over: int, requests: int, percentile: float) -> float:
    """Return how sure it is that the percentile of all requests is within the limit, 0 to 1.

    It is 1 minus the probability of so few requests over the limit if the share of all requests
    were just the one that is not allowed any more. 59 requests without one over the limit give 0.95
    for a 95th percentile.

    ``over`` are the requests over the limit, with failed ones.
    """
    return 1 - probability_of_at_most(over, requests, 1 - percentile / 100)


def missed_confidence(over: int, requests: int, percentile: float) -> float:
    """Return how sure it is that the percentile of all requests is over the limit, 0 to 1.

    ``over`` are the requests over the limit, with failed ones.
    """
    return probability_of_at_most(over - 1, requests, 1 - percentile / 100)


def decide(over: int, requests: int, percentile: float, *, error: float = 0.01) -> Decision:
    """Decide from some of a step's requests whether the percentile is within the limit.

    For tests that end early: ask after each 50 requests. Each question can be wrong, so the default
    is stricter than the usual 0.05.

    ``over`` are the requests over the limit, with failed ones, and ``error`` is the highest
    probability of a wrong decision.
    """
    if held_confidence(over, requests, percentile) >= 1 - error:
        return Decision.HELD
    if missed_confidence(over, requests, percentile) >= 1 - error:
        return Decision.NOT_HELD
    return Decision.UNDECIDED


@cache
def least_requests(percentile: float, *, error: float = 0.05) -> int:
    """Return the smallest number of requests that a step needs.

    With these, a rate at which twice as many requests as allowed are over the limit counts as held
    with a probability of at most ``error``. The number is 76 for the 95th percentile and 386 for
    the 99th.
    """
    share = min(0.99, 2 * (1 - percentile / 100))
    requests = range(1, _MOST_REQUESTS)
    return next(
        count
        for count in requests
        if probability_of_at_most(allowed_over(count, percentile), count, share) <= error
    )
