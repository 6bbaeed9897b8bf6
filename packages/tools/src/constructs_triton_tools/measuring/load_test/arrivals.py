"""When requests are due."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, takewhile
from random import Random

__all__ = ["due_times"]


def due_times(rate: float, seconds: float, rng: Random, *, constant: bool = False) -> Iterator[float]:
    """Yield the times of requests in seconds from the start, in order.

    Gaps are random with the mean ``1 / rate``, as those of independent callers (a Poisson process), or all of
    the same length.
    """
    if constant:
        yield from takewhile(lambda time: time < seconds, (number / rate for number in count(1)))
        return
    time = 0.0
    while (time := time + rng.expovariate(rate)) < seconds:
        yield time
