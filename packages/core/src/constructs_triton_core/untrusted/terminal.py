"""Prints lines that may contain text of files, names and servers.

All output of the command line goes through this module. Each string that is passed is one line. A
line break or an escape sequence inside it is shown and not sent, so a file name can neither move
the cursor nor forge a line of the output or a command for a CI service.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, Literal, TextIO

from constructs_triton_core.visible_text import visible

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = [
    "WIDE",
    "Line",
    "Work",
    "clear_line",
    "print_error",
    "print_json",
    "print_lines",
    "print_note",
    "print_table",
    "show_line",
    "show_work",
]

Line = str | Sequence[str | tuple[str, str]]
"""A line as one string, or as pieces. A piece with a style is a tuple of the text and the
parameters of ECMA-48's "select graphic rendition": ``"1"`` for bold, ``"2"`` for dim, ``"1;31"``
for bold red."""

#: Threads print at the same time, such as those that prepare the servers of a local run.
_PRINTING = threading.Lock()

# A pipe has no width, and a name that is wrapped could not be copied.
WIDE = 200
"""Columns of a table where the output is not a terminal."""
_MARGIN = 3  # the characters between two columns, at most


def print_lines(*lines: Line, end: str = "\n") -> None:
    """Print each line on standard output, with ``end`` after it."""
    _print(sys.stdout, lines, end)


def print_note(*lines: Line) -> None:
    """Print each line on standard error, where it does not mix with a result
    that another program reads.
    """
    _print(sys.stderr, lines)


def print_error(message: object) -> None:
    """Print ``error: message`` on standard error. Further lines of the message are indented."""
    first, *others = str(message).split("\n")
    print_note(f"error: {first}", *(f"  {line}" for line in others))


def print_json(value: Any, *, indent: int | None = 2) -> None:
    """Print a value as JSON, in ASCII, on standard output."""
    import json

    sys.stdout.write(json.dumps(value, indent=indent) + "\n")
    sys.stdout.flush()


def print_table(
    columns: Iterable[str | tuple[str, str]],
    rows: Iterable[Iterable[object]],
    *,
    title: str = "",
    highlighted: int | None = None,
    box: str = "",
    is_narrow: bool = False,
    width: int | None = None,
) -> None:
    """Print a table on standard output; long cells are wrapped.

    Args:
        columns: Headings of columns. A tuple also has the justification, ``"left"`` (default) or
            ``"right"``.
        rows: Cells of each row.
        title: Title above the table.
        highlighted: Index of a row that is shown in bold green.
        box: Name of the lines around the cells in ``rich.box``. Default: no lines.
        is_narrow: Leave less space between columns.
        width: Columns of the terminal. Default: the terminal's, or 200 in a pipe.
    """
    # rich takes 50 ms to import, which --help and --json need not pay.
    from rich import box as boxes
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    if width is None and not sys.stdout.isatty():
        width = WIDE
    console = Console(width=width, highlight=False, markup=False)
    headings = [(column, "left") if isinstance(column, str) else column for column in columns]
    shown = [[visible(str(cell)) for cell in cells] for cells in rows]
    table = Table(
        title=visible(title) or None,
        box=getattr(boxes, box) if box else None,
        pad_edge=bool(title),
        collapse_padding=is_narrow,
        header_style="bold",
    )
    unbroken = _unbroken([heading for heading, _ in headings], shown, console.width)
    for (heading, justify), no_wrap in zip(headings, unbroken, strict=True):
        side: Literal["left", "right"] = "right" if justify == "right" else "left"
        table.add_column(heading, justify=side, overflow="fold", no_wrap=no_wrap)
    for index, cells in enumerate(shown):
        table.add_row(*map(Text, cells), style="bold green" if index == highlighted else None)
    console.print(table)


def _unbroken(headings: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[bool]:
    """Return which columns are not wrapped: those of names and numbers, if the words of the others
    fit.

    rich narrows the widest columns first, and a name that is broken cannot be copied.
    """
    needed_width = 0
    have_words = []
    for heading, *cells in zip(headings, *rows, strict=True):
        # A column of names has no cell with several words; its heading may have them.
        is_of_words = all(" " not in cell for cell in cells)
        have_words.append(is_of_words)

        # What may not be broken: whole cells of names, and single words of text.
        pieces = [heading, *cells]
        if not is_of_words:
            pieces = " ".join(pieces).split(" ")
        needed_width += _MARGIN + max(map(len, pieces))

    has_room = needed_width <= width
    return [is_of_words and has_room for is_of_words in have_words]


def _print(stream: TextIO, lines: Iterable[Line], end: str = "\n") -> None:
    """Write lines to a stream, in colours if it is a terminal that shows them."""
    has_colours = (
        stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    )
    text = "".join(f"{_line(line, has_colours)}{end}" for line in lines)
    # A terminal or a log that is not UTF-8 gets escapes in place of an exception.
    encoding = stream.encoding or "utf-8"
    with _PRINTING:
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()


def _line(line: Line, has_colours: bool) -> str:
    """Return a line without control characters of its own, with the colours of its pieces."""
    if isinstance(line, str):
        return visible(line)
    pieces = [(piece, "") if isinstance(piece, str) else piece for piece in line]
    plain = visible("".join(text for text, _ in pieces))
    if not has_colours:
        return plain

    # The command of a CI service may begin in one piece and end in the next.
    shown = [(visible(text), style) for text, style in pieces]
    if "".join(text for text, _ in shown) != plain:
        return plain

    coloured = [f"\x1b[{style}m{text}\x1b[0m" if style else text for text, style in shown]
    return "".join(coloured)


_CLEAR = "\r\x1b[2K"


class Work:
    """The line of :func:`show_work`; without a terminal it shows nothing."""

    def __init__(self, progress: Progress | None = None) -> None:
        self._progress = progress

    def describe(self, description: str) -> None:
        """Show another description.

        Args:
            description: What is done now.
        """
        if self._progress is not None:
            self._progress.update(self._progress.task_ids[0], description=visible(description))

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Remove the line while the block prints."""
        if self._progress is None:
            yield
            return
        self._progress.stop()
        try:
            yield
        finally:
            self._progress.start()


@contextmanager
def show_work(description: str) -> Iterator[Work]:
    """Show what is done and the elapsed time on standard error, if it is a terminal.

    The line disappears.
    """
    if not sys.stderr.isatty():
        yield Work()
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
        yield Work(work)


def show_line(line: str) -> None:
    """Show a line on the terminal in the place of the one before; drawing it takes no time."""
    # A line that wraps could not be cleared.
    sys.stderr.write(f"{_CLEAR}{visible(line)[: get_terminal_size().columns - 1]}")
    sys.stderr.flush()


def clear_line() -> None:
    """Clear the line of ``show_line``, if standard error is a terminal."""
    if sys.stderr.isatty():
        sys.stderr.write(_CLEAR)
