"""Waits until a container answers ``/ping``, and starts it again after it has ended."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import aiohttp

from constructs_triton_core.errors import LocalEndpointError

_PING_INTERVAL_SECONDS, _PING_TIMEOUT = 0.05, aiohttp.ClientTimeout(total=2.0)
_RESTART_DELAYS_SECONDS = (0.1, 1.0, 5.0, 15.0)
_Result = TypeVar("_Result")


async def wait_for_ping(session: aiohttp.ClientSession, url: str, check: Callable[[], None]) -> None:
    """Wait until ``/ping`` answers 200. ``check`` runs after each failure and may raise an error."""
    while True:
        with contextlib.suppress(aiohttp.ClientError, TimeoutError):
            async with session.get(f"{url}/ping", timeout=_PING_TIMEOUT) as response:
                if response.status == 200:
                    return
        check()
        await asyncio.sleep(_PING_INTERVAL_SECONDS)


async def wait_until_ready(
    ping: Coroutine[Any, Any, None], end: Coroutine[Any, Any, object], timeout_seconds: float
) -> str | None:
    """Return ``None`` when ``ping`` finishes, or why the container is not ready.

    ``end`` finishes when the container ends.
    """
    ready, ended = asyncio.create_task(ping), asyncio.create_task(end)
    try:
        done, _ = await asyncio.wait(
            {ended, ready}, timeout=timeout_seconds, return_when=asyncio.FIRST_COMPLETED
        )
        if ended in done:
            return "ended before it was ready"
        if ready not in done:
            return f"did not answer /ping within {timeout_seconds:.0f} s"
        ready.result()
        return None
    finally:
        ready.cancel()
        ended.cancel()
        await asyncio.gather(ready, ended, return_exceptions=True)


async def start_again(start: Callable[[], Awaitable[None]], report: Callable[[str], None]) -> None:
    """Call ``start`` until it succeeds, and wait longer after each failure."""
    failures = 0
    while True:
        await asyncio.sleep(_RESTART_DELAYS_SECONDS[min(failures, len(_RESTART_DELAYS_SECONDS) - 1)])
        try:
            return await start()
        except LocalEndpointError as error:
            failures += 1
            report(str(error))


async def finish(task: asyncio.Task[_Result]) -> _Result:
    """Wait for a thread even when cancelled, so that what it writes can be deleted afterwards."""
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        if not task.cancelled():
            task.exception()  # otherwise asyncio prints it when the task is deleted
        raise
