"""Shows that a command works, where it takes more than a moment."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from shutil import get_terminal_size

from constructs_triton_core.visible_text import visible

__all__ = ["clear_line", "show_line", "show_work"]

_CLEAR = "\r\x1b[2K"


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


def show_line(line: str) -> None:
    """Show a line on the terminal in the place of the one before; drawing it takes no time."""
    # A line that wraps could not be cleared.
    sys.stderr.write(f"{_CLEAR}{line[: get_terminal_size().columns - 1]}")
    sys.stderr.flush()


def clear_line() -> None:
    """Clear the line of ``show_line``, if standard error is a terminal."""
    if sys.stderr.isatty():
        sys.stderr.write(_CLEAR)
