"""Runs blocking work beside an event loop, so that the signal that ends the
loop ends the work too.
"""

from __future__ import annotations

import asyncio
import ctypes
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

_Result = TypeVar("_Result")
#: How long work may take to delete what it wrote. A thread that waits for another program, for a
#: disk or for the network cannot be interrupted, and ends with the process.
_GRACE_SECONDS = 5.0
#: How long work that usually takes tenths of a second may take before it is interrupted.
_SOON_SECONDS = 3.0


async def run_in_thread(work: Callable[[], _Result]) -> _Result:
    """Return the result of work in a thread. When cancelled, end the work first, and then the
    waiting.

    ``asyncio.to_thread`` would let a command ignore Ctrl-C until the work is done.
    """
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[BaseException | None] = loop.create_future()
    results: list[_Result] = []
    is_running = threading.Lock()
    is_running.acquire()

    def end(error: BaseException | None) -> None:
        if not ended.done():
            ended.set_result(error)

    def run() -> None:
        error: BaseException | None = None
        try:
            results.append(work())
        except BaseException as raised:
            error = raised
        is_running.release()
        with suppress(RuntimeError):  # the loop did not wait any longer
            loop.call_soon_threadsafe(end, error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        error = await asyncio.shield(ended)
    except asyncio.CancelledError:
        _interrupt(thread, is_running)
        raise
    if error is not None:
        raise error
    return results[0]


async def finish_soon(*tasks: asyncio.Task[Any]) -> None:
    """Wait for tasks, and cancel those that take longer than seconds.

    A thread that is interrupted while it starts a process or another thread can leave a lock of
    Python's own behind, so one that ends by itself is let end.
    """
    _, running = await asyncio.wait(tasks, timeout=_SOON_SECONDS)
    for task in running:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _interrupt(thread: threading.Thread, is_running: threading.Lock) -> None:
    """Raise SystemExit in a thread, as Python raises KeyboardInterrupt in the main one, and wait
    for its end.

    While the exception waits for a thread that does not run Python, this one calls C functions
    only: with a tracer, such as a debugger, Python 3.11 never leaves the beginning of a function
    then. It ends when any thread gets an exception.
    """
    assert thread.ident is not None
    raise_in = ctypes.pythonapi.PyThreadState_SetAsyncExc
    error = ctypes.py_object(SystemExit)
    theirs = ctypes.c_ulong(thread.ident)
    ours = ctypes.c_ulong(threading.get_ident())
    raise_in(theirs, error)
    if not is_running.acquire(timeout=_GRACE_SECONDS):
        raise_in(theirs, None)
        try:  # noqa: SIM105 - `suppress` is a Python function
            raise_in(ours, error)
        except SystemExit:
            pass
