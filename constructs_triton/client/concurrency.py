"""Bounded concurrency that keeps the order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from constructs_triton.errors import InvalidValueError

if TYPE_CHECKING:
    from concurrent.futures import Future

__all__ = ["map_concurrently"]

Item = TypeVar("Item")
Result = TypeVar("Result")


def map_concurrently(
    function: Callable[[Item], Result], items: Iterable[Item], *, max_concurrency: int
) -> Iterator[Result]:
    """``function`` of each item on at most ``max_concurrency`` threads, results in the order of items.

    ``items`` is read no further than twice ``max_concurrency`` beyond the results that were taken.
    """
    if max_concurrency < 1:
        raise InvalidValueError(f"max_concurrency: must be at least 1, got {max_concurrency}; raise it")
    return _iterate(function, items, max_concurrency)


def _iterate(
    function: Callable[[Item], Result], items: Iterable[Item], max_concurrency: int
) -> Iterator[Result]:
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - brings logging, for few callers

    executor = ThreadPoolExecutor(max_concurrency, thread_name_prefix="constructs-triton-infer")
    waiting: deque[Future[Result]] = deque()
    try:
        for item in items:
            waiting.append(executor.submit(function, item))
            if len(waiting) >= 2 * max_concurrency:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        executor.shutdown(wait=True, cancel_futures=True)
