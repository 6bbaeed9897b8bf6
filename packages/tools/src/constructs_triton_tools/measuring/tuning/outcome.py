"""What a search has found, and the sentences that say it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from constructs_triton_tools.measuring.load_test.step import Limits, Verdict
from constructs_triton_tools.measuring.tuning.bench import BenchStep
from constructs_triton_tools.measuring.tuning.candidates import Candidate
from constructs_triton_tools.measuring.tuning.comparison import (
    Comparison,
    ComparisonVerdict,
    compare_rounds,
)
from constructs_triton_tools.measuring.tuning.racing import Outcome, Trial
from constructs_triton_tools.measuring.tuning.rounds import Round

# The simplest candidate within this share of the best wins.
_NEARLY_BEST = 0.97
_CHANGED = 1.18
_FEWEST_ROUNDS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """What a search is measured with, in words.

    Args:
        machine: The machine.
        server: The Triton server.
        data: The requests.
        shares_cpus: Whether the model runs on the CPUs of the load generator.
    """

    machine: str
    server: str
    data: str
    shares_cpus: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneResult:
    """The result of a search.

    Args:
        model: Name of the model that was measured.
        limits: The limit of the latency.
        present: The present configuration.
        trials: What the search found about each candidate.
        best: The configuration to use; the present one if nothing is distinguishable from it.
        facts: What was measured with.
        rounds: Rates of the comparison at the end, by round and candidate.
        comparisons: Comparison of each finalist with the present configuration.
        steps: Every step that was measured.
        notes: Sentences about what limits the result.
        stand_in: Sentence about the stand-in that was measured in place of a backend; empty if
            there is none.
        is_interrupted: Whether the search was stopped with Ctrl-C.
        folder: Folder of the results.
    """

    model: str
    limits: Limits
    present: Candidate
    trials: Mapping[Candidate, Trial]
    best: Candidate
    facts: Facts
    rounds: Sequence[Round] = ()
    comparisons: Mapping[Candidate, Comparison] = field(default_factory=dict)
    steps: Sequence[BenchStep] = ()
    notes: Sequence[str] = ()
    stand_in: str = ""
    is_interrupted: bool = False
    folder: Path = Path("tuned")

    @property
    def comparison(self) -> Comparison | None:
        """The comparison of the best configuration with the present one;
        ``None`` if there was none.
        """
        return self.comparisons.get(self.best)

    @property
    def is_measured(self) -> bool:
        """Whether the rate of the present configuration was measured."""
        return self.present in self.trials

    def rate(self, candidate: Candidate) -> float:
        """Return the requests per second that a candidate holds: the mean of the rounds, or of the
        search.

        Args:
            candidate: A candidate that was tried.
        """
        if self.comparisons and candidate in self.rounds[0]:
            return geometric_mean([found[candidate] for found in self.rounds])
        return self.trials[candidate].rate if candidate in self.trials else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the result as values that ``json.dumps`` accepts."""
        return {
            "sentence": str(self),
            "model": self.model,
            "latency_ms": self.limits.latency_ms,
            "percentile": self.limits.percentile,
            "best": {name: asdict(settings) for name, settings in self.best.models},
            "best_is_present": self.best == self.present,
            "requests_per_second": self.rate(self.best),
            "present_requests_per_second": self.rate(self.present),
            "comparison": asdict(self.comparison) if self.comparison else None,
            "tried": [
                {
                    "configuration": str(trial.candidate),
                    "outcome": str(trial.outcome),
                    "requests_per_second": trial.rate,
                    "reason": trial.reason,
                }
                for trial in self.trials.values()
            ],
            "notes": list(self.notes),
            "is_interrupted": self.is_interrupted,
            "folder": str(self.folder),
        }

    def __str__(self) -> str:
        sentence = self._sentence()
        return f"{self.stand_in} {sentence}" if self.stand_in else sentence

    def _sentence(self) -> str:
        limit = f"{self.limits.latency_ms:g} ms (p{self.limits.percentile:g})"
        rate = f"{_number(self.rate(self.best))} requests per second within {limit}"
        if self.best == self.present:
            return self._keep(rate, limit)
        change = self.best.describe(self.present)
        if self.comparison is None:
            before = self.rate(self.present)
            against = f"{_number(before)} at present" if before else "none at present"
            return (
                f"Not confirmed: with {change}, "
                f"{self.model} held {rate} in the search, against {against}."
            )
        return (
            f"With {change}, {self.model} holds {rate}: {_number(self.comparison.ratio)} times "
            f"your configuration {_interval(self.comparison)}."
        )

    def _keep(self, rate: str, limit: str) -> str:
        if not self.is_measured:
            held = [step.result.rate for step in self.steps if step.result.verdict is Verdict.HELD]
            so_far = "it held no rate"
            if held:
                so_far = f"it held {_number(max(held))} requests per second"
            return (
                f"{self.model}: the search ended before the rate of your configuration was known; "
                f"so far {so_far}. Run the command again with a "
                "larger --budget-minutes: it goes on from here."
            )
        if not self.rate(self.present):
            return f"No configuration that was tried holds any rate within {limit}."
        if self.is_interrupted:
            return f"Stopped: so far nothing holds more than your configuration, {rate}."
        if len(self.trials) == 1:
            return (
                f"Your configuration holds {rate}. No other one was tried; "
                "raise the budget of time."
            )
        others = [
            comparison
            for comparison in self.comparisons.values()
            if comparison.verdict != ComparisonVerdict.SLOWER
        ]
        if not others:
            return (
                f"Keep your configuration: it holds {rate}, and nothing that was tried holds more."
            )
        best = max(others, key=lambda comparison: comparison.ratio)
        return (
            f"Keep your configuration: it holds {rate}. The best other one is not distinguishable "
            f"from it: {_number(best.ratio)} times {_interval(best)}."
        )


