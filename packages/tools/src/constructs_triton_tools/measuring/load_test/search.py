"""Finds the highest rate that an endpoint holds: doubling, then bisection, then a longer step.

At the end, the lowest rate that was not held is measured once more. If it is held now, something
had disturbed the first measurement, and the search continues above. The endpoint may hold more than
the highest rate of a test: then this rate is a lower bound.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from math import inf

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.measuring.load_test.step import StepResult, Verdict

NO_HIGHER_RATE = "no higher load was tried"
GENERATOR_WAS_BUSY = "the generator was the bottleneck"

_VOID_ATTEMPTS = 3
_CONFIRMATIONS = 6
_LOWEST_RATE = 0.1
# A step that confirms a rate is this many times longer, because short steps are noisy.
_LONGER = 3
# After the confirmation the lowest rate that was not held is measured again, and the next if that
# is held.
_RETRIES = 4

#: Measures a rate; the second argument is how many times longer than usual.
Measure = Callable[[float, float], StepResult]


@dataclass(slots=True)
class Search:
    """A search for the highest rate that is held.

    Args:
        measure: Measures a rate in requests per second, for a multiple of the usual time.
        start: First rate.
        maximum: Highest rate to try. Default: no maximum.
        precision: The search ends when the rates that are held and not held differ by this
            fraction, 0.01 to 1.
        is_whole: Whether rates are whole numbers, such as those of requests that are kept open.
        best: The confirmed step, after ``run``; ``None`` if no rate was held.

    Raises:
        InvalidValueError: ``start``, ``maximum`` or ``precision`` is out of range.
    """

    measure: Measure
    start: float = 4
    maximum: float = float("inf")
    precision: float = 0.1
    is_whole: bool = False
    best: StepResult | None = None
    _held: list[StepResult] = field(default_factory=list)
    #: How many times longer than usual the rates were measured that were not held.
    _missed: dict[float, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.is_whole:
            self.start = int(self.start)
        if not self._lowest <= self.start <= self.maximum:
            raise InvalidValueError(
                f"start: must be from {self._lowest:g} to the maximum rate ({self.maximum:g}), "
                f"got {self.start:g}; change one of them"
            )
        if not 0.01 <= self.precision <= 1:
            raise InvalidValueError(
                f"precision: must be from 0.01 to 1, got {self.precision:g}; "
                "write 10 percent as 0.1"
            )

    @property
    def _lowest(self) -> float:
        return 1 if self.is_whole else _LOWEST_RATE

    def run(self) -> Iterator[StepResult]:
        """Measure rate after rate, and yield each result."""
        yield from self._find(0.0, self.start)
        yield from self._confirm()
        for _ in range(_RETRIES):
            best = self.best
            missed = min((rate for rate in self._missed if best and rate > best.rate), default=None)
            if missed is None:
                return
            times = self._missed[missed]
            if not (yield from self._attempt(missed, times)):
                return
            if times == _LONGER:
                self.best = self._held[-1]
            yield from self._continue_above(missed)
            if self.best is best:
                return

    def _measure(self, rate: float, times: float) -> StepResult:
        """Measure a rate and remember whether it was held."""
        result = self.measure(rate, times)
        if result.verdict is Verdict.HELD:
            self._missed.pop(rate, None)
            self._held.append(result)
        elif result.verdict is Verdict.NOT_HELD:
            self._missed[rate] = times
        return result

    def _continue_above(self, held: float) -> Iterator[StepResult]:
        """Search further up from a rate that is held now:
        something had disturbed its first measurement.
        """
        above = min((rate for rate in self._missed if rate > held), default=inf)
        yield from self._find(held, self._next(held, above), above)
        yield from self._confirm()

    def _find(self, low: float, rate: float, high: float = inf) -> Iterator[StepResult]:
        while high > low * (1 + self.precision) and rate >= self._lowest and low < rate < high:
            if (yield from self._attempt(rate, 1)):
                low = rate
            else:
                high = rate
            if low >= self.maximum:
                return
            rate = self._next(low, high)

    def _attempt(self, rate: float, times: float) -> Generator[StepResult, None, bool]:
        """Measure a rate, and again if the generator was disturbed; return whether it was held."""
        for _ in range(_VOID_ATTEMPTS):
            result = self._measure(rate, times)
            yield result
            if result.verdict is not Verdict.VOID:
                return result.verdict is Verdict.HELD
        return False

    def _next(self, low: float, high: float) -> float:
        """Return the rate between a held and a missed one, or twice the held one without a missed.

        ``high`` is infinite as long as no rate was missed.
        """
        rate = (low + high) / 2 if high < inf else min(low * 2, self.maximum)
        return float(int(rate)) if self.is_whole else rate

    def _confirm(self) -> Iterator[StepResult]:
        """Measure the highest rate for longer, and lower ones until one is held again."""
        rate = max((step.rate for step in self._held), default=0.0)
        for _ in range(_CONFIRMATIONS):
            if rate < self._lowest or (self.best and rate <= self.best.rate):
                return
            if (yield from self._attempt(rate, _LONGER)):
                self.best = self._held[-1]
                return
            rate /= 1 + self.precision
            if self.is_whole:
                rate = float(int(rate))


@dataclass(frozen=True, slots=True)
class HeldSteps:
    """The steps of a load test that were held, by rising rate.

    Args:
        steps: The longest step of each rate that was held; of equally long ones the last. Rates
            above one that was not held are left out: a short step held them by chance.
        lower_bound_reason: Why the endpoint may hold more than the last rate; empty if a higher
            rate was not held.
        disturbed: Steps that were not held, although the same and higher rates were held for longer
            in all. Something else disturbed the endpoint or the machine, so they do not
            count.
    """

    steps: list[StepResult]
    lower_bound_reason: str
    disturbed: list[StepResult]

    @classmethod
    def of(cls, steps: Iterable[StepResult]) -> HeldSteps:
        """Select them from all steps of a test, in the order in which they were measured."""
        measured = list(steps)
        held_steps = [step for step in measured if step.verdict is Verdict.HELD]
        missed = sorted(
            (step for step in measured if step.verdict is Verdict.NOT_HELD),
            key=lambda step: step.rate,
        )
        disturbed = _find_disturbed(held_steps, missed)
        lowest_missed = min((step.rate for step in missed[len(disturbed) :]), default=inf)
        held: dict[float, StepResult] = {}
        for step in held_steps:
            # Of several steps at a rate, the longest says most.
            longest = held.get(step.rate)
            is_longest = longest is None or step.seconds >= longest.seconds
            if step.rate < lowest_missed and is_longest:
                held[step.rate] = step

        highest = max(held, default=0.0)
        voids = (step.rate for step in measured if step.verdict is Verdict.VOID)
        if any(highest < rate < lowest_missed for rate in voids):
            reason = GENERATOR_WAS_BUSY
        elif lowest_missed == inf:
            reason = NO_HIGHER_RATE
        else:
            reason = ""
        return cls([held[rate] for rate in sorted(held)], reason, disturbed)


def _find_disturbed(held: Sequence[StepResult], missed: Sequence[StepResult]) -> list[StepResult]:
    """Return the first steps of ``missed``, by rising rate,
    at or above whose rates more time was held.
    """
    disturbed: list[StepResult] = []
    for rate, group in groupby(missed, key=lambda step: step.rate):
        steps = list(group)
        held_seconds = sum(step.seconds for step in held if step.rate >= rate)
        if held_seconds <= sum(step.seconds for step in steps):
            break
        disturbed += steps
    return disturbed
