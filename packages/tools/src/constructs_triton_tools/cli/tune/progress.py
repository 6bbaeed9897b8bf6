"""What a search prints while it runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from constructs_triton_core.program.progress import clear_line, show_line
from constructs_triton_core.untrusted.terminal import print_lines, print_note
from constructs_triton_tools.measuring.tuning.listener import TuneListener

if TYPE_CHECKING:
    from constructs_triton_tools.measuring.load_test.open_loop import LiveFigures
    from constructs_triton_tools.measuring.tuning.candidates import Candidate
    from constructs_triton_tools.measuring.tuning.racing import Trial
    from constructs_triton_tools.measuring.tuning.search import Tuning

__all__ = ["TuneProgress"]


class TuneProgress(TuneListener):
    """A row for each configuration on standard output, and on a terminal a line about the running step."""

    def __init__(self, tuning: Tuning, *, quiet: bool) -> None:
        self._present = tuning.repository.present
        self._options = tuning.options
        self._quiet = quiet
        self._begin = time.monotonic()
        self._doing = "search"
        self.shows_steps = sys.stderr.isatty()

    def _print(self, *lines: str) -> None:
        clear_line()
        if not self._quiet:
            print_lines(*lines)

    def on_begin(self, known: int) -> None:
        """Print the headings, and how many results are used again."""
        if known:
            print_note(f"{known} results of an earlier run are used again")
        self._print(f"{'rate/s':>8}  {'result':23}  configuration")

    def on_trial(self, trial: Trial) -> None:
        """Print the row of a configuration."""
        reason = f" ({trial.reason})" if trial.reason else ""
        name = trial.candidate.describe(self._present)
        self._print(f"{trial.rate_text:>8}  {trial.outcome:23}  {name}{reason}")

    def on_compare(self, finalists: Sequence[Candidate], rounds: int) -> None:
        """Print that the comparison begins."""
        self._doing = "comparison"
        self._print(f"comparison of {len(finalists)} configurations in {rounds} rounds")

    def on_round(self, number: int, candidate: Candidate, rate: float) -> None:
        """Print the rate of a configuration in a round."""
        self._print(f"{rate:8.1f}  {f'round {number + 1}':23}  {candidate.describe(self._present)}")

    def show(self, rate: float, seconds: float, live: LiveFigures) -> None:
        """Update the line about the running step."""
        minutes, percentile = (time.monotonic() - self._begin) / 60, self._options.percentile
        show_line(
            f"{self._doing}, {minutes:.0f} of {self._options.budget_minutes:g} minutes: {rate:.1f}/s for "
            f"{seconds:.0f} s, p{percentile:g} {live.percentile_ms(percentile):.0f} ms"
        )
