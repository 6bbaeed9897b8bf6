"""Stops what takes far too long, for tests of hostile input."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def cpu_limit(seconds: float = 10.0) -> Iterator[None]:
    """Raise ``TimeoutError`` in a block that takes more processor time.

    The default is many times what a block needs on a slow machine. It ends a test that would
    otherwise take minutes, and measures nothing.
    """

    def stop(*_: object) -> None:
        raise TimeoutError(f"takes more than {seconds:g} s of processor time")

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
