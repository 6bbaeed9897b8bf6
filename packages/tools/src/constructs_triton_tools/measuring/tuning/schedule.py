"""The time of a search, and of the comparison after it."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.measuring.tuning.bench import LEAD_SECONDS

MOST_ROUNDS = 5
FEWEST_ROUNDS = 2
_FINALISTS = 3
# What a candidate costs on average: its start, short steps, and for a winner longer ones.
_START_SECONDS = 3.0
_SHORT_STEPS = 3.0
_LONG_STEPS = 0.8
_STEPS_OF_CROSSING = 3.2
#: The comparison gets at most this share of the budget.
_LARGEST_RESERVE = 0.45
# The present configuration of a model whose batches raise the rate of one caller twenty times.
_SHORT_STEPS_OF_PRESENT = 14


@dataclass(frozen=True, slots=True)
class Schedule:
    """The time of a search and of the comparison after it.

    Args:
        budget_seconds: The time of both together.
        step_seconds: Length of a short step.
    """

    budget_seconds: float
    step_seconds: float

    @property
    def confirm_seconds(self) -> float:
        """Length of a step that confirms a rate."""
        return 2 * self.step_seconds

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

    @property
    def fitting_candidates(self) -> int:
        """How many candidates a search usually tries within the budget."""
        return max(1, int(self.search_seconds / self._candidate_seconds))

    def check_budget(self) -> None:
        """Refuse a budget that ends before the present configuration is measured.

        Raises:
            InvalidValueError: the budget is smaller than ``least_minutes``.
        """
        least = self.least_minutes
        budget = self.budget_seconds / 60
        if budget >= least:
            return
        raise InvalidValueError(
            f"budget_minutes: must be at least {least:g} with steps of {self.step_seconds:g} "
            f"seconds, because the present configuration is measured first, got {budget:g}; raise "
            f"it to {ceil(least)}, or make the steps shorter with step_seconds (--step-seconds)"
        )

    def rounds(self, finalists: int, seconds_left: float) -> tuple[int, float]:
        """Return how many rounds fit into the time that is left, and the length of a step.

        The number is fixed before the first round: a comparison that ends as soon as it shows a
        difference often shows one that does not exist.
        """
        for rounds in range(MOST_ROUNDS, FEWEST_ROUNDS - 1, -1):
            steps = finalists * rounds * _STEPS_OF_CROSSING
            seconds = seconds_left / steps - LEAD_SECONDS
            if seconds >= self.step_seconds:
                return rounds, min(seconds, self.confirm_seconds)
        return FEWEST_ROUNDS, self.step_seconds

    def expected_seconds(self, candidates: int) -> float:
        """Return how long a search of this number of candidates and its comparison usually take."""
        search = min(candidates * self._candidate_seconds, self.search_seconds)
        comparison = min(self._comparison_seconds(2), self.budget_seconds - self.search_seconds)
        return search + comparison

    @property
    def _candidate_seconds(self) -> float:
        short = _SHORT_STEPS * (self.step_seconds + LEAD_SECONDS)
        long = _LONG_STEPS * (self.confirm_seconds + LEAD_SECONDS)
        return _START_SECONDS + short + long

    def _comparison_seconds(self, finalists: int) -> float:
        return finalists * MOST_ROUNDS * _STEPS_OF_CROSSING * (self.confirm_seconds + LEAD_SECONDS)
