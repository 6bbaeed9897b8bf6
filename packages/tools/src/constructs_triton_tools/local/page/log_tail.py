"""The last lines of a server's log and of the run's messages, numbered,
so that a page asks for new ones.
"""

from __future__ import annotations

import itertools
import re
from collections import deque
from collections.abc import Callable
from pathlib import Path

from constructs_triton_tools.operations.container_log import can_explain, is_informational

_MOST_LINES = 500
_MOST_BYTES = 64 * 1024
_LINE_CHARACTERS = 2000
#: What the server's HTTP front end writes of a page that reads statistics.
_OWN_REQUEST = re.compile(r"HTTP request: \d /v2/(repository/index|models/\S+/stats)")
_COLOR = re.compile(r"\x1b\[[0-9;]{0,20}m")
_TRITON_LINE = re.compile(r"[IWEF]\d{4} \d\d:")
_LOUD = re.compile(
    r"Traceback|Error|Exception|\berror\b|\bfailed\b|[Ss]egmentation|\b[Ss]ignal\b|Killed"
)

Line = tuple[int, str, bool]
"""A number that grows, the text, and whether the line may explain a failure."""


class _Lines:
    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._lines: deque[Line] = deque(maxlen=_MOST_LINES)

    def add(self, text: str, is_problem: bool) -> None:
        self._lines.append((next(self._numbers), text[:_LINE_CHARACTERS], is_problem))

    def after(self, number: int) -> list[Line]:
        """Return the lines with a higher number."""
        return [line for line in self._lines if line[0] > number]


class Messages(_Lines):
    """The messages of the run, which it prints too."""

    def reporter(self, report: Callable[[str], None]) -> Callable[[str], None]:
        """Return a function that keeps each message and passes it on."""

        def keep(text: str) -> None:
            for line in text.split("\n"):
                self.add(line, is_problem=False)
            report(text)

        return keep


class LogTail(_Lines):
    """The end of a log that grows. Of much new text only the last 64 KiB are read."""

    def __init__(self) -> None:
        super().__init__()
        self._position = 0
        self._rest = b""
        self._is_problem = False

    def read(self, path: Path) -> None:
        """Read what was added since the last time; nothing if there is no log."""
        try:
            with path.open("rb") as file:
                size = file.seek(0, 2)
                if size < self._position:  # the server has started again with an empty log
                    self._position = 0
                    self._rest = b""
                begin = max(self._position, size - _MOST_BYTES)
                if begin > self._position:
                    self._rest = b""
                file.seek(begin)
                added = self._rest + file.read(size - begin)
                self._position = size
        except OSError:
            return
        *lines, self._rest = added.split(b"\n")
        for line in lines:
            text = _COLOR.sub("", line.decode("utf-8", "replace")).rstrip()[:_LINE_CHARACTERS]
            if text and not _OWN_REQUEST.search(text):
                self._is_problem = _is_problem(text, follows_problem=self._is_problem)
                self.add(text, self._is_problem)


def _is_problem(text: str, *, follows_problem: bool) -> bool:
    """Whether a line may explain a failure; a line without a severity may
    continue the one before it.
    """
    if not can_explain(text) or is_informational(text):
        return False
    return follows_problem or _TRITON_LINE.match(text) is not None or _LOUD.search(text) is not None
