"""How a search divides its time between the search and the comparison at the end."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from constructs_triton_tools.measuring.tuning.bench import LEAD_SECONDS

__all__ = ["Schedule"]

MOST_ROUNDS, FEWEST_ROUNDS = 5, 2
_FINALISTS = 3
# What a candidate costs on average: its start, short steps, and for a winner longer ones.
_START_SECONDS = 3.0
_SHORT_STEPS, _LONG_STEPS = 3.0, 0.8
_STEPS_OF_CROSSING = 3.2
_LARGEST_RESERVE = 0.45
# The present configuration of a model whose batches raise the rate of one caller twenty times.
_SHORT_STEPS_OF_PRESENT = 14


@dataclass(frozen=True, slots=True)
class Schedule:
    """The time of a search and of the comparison after it.

    ``budget_seconds`` is the time of both together, and ``step_seconds`` the length of a short step.
    """

    budget_seconds: float
    step_seconds: float

    @property
    def confirm_seconds(self) -> float:
        """Length of a step that confirms a rate."""
        return 2 * self.step_seconds

    def _comparison_seconds(self, finalists: int) -> float:
        return finalists * MOST_ROUNDS * _STEPS_OF_CROSSING * (self.confirm_seconds + LEAD_SECONDS)

    @property
    def least_minutes(self) -> float:
        """The smallest budget in which the search usually finds the rate of the present configuration."""
        short = _SHORT_STEPS_OF_PRESENT * (self.step_seconds + LEAD_SECONDS)
        seconds = (short + self.confirm_seconds + LEAD_SECONDS) / (1 - _LARGEST_RESERVE)
        return ceil(seconds / 6) / 10

    @property
    def search_seconds(self) -> float:
        """The time of the search; the rest is for the comparison."""
        wanted = self._comparison_seconds(_FINALISTS)
        return self.budget_seconds - min(wanted, _LARGEST_RESERVE * self.budget_seconds)

    def rounds(self, finalists: int, seconds_left: float) -> tuple[int, float]:
        """Return how many rounds fit into the time that is left, and the length of a step.

        The number is fixed before the first round: a comparison that ends as soon as it shows a difference
        often shows one that does not exist.
        """
        for rounds in range(MOST_ROUNDS, FEWEST_ROUNDS - 1, -1):
            each = seconds_left / (finalists * rounds * _STEPS_OF_CROSSING) - LEAD_SECONDS
            if each >= self.step_seconds:
                return rounds, min(each, self.confirm_seconds)
        return FEWEST_ROUNDS, self.step_seconds

    def expected_seconds(self, candidates: int) -> float:
        """Return how long a search of this number of candidates and its comparison usually take."""
        short = _SHORT_STEPS * (self.step_seconds + LEAD_SECONDS)
        long = _LONG_STEPS * (self.confirm_seconds + LEAD_SECONDS)
        search = candidates * (_START_SECONDS + short + long)
        comparison = self._comparison_seconds(2)
        return min(search, self.search_seconds) + min(comparison, self.budget_seconds - self.search_seconds)
