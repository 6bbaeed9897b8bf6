"""Concurrent calls with a limit, whose results keep the order of the items."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, TypeVar

from constructs_triton_core.errors import InvalidValueError

if TYPE_CHECKING:
    from concurrent.futures import Future

__all__ = ["map_concurrently"]

Item = TypeVar("Item")
Result = TypeVar("Result")


def map_concurrently(
    function: Callable[[Item], Result], items: Iterable[Item], *, max_concurrency: int
) -> Iterator[Result]:
    """Call ``function`` with each item on up to ``max_concurrency`` threads; yield results in
    order.

    At most twice ``max_concurrency`` items are read ahead of the results that the caller has taken.
    If reading them fails, the results of the items before are yielded first, because their calls
    have been made.

    Raises:
        InvalidValueError: ``max_concurrency`` is below 1.
    """
    if max_concurrency < 1:
        raise InvalidValueError(
            f"max_concurrency: must be at least 1, got {max_concurrency}; use 1 for one at a time"
        )
    return _iterate(function, items, max_concurrency)


def _iterate(
    function: Callable[[Item], Result], items: Iterable[Item], max_concurrency: int
) -> Iterator[Result]:
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - imports logging, and few callers need it

    executor = ThreadPoolExecutor(max_concurrency, thread_name_prefix="constructs-triton-infer")
    waiting: deque[Future[Result]] = deque()
    failures: list[Exception] = []
    try:
        for item in _read(items, failures):
            waiting.append(executor.submit(function, item))
            if len(waiting) >= 2 * max_concurrency:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
        for failure in failures:
            raise failure
    finally:
        executor.shutdown(wait=True, cancel_futures=True)


def _read(items: Iterable[Item], failures: list[Exception]) -> Iterator[Item]:
    """Yield the items until reading one fails, and add the reason to ``failures``."""
    try:
        yield from items
    except Exception as error:  # raised after the results
        failures.append(error)
