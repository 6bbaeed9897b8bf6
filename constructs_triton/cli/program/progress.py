"""Shows that a command works, where it takes more than a moment."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from constructs_triton_client.visible_text import visible

__all__ = ["show_work"]


@contextmanager
def show_work(description: str) -> Iterator[None]:
    """Show what is done and the elapsed time on standard error, if it is a terminal. The line disappears."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    console = Console(stderr=True)
    # What the command prints meanwhile must reach its own stream.
    with Progress(
        *columns, console=console, transient=True, redirect_stdout=False, redirect_stderr=False
    ) as work:
        work.add_task(visible(description))
        yield
