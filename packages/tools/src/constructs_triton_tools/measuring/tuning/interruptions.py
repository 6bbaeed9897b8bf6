"""Ctrl-C and SIGTERM during a search."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def noted_interruptions() -> Iterator[list[int]]:
    """Raise KeyboardInterrupt for Ctrl-C and SIGTERM inside the block, and add each to the list.

    The list is there because Python loses an exception that is raised within a finalizer. A program
    that handles Ctrl-C in its own way, and a thread, get an empty list.
    """
    found: list[int] = []
    is_usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not is_usual or threading.current_thread() is not threading.main_thread():
        yield found
        return

    def handle(number: int, frame: FrameType | None) -> None:
        found.append(number)
        signal.default_int_handler(number, frame)

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield found
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
