"""An event loop whose clock jumps to the next timer,
so that a test of ten minutes takes a second.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class _JumpingSelector(selectors.DefaultSelector):
    """Never waits: the clock moves on instead."""

    now = 0.0

    def select(self, timeout: float | None = None) -> Any:
        self.now += timeout or 0
        return super().select(0)


def run(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine in virtual time."""
    selector = _JumpingSelector()
    loop = asyncio.SelectorEventLoop(selector)
    loop.time = lambda: selector.now  # type: ignore[method-assign]
    try:
        return loop.run_until_complete(coroutine)
    finally:
        loop.close()