def _number(value: float) -> str:
    """Three digits at most: 0.95, 1.25, 11.2, 130."""
    if value >= 100:
        return f"{value:.0f}"
    if value >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}"


def _interval(comparison: Comparison) -> str:
    return f"(95% confidence: {_number(comparison.low)} to {_number(comparison.high)})"


def compare_finalists(present: Candidate, rounds: Sequence[Round]) -> dict[Candidate, Comparison]:
    """Compare each finalist with the present configuration; nothing with fewer than two rounds."""
    if len(rounds) < _FEWEST_ROUNDS:
        return {}
    before = [rates[present] for rates in rounds]
    comparisons = {}
    for candidate in rounds[0]:
        if candidate != present:
            after = [rates[candidate] for rates in rounds]
            comparisons[candidate] = compare_rounds(before, after)
    return comparisons


def choose(
    present: Candidate, best: Candidate, comparisons: Mapping[Candidate, Comparison]
) -> Candidate:
    """Return the simplest of the best finalists; the present one if none is certainly faster.

    Without a comparison it is ``best``, the best of the search.
    """
    if not comparisons:
        return best
    top = max(comparison.ratio for comparison in comparisons.values())
    good = [
        candidate
        for candidate, comparison in comparisons.items()
        if comparison.verdict is ComparisonVerdict.FASTER and comparison.ratio >= _NEARLY_BEST * top
    ]
    return min(good, key=lambda candidate: candidate.complexity, default=present)


def find_notes(
    present: Candidate, trials: Mapping[Candidate, Trial], rounds: Sequence[Round]
) -> list[str]:
    """Return sentences about faults of models, and about a machine that changed."""
    wrong = [trial for trial in trials.values() if trial.outcome is Outcome.WRONG]
    notes = [
        (
            f"{trial.model}: its outputs change with {trial.candidate.describe(present)} "
            f"({trial.reason}). The model must compute each item of a batch by itself; fix its "
            "code before you turn on batching."
        )
        for trial in wrong
    ]
    searched = trials[present].rate if present in trials else 0.0
    if rounds and searched:
        compared = geometric_mean([found[present] for found in rounds])
        if not 1 / _CHANGED < compared / searched < _CHANGED:
            notes.append(
                f"The present configuration held {_number(searched)}/s in the search and "
                f"{_number(compared)}/s in the comparison: the machine changed in between, so a "
                "candidate may have been rejected wrongly. Run tune again on an idle machine."
            )
    return notes
