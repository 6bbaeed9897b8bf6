"""Ends a command at the first SIGTERM or SIGHUP, in the way of Ctrl-C: what it has begun is deleted."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_NUMBERS = signal.SIGTERM, signal.SIGHUP


@contextmanager
def ending_with_signals() -> Iterator[None]:
    """Raise SystemExit with 128 and the number of the signal, as shells do, in place of ending at once.

    A second signal ends the process at once. What the caller of the process ignores stays ignored, such as
    SIGHUP under nohup.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in _NUMBERS}
    usual = [number for number, handler in before.items() if handler is signal.SIG_DFL]
    for number in usual:
        signal.signal(number, _end)
    try:
        yield
    finally:
        for number in usual:
            signal.signal(number, before[number])


def _end(number: int, _: FrameType | None) -> None:
    signal.signal(number, signal.SIG_DFL)
    raise SystemExit(128 + number)
