"""Simulated models whose best configuration is known by construction,
and a clock that only steps advance.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random

from constructs_triton_tools.measuring.load_test.open_loop import due_times
from constructs_triton_tools.measuring.tuning.candidates import Candidate, ModelSettings
from constructs_triton_tools.measuring.tuning.racing import CandidateRefusedError, MeasuredStep

LATENCY_MS = 150.0
_LEAD = 1.0

#: Seconds that a batch of this size takes, and how many of two slots it occupies.
Cost = Callable[[ModelSettings, int], tuple[float, int]]


def fixed_per_batch(settings: ModelSettings, size: int) -> tuple[float, int]:
    """One device for all instances, with most of the time for the batch: large batches win."""
    return 0.040 + 0.0025 * size, 2


def per_item(settings: ModelSettings, size: int) -> tuple[float, int]:
    """Two slots, and time for each item: two instances win, batches do not."""
    return 0.040 * size, 1


def threaded(settings: ModelSettings, size: int) -> tuple[float, int]:
    """Two threads are faster than one, but occupy both slots: two instances of one thread win."""
    return (0.040 * size, 1) if dict(settings.parameters)["threads"] == "1" else (0.030 * size, 2)


def quick(settings: ModelSettings, size: int) -> tuple[float, int]:
    """A step that is never the bottleneck."""
    return 0.002, 0


def serve(
    arrivals: list[float],
    settings: ModelSettings,
    cost: Cost,
    slow: Callable[[], float] = lambda: 1.0,
) -> list[float]:
    """Return when each request ends: a queue, instances that take batches,
    and two slots of a device.
    """
    free = [0.0] * settings.instances
    slots = [0.0, 0.0]
    ends: list[float] = []
    while (first := len(ends)) < len(arrivals):
        start = max(heapq.heappop(free), arrivals[first])
        full = first + settings.batch - 1
        complete = arrivals[full] if full < len(arrivals) else float("inf")
        start = max(start, min(arrivals[first] + settings.delay_microseconds / 1e6, complete))
        size = sum(1 for due in arrivals[first : first + settings.batch] if due <= start)
        seconds, occupied = cost(settings, size)
        taken = sorted(slots)[:occupied]
        end = max([start, *taken]) + seconds * slow()
        slots = [*sorted(slots)[occupied:], *[end] * occupied]
        heapq.heappush(free, end)
        ends += [end] * size
    return ends


@dataclass
class SimulatedModels:
    """Models in a row, as the steps of an ensemble, on a simulated clock.

    ``disturbed`` is the share of steps in which everything takes twice as long. ``refusals`` are
    errors by candidate.
    """

    costs: Mapping[str, Cost]
    seed: int = 0
    noise: float = 0.1
    disturbed: float = 0.0
    refusals: Mapping[Candidate, CandidateRefusedError] = field(default_factory=dict)
    seconds: float = 0.0
    steps: int = 0

    def measure(self, candidate: Candidate, rate: float, seconds: float) -> MeasuredStep:
        """Measure a rate, with arrivals and times of its own."""
        if candidate in self.refusals:
            raise self.refusals[candidate]
        self.steps += 1
        rng = Random(self.seed * 1_000_003 + self.steps)
        factor = 2.0 if rng.random() < self.disturbed else 1.0
        arrivals = list(due_times(rate, _LEAD + max(seconds, 40 / rate), rng))
        ends = arrivals
        for name, cost in self.costs.items():
            ends = serve(
                ends, candidate[name], cost, lambda: factor * rng.lognormvariate(0, self.noise)
            )
        both = zip(arrivals, ends, strict=True)
        latencies = sorted(1000 * (end - due) for due, end in both if due >= _LEAD)
        latency = latencies[int(0.95 * len(latencies))] if latencies else 0.0
        # A step that misses the limit by far ends early.
        self.seconds += _LEAD + (seconds if latency < 2 * LATENCY_MS else min(seconds, 60 / rate))
        return MeasuredStep(latency <= LATENCY_MS, latency)

    def capacity(self, candidate: Candidate) -> float:
        """The true rate that is held: bisected with steps of 200 seconds."""
        quiet = SimulatedModels(self.costs, noise=self.noise)
        low, high = 2.0, 300.0
        while high / low > 1.01:
            middle = (low * high) ** 0.5
            is_held = quiet.measure(candidate, middle, 200).is_held
            low, high = (middle, high) if is_held else (low, middle)
        return low
