"""What a load test prints while it runs."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from constructs_triton.untrusted.terminal import print_lines

if TYPE_CHECKING:
    from constructs_triton.measuring.load_test.open_loop import LiveFigures
    from constructs_triton.measuring.load_test.step import Limits, StepResult

__all__ = ["Progress"]

_CLEAR = "\r\x1b[2K"
_SHOWN_STATUSES = 3


class Progress:
    """A row for each step on standard output, and on a terminal a line that is updated during a step.

    The line is written without rich: drawing a table would make the generator late.
    """

    def __init__(self, limits: Limits, *, quiet: bool) -> None:
        self._limits = limits
        self._quiet = quiet

    def print_headings(self) -> None:
        """Print the headings of the rows."""
        if not self._quiet:
            name = f"p{self._limits.percentile:g}"
            print_lines(f"{'rate/s':>9} {'good/s':>9} {'p50 ms':>8} {name + ' ms':>8} {'p99 ms':>8}  result")

    def print_step(self, step: StepResult) -> None:
        """Print the row of a step."""
        self._clear()
        if self._quiet:
            return
        p99 = "-" if step.p99_ms is None else f"{step.p99_ms:.1f}"
        print_lines(
            f"{step.rate:9.1f} {step.good_per_second:9.1f} {step.p50_ms:8.1f} {step.latency_ms:8.1f} "
            f"{p99:>8}  {_result(step)}"
        )

    def show(self, rate: float, seconds: float, live: LiveFigures) -> None:
        """Update the line about the running step."""
        sys.stderr.write(
            f"{_CLEAR}{rate:9.1f}/s for {seconds:.0f} s: {live.sent} answers, {live.in_flight} in flight, "
            f"{live.errors} errors, latest p50 {live.percentile_ms(50):.1f} ms, "
            f"p{self._limits.percentile:g} {live.percentile_ms(self._limits.percentile):.1f} ms"
        )
        sys.stderr.flush()

    def _clear(self) -> None:
        if sys.stderr.isatty():
            sys.stderr.write(_CLEAR)


def _result(step: StepResult) -> str:
    errors = f" [{_statuses(step.statuses)}: {step.first_error[:120]}]" if step.statuses else ""
    return f"{step.verdict}{f': {step.reason}' if step.reason else ''}{errors}"


def _statuses(statuses: Mapping[int, int]) -> str:
    most = sorted(statuses.items(), key=lambda item: -item[1])[:_SHOWN_STATUSES]
    return ", ".join(f"{count} x {status or 'no response'}" for status, count in most)
