"""The interface of a display of a search."""

from __future__ import annotations

from collections.abc import Sequence

from constructs_triton_tools.measuring.load_test.open_loop import LiveFigures
from constructs_triton_tools.measuring.tuning.candidates import Candidate
from constructs_triton_tools.measuring.tuning.racing import Trial

__all__ = ["TuneListener"]


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
