"""Blocking work beside an event loop ends with it."""

from __future__ import annotations

import asyncio
import signal
import threading
from pathlib import Path

import pytest
from fake_container import in_loop

from constructs_triton_core.errors import LocalEndpointError
from constructs_triton_tools.local import interruptible
from constructs_triton_tools.local.interruptible import run_in_thread
from constructs_triton_tools.local.options import RunOptions
from constructs_triton_tools.local.run import LocalRun


def _endless(folder: Path) -> None:
    """Keep a file until the work is interrupted."""
    file = folder / "partial"
    file.touch()
    try:
        while True:
            pass
    finally:
        file.unlink()


def test_result_and_error_are_those_of_the_work() -> None:
    """As with ``asyncio.to_thread``."""

    def fail() -> None:
        raise LocalEndpointError("no")

    assert asyncio.run(run_in_thread(lambda: 3)) == 3
    with pytest.raises(LocalEndpointError, match="no"):
        asyncio.run(run_in_thread(fail))


@in_loop
async def test_endless_work_ends_when_cancelled(tmp_path: Path) -> None:
    """And deletes what it wrote first."""
    work = asyncio.create_task(run_in_thread(lambda: _endless(tmp_path)))
    while not list(tmp_path.iterdir()):
        await asyncio.sleep(0.01)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert not list(tmp_path.iterdir())


@in_loop
async def test_work_that_cannot_be_interrupted_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread that waits outside of Python delays the end only for a while."""
    monkeypatch.setattr(interruptible, "_GRACE_SECONDS", 0.05)
    lock = threading.Lock()
    lock.acquire()
    work = asyncio.create_task(run_in_thread(lock.acquire))
    await asyncio.sleep(0.05)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    lock.release()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_first_signal_ends_a_run_that_reads(
    number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was ignored until the models were read, so for ever with a template that does not end."""

    def read(_: LocalRun, scratch: Path) -> None:
        signal.raise_signal(number)
        _endless(scratch)

    monkeypatch.setattr(LocalRun, "_read_specs", read)
    run = LocalRun(RunOptions(tmp_path), lambda _: None, lambda *_: None)
    if number == signal.SIGINT:
        with pytest.raises(KeyboardInterrupt):
            run.run()
    else:
        run.run()
