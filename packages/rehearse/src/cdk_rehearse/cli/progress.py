"""Shows what a rehearsal does, and its calm result before steps fail."""

from __future__ import annotations

import sys
import time

from cdk_rehearse.cli.text import calm_lines
from cdk_rehearse.updates.progress import Attempted, Calm, Progress, Stepping
from cdk_rehearse.updates.report import Rehearsal
from constructs_triton_core.untrusted.terminal import Work, print_lines, print_note

_LOG_SECONDS = 10.0
"""How often a log gets a line."""


class ShownProgress:
    """Shows progress on standard error: in the line of a terminal, in a log each ten seconds.

    Args:
        work: The line of the terminal.
        prints_calm: Whether to print the result without failures as text when it is known.
    """

    def __init__(self, work: Work, *, prints_calm: bool) -> None:
        self.calm: Rehearsal | None = None
        self.is_printed = False
        self._work = work
        self._prints_calm = prints_calm
        self._failures = 0
        self._attempted = 0
        self._shown = "deploying to a simulated account"
        self._logged = time.monotonic()

    def __call__(self, each: Progress) -> None:
        """Show what a rehearsal reports."""
        if isinstance(each, Calm):
            self._show_calm(each)
        elif isinstance(each, Attempted):
            self._attempted += 1
            self._show(f"letting steps fail: {self._attempted} of about {self._failures}")
        elif isinstance(each, Stepping) and self.calm is None:
            self._show(f"{each.work} in a simulated account: {each.place}")
        self._log()

    def _show_calm(self, calm: Calm) -> None:
        """Print the rehearsal without failures before the steps fail."""
        self.calm = calm.rehearsal
        self._failures = calm.failures
        if self._prints_calm:
            with self._work.paused():
                print_lines(*calm_lines(calm.rehearsal))
            self.is_printed = True
        if calm.failures:
            self._show(f"letting steps fail: about {calm.failures}")

    def _show(self, text: str) -> None:
        self._shown = text
        self._work.describe(text)

    def _log(self) -> None:
        now = time.monotonic()
        if now - self._logged >= _LOG_SECONDS and not sys.stderr.isatty():
            self._logged = now
            print_note(f"{self._shown} ...")
