"""Waiting for threads and containers."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from typing import Any

from constructs_triton_tools.local.running_container import finish


def test_error_after_a_cancellation_is_not_printed() -> None:
    """If two servers fail to start, the first cancels the second,
    whose error asyncio would print.
    """
    reported: list[dict[str, Any]] = []

    async def fail(is_waiting: asyncio.Event) -> None:
        is_waiting.set()
        await asyncio.sleep(0.01)
        raise ValueError("the second error")

    async def run() -> None:
        asyncio.get_running_loop().set_exception_handler(
            lambda _loop, context: reported.append(context)
        )
        is_waiting = asyncio.Event()
        waiting = asyncio.create_task(finish(asyncio.create_task(fail(is_waiting))))
        await is_waiting.wait()
        waiting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await waiting
        del waiting
        gc.collect()

    asyncio.run(run())
    assert not reported
