"""Concurrent calls with a limit."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from constructs_triton_core.concurrency import map_concurrently
from constructs_triton_core.errors import InvalidValueError


def test_at_most_the_limit_runs_at_a_time() -> None:
    """Exactly max_concurrency calls run at a time, results are in order,
    and little is read ahead.
    """
    lock, running, most, drawn = threading.Lock(), 0, 0, 0
    turn = threading.Barrier(3)

    def function(value: int) -> int:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        turn.wait(timeout=30)
        with lock:
            running -= 1
        return value * 10

    def items() -> Iterator[int]:
        nonlocal drawn
        for value in range(30):
            drawn += 1
            yield value

    results = map_concurrently(function, items(), max_concurrency=3)
    assert drawn == 0
    assert next(results) == 0
    assert drawn == 6
    assert next(results) == 10
    assert drawn == 7
    assert list(results) == [value * 10 for value in range(2, 30)]
    assert most == 3


def test_one_at_a_time() -> None:
    """With max_concurrency 1 calls do not overlap, and two items are read ahead."""
    lock, drawn = threading.Lock(), []

    def function(value: int) -> int:
        assert lock.acquire(blocking=False)
        try:
            assert threading.current_thread().name.startswith("constructs-triton-infer")
            return value
        finally:
            lock.release()

    def items() -> Iterator[int]:
        for value in range(5):
            drawn.append(value)
            yield value

    results = map_concurrently(function, items(), max_concurrency=1)
    assert next(results) == 0
    assert drawn == [0, 1]
    assert list(results) == [1, 2, 3, 4]


@pytest.mark.parametrize("max_concurrency", [0, -1])
def test_limit_below_one_is_rejected_at_once(max_concurrency: int) -> None:
    """The error is raised by the call itself, not by the first result."""
    with pytest.raises(
        InvalidValueError, match=f"must be at least 1, got {max_concurrency}; use 1"
    ):
        map_concurrently(str, [], max_concurrency=max_concurrency)


def test_leaving_early_cancels_the_rest_and_waits() -> None:
    """When the caller stops reading, waiting items are cancelled and no thread is left."""
    called = []
    release = threading.Event()

    def function(value: int) -> int:
        if value:
            release.wait(timeout=30)
        called.append(value)
        return value

    results = map_concurrently(function, range(100), max_concurrency=2)
    assert next(results) == 0
    threading.Timer(0.05, release.set).start()
    results.close()  # type: ignore[attr-defined]  # an iterator that is a generator
    assert len(called) <= 3
    assert not [t for t in threading.enumerate() if t.name.startswith("constructs-triton-infer")]


def test_results_of_calls_that_were_made_come_before_the_failure_to_read_on() -> None:
    """A file with a damaged last row does not lose the answers to the rows before it."""

    def rows() -> Iterator[int]:
        yield from range(5)
        raise ValueError("damaged")

    results = map_concurrently(lambda row: row * 2, rows(), max_concurrency=4)
    assert [next(results) for _ in range(5)] == [0, 2, 4, 6, 8]
    with pytest.raises(ValueError, match="damaged"):
        next(results)
