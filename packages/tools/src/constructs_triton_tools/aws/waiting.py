"""Waits for what AWS does."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from itertools import count
from typing import TypeVar

State = TypeVar("State")


def wait_for(
    read: Callable[[], State],
    is_final: Callable[[State], bool],
    *,
    pause_seconds: float,
    timeout: timedelta | None = None,
    show: Callable[[State], object] = lambda _state: None,
) -> State:
    """Read a state until it is final, or the timeout is over, and return the last one.

    Args:
        read: Returns the state.
        is_final: Whether to wait no longer.
        pause_seconds: Time between two readings.
        timeout: Longest time to wait. Default: none.
        show: Called with each state, to print progress.
    """
    pauses = None if timeout is None else max(1, int(timeout.total_seconds() / pause_seconds)) - 1
    for number in count():
        state = read()
        show(state)
        if is_final(state) or number == pauses:
            break
        time.sleep(pause_seconds)
    return state
