"""What a search prints while it runs."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from constructs_triton.measuring.tuning.listener import TuneListener
from constructs_triton.measuring.tuning.racing import Outcome, Trial
from constructs_triton.untrusted.terminal import print_lines, print_note

if TYPE_CHECKING:
    from rich.progress import Progress

    from constructs_triton.measuring.load_test.open_loop import LiveFigures
    from constructs_triton.measuring.tuning.candidates import Candidate
    from constructs_triton.measuring.tuning.local_search import Tuning

__all__ = ["TuneProgress"]


class TuneProgress(TuneListener):
    """A row for each configuration on standard output, and on a terminal a bar of the time.

    The bar is drawn twice a second by the load generator, because a thread of its own would make it late.
    """

    def __init__(self, tuning: Tuning, *, quiet: bool) -> None:
        self._present = tuning.repository.present
        self._budget = tuning.schedule.budget_seconds
        self._quiet = quiet
        self._bar: Progress | None = None
        self._begin = time.monotonic()
        self._doing = "search"
        self.shows_steps = sys.stderr.isatty()

    def __enter__(self) -> Self:
        if self.shows_steps:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True, auto_refresh=False)
            self._task = self._bar.add_task(self._doing, total=self._budget)
            self._bar.start()
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _print(self, *lines: str) -> None:
        if not self._quiet:
            print_lines(*lines)

    def on_begin(self, known: int) -> None:
        """Print the headings, and how many results are used again."""
        if known:
            print_note(f"{known} results of an earlier run are used again")
        self._print(f"{'rate/s':>8}  {'result':23}  configuration")

    def on_wait(self, what: str) -> None:
        """Print what the search waits for."""
        print_note(what)

    def on_trial(self, trial: Trial) -> None:
        """Print the row of a configuration."""
        rate = f"{trial.rate:.1f}" if trial.rate else "-"
        rate = f"< {rate}" if trial.outcome is Outcome.BELOW else rate
        reason = f" ({trial.reason})" if trial.reason else ""
        name = trial.candidate.describe(self._present)
        self._print(f"{rate:>8}  {trial.outcome:23}  {name}{reason}")

    def on_compare(self, finalists: Sequence[Candidate], rounds: int) -> None:
        """Print that the comparison begins."""
        self._doing = "comparison"
        self._print(f"comparison of {len(finalists)} configurations in {rounds} rounds")

    def on_round(self, number: int, candidate: Candidate, rate: float) -> None:
        """Print the rate of a configuration in a round."""
        self._print(f"{rate:8.1f}  {f'round {number + 1}':23}  {candidate.describe(self._present)}")

    def show(self, rate: float, seconds: float, live: LiveFigures) -> None:
        """Update the bar."""
        if self._bar is not None:
            text = f"{self._doing}: {rate:.1f}/s for {seconds:.0f} s, p95 {live.percentile_ms(95):.0f} ms"
            elapsed = time.monotonic() - self._begin
            self._bar.update(self._task, description=text, completed=elapsed)
            self._bar.refresh()
