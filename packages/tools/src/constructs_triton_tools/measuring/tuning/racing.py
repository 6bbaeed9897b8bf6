"""Asks of each candidate whether it holds a little more than the best rate so far.

One that does not is rejected after two short steps. Only one that does is measured further. A
longer step confirms its rate before it becomes the next bar: the rate of a lucky short step would
reject better candidates.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf, sqrt
from typing import TYPE_CHECKING, NamedTuple

from constructs_triton_core.errors import ConstructsTritonError
from constructs_triton_tools.measuring.tuning.candidates import Candidate

if TYPE_CHECKING:
    from constructs_triton_tools.measuring.load_test.open_loop import LiveFigures

# A candidate must hold this many times the best rate.
_GAIN = 1.08
# While a rate is held, the next one is this many times higher.
_RISE = 1.4
# The rate is bisected until the lowest that is missed is at most this many times the highest held.
_PRECISION = 1.2
# After a longer step that misses, the next one is this many times lower.
_BACK = 1.07
# After a missed rate that a second look finds held, the next one is this many times higher.
_AGAIN = 1.12
_CONFIRMATIONS = 4
# Queues do not hold 1.2 times a rate that they miss: one of the two steps was disturbed.
_CONTRADICTION = 1.2
_HALVINGS = 4
# A percentile of fewer requests is a matter of luck; a step is at most this many times longer for
# them.
_LEAST_REQUESTS = 80
_LONGER = 2


class SearchStoppedError(ConstructsTritonError):
    """The search ends before its end: the budget is spent, or the machine cannot measure."""


class CandidateRefusedError(ConstructsTritonError):
    """A candidate cannot be used: the server refuses it, or its outputs differ.

    Args:
        is_wrong: Whether its outputs differ; larger values of the same setting are not tried then.
    """

    def __init__(self, message: str, *, is_wrong: bool = False) -> None:
        super().__init__(message)
        self.is_wrong = is_wrong


class MeasuredStep(NamedTuple):
    """Whether a rate was held, the percentile of the latency in milliseconds,
    and the first error.
    """

    is_held: bool
    latency_ms: float
    error: str = ""


#: Measures a candidate at a rate for some seconds.
Measure = Callable[[Candidate, float, float], MeasuredStep]


class Outcome(StrEnum):
    """What the search found about a candidate."""

    PRESENT = "your configuration"
    BEST = "new best"
    BELOW = "below the best"
    REFUSED = "refused"
    WRONG = "other outputs"


class Trial(NamedTuple):
    """A candidate that was tried.

    Args:
        candidate: The candidate.
        outcome: What was found.
        rate: The confirmed rate; of a candidate below the best, the rate that was asked for and not
            held.
        reason: Why it was refused; empty otherwise.
        model: Model whose settings were changed; empty for the present configuration.
    """

    candidate: Candidate
    outcome: Outcome
    rate: float
    reason: str = ""
    model: str = ""

    @property
    def rate_text(self) -> str:
        """The rate as reports write it: ``< 12.3`` if it was not held,
        ``-`` if none was measured.
        """
        if not self.rate:
            return "-"
        return f"{'< ' if self.outcome is Outcome.BELOW else ''}{self.rate:.1f}"


class TuneListener:
    """Ignores everything; a display overrides what it shows."""

    #: Whether ``show`` is called while a step runs.
    shows_steps = False

    def on_begin(self, known: int) -> None:
        """The search begins, with this number of results of an earlier run."""

    def on_trial(self, trial: Trial) -> None:
        """A candidate was tried."""

    def on_compare(self, finalists: Sequence[Candidate], rounds: int) -> None:
        """The comparison begins, with this number of rounds."""

    def on_round(self, number: int, candidate: Candidate, rate: float) -> None:
        """A finalist was measured in a round, from 0."""

    def show(self, rate: float, seconds: float, live: LiveFigures) -> None:
        """A step at this rate has run for some seconds."""


@dataclass(slots=True)
class Race:
    """The state of a search: the best candidate so far, and what was found about each.

    Args:
        measure: Measures a candidate at a rate.
        present: The present configuration.
        step_seconds: Length of a step that asks a question; one that confirms a rate is twice as
            long.
        report: Called after each candidate.
        best: The best candidate so far.
        rate: Its confirmed rate.
        trials: What was found about each candidate.
        notes: Sentences about steps that contradicted each other.
    """

    measure: Measure
    present: Candidate
    step_seconds: float = 4.0
    report: Callable[[Trial], None] | None = None
    trials: dict[Candidate, Trial] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    best: Candidate = field(init=False)
    rate: float = 0.0

    def __post_init__(self) -> None:
        self.best = self.present

    def begin(self, first_rate: float) -> None:
        """Find the rate of the present configuration, from a rate that it probably holds."""
        self.best = self.present
        self.rate = first_rate / 2**_HALVINGS
        rate = first_rate
        for _ in range(_HALVINGS):
            if self._ask(self.present, rate).is_held:
                self.rate = self._climb(self.present, rate)
                self._note(Trial(self.present, Outcome.PRESENT, self.rate))
                return
            rate /= 2
        self._note(Trial(self.present, Outcome.PRESENT, 0.0, "no rate within the limit"))

    def challenge(self, candidate: Candidate, model: str = "") -> Outcome:
        """Try a candidate, unless it was tried before, and return what was found."""
        if candidate in self.trials:
            return self.trials[candidate].outcome
        try:
            trial = self._try(candidate)
        except CandidateRefusedError as error:
            outcome = Outcome.WRONG if error.is_wrong else Outcome.REFUSED
            trial = Trial(candidate, outcome, 0.0, str(error))
        self._note(trial._replace(model=model))
        return trial.outcome

    def _note(self, trial: Trial) -> None:
        self.trials[trial.candidate] = trial
        if self.report is not None:
            self.report(trial)

    def _try(self, candidate: Candidate) -> Trial:
        bar = self.rate * _GAIN
        step = self._ask(candidate, bar)
        if not step.is_held:
            return Trial(candidate, Outcome.BELOW, bar, step.error)
        rate = self._climb(candidate, bar)
        if rate < self.rate * sqrt(_GAIN):
            return Trial(candidate, Outcome.BELOW, bar, "a longer step did not confirm it")
        self.best = candidate
        self.rate = rate
        return Trial(candidate, Outcome.BEST, rate)

    def _ask(self, candidate: Candidate, rate: float) -> MeasuredStep:
        """Measure a short step, and again if it missed: a busy machine may have disturbed it."""
        step = self._short(candidate, rate)
        return step if step.is_held else self._short(candidate, rate)

    def _short(self, candidate: Candidate, rate: float) -> MeasuredStep:
        return self._measure(candidate, rate, self.step_seconds)

    def _climb(self, candidate: Candidate, held: float) -> float:
        """Go up from a rate that is held until one is not, bisect, and confirm."""
        missed = inf
        while missed / held > _PRECISION:
            rate = held * _RISE if missed == inf else sqrt(held * missed)
            if self._short(candidate, rate).is_held:
                held = rate
            else:
                missed = rate
        return self._confirm(candidate, held, missed)

    def _confirm(self, candidate: Candidate, rate: float, missed: float) -> float:
        """Measure a rate for longer, and lower or higher ones after a step that was disturbed."""
        first = rate
        for _ in range(_CONFIRMATIONS):
            if self._long(candidate, rate):
                return self._retry_missed(candidate, rate, missed) if rate == first else rate
            rate /= _BACK
        if first / rate > _CONTRADICTION and self._long(candidate, first):
            self.notes.append(f"{candidate}: {first:.1f}/s was held after lower rates were not")
            return first
        return rate

    def _retry_missed(self, candidate: Candidate, held: float, missed: float) -> float:
        """Go further up if a second short step, and a longer one,
        hold the rate that the first one missed.
        """
        while self._short(candidate, missed).is_held and self._long(candidate, missed):
            held = missed
            missed = missed * _AGAIN
        return held

    def _long(self, candidate: Candidate, rate: float) -> bool:
        return self._measure(candidate, rate, 2 * self.step_seconds).is_held

    def _measure(self, candidate: Candidate, rate: float, seconds: float) -> MeasuredStep:
        return self.measure(
            candidate, rate, max(seconds, min(_LEAST_REQUESTS / rate, _LONGER * seconds))
        )
