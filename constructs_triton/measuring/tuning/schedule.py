"""How a search divides its time, and what it will do, for people to read before it begins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from constructs_triton.measuring.tuning.axes import count_candidates
from constructs_triton.measuring.tuning.bench import LEAD_SECONDS
from constructs_triton.measuring.tuning.candidates import Candidate, SearchSpace
from constructs_triton.measuring.tuning.racing import RaceSettings

__all__ = ["Schedule"]

MOST_ROUNDS, FEWEST_ROUNDS = 5, 2
_FINALISTS = 3
# What a candidate costs on average besides its start: short steps, and for a winner longer ones.
_SHORT_STEPS, _LONG_STEPS = 3.0, 0.8
_STEPS_OF_CROSSING = 3.2
_LARGEST_RESERVE = 0.45


@dataclass(frozen=True, slots=True)
class Schedule:
    """The time of a search and of the comparison after it.

    Args:
        budget_seconds: Time of both together.
        settings: How long steps are.
        start_seconds: What the start of a candidate takes.
    """

    budget_seconds: float
    settings: RaceSettings
    start_seconds: float = 3.0

    def comparison_seconds(self, finalists: int, rounds: int) -> float:
        """Return the time of a comparison."""
        return finalists * rounds * _STEPS_OF_CROSSING * (self.settings.confirm_seconds + LEAD_SECONDS)

    @property
    def search_seconds(self) -> float:
        """The time of the search; the rest is for the comparison."""
        wanted = self.comparison_seconds(_FINALISTS, MOST_ROUNDS)
        return self.budget_seconds - min(wanted, _LARGEST_RESERVE * self.budget_seconds)

    def rounds(self, finalists: int, seconds_left: float) -> tuple[int, float]:
        """Return how many rounds fit into the time that is left, and the length of a step.

        The number is fixed before the first round: a comparison that ends as soon as it shows a difference
        often shows one that does not exist.
        """
        confirm = self.settings.confirm_seconds
        for rounds in range(MOST_ROUNDS, FEWEST_ROUNDS - 1, -1):
            each = seconds_left / (finalists * rounds * _STEPS_OF_CROSSING) - LEAD_SECONDS
            if each >= self.settings.step_seconds:
                return rounds, min(each, confirm)
        return FEWEST_ROUNDS, self.settings.step_seconds

    def expected_seconds(self, candidates: int) -> float:
        """Return how long a search of this number of candidates and its comparison usually take."""
        short = _SHORT_STEPS * (self.settings.step_seconds + LEAD_SECONDS)
        long = _LONG_STEPS * (self.settings.confirm_seconds + LEAD_SECONDS)
        search = candidates * (self.start_seconds + short + long)
        comparison = self.comparison_seconds(2, MOST_ROUNDS)
        return min(search, self.search_seconds) + min(comparison, self.budget_seconds - self.search_seconds)

    @staticmethod
    def count(present: Candidate, spaces: Mapping[str, SearchSpace]) -> int:
        """Return how many candidates are tried at most, the present configuration included."""
        return 1 + sum(count_candidates(present[name], space) - 1 for name, space in spaces.items())
