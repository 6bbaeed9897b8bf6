"""The events of a model that generates, and the stream that they arrive in."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Never, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray

from constructs_triton_core.errors import ResponseDecodingError
from constructs_triton_core.spelling import quoted

__all__ = ["GenerateEvent", "GenerateStream"]


class GenerateEvent(Mapping[str, Any]):
    """One response of a model that generates: its outputs and response parameters, as JSON values
    by name.

    Triton sends an output of one element as a single value and an output of several as a list, so
    the value of the same output may be ``1`` in one event and ``[0, 0]`` in the next. ``text`` and
    ``array`` return the same type for both.

    Args:
        fields: The JSON object of the event.
    """

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = fields

    def __getitem__(self, name: str) -> Any:
        return self._fields[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._fields!r})"

    @property
    def id(self) -> str | None:
        """The id of the request; ``None`` if it had none."""
        value = self._fields.get("id")
        return None if value is None else str(value)

    def text(self, name: str = "text_output") -> str:
        """Return an output of strings as one string.

        Args:
            name: Name of the output.

        Raises:
            ResponseDecodingError: the event has no such output, or it does not consist of strings.
        """
        values = self._values(name)
        if not all(isinstance(value, str) for value in values):
            raise ResponseDecodingError(
                f'output "{name}": must be strings, got {values!r:.80}; '
                f'read it with array("{name}")'
            )
        return "".join(values)

    def array(self, name: str, dtype: DTypeLike | None = None) -> NDArray[Any]:
        """Return an output as an array of one dimension; the event does not have its shape.

        Args:
            name: Name of the output.
            dtype: Data type of the array. Default: derived from the values; ``object`` for strings.

        Raises:
            ResponseDecodingError: the event has no such output, or its values do not fit ``dtype``.
        """
        values = self._values(name)
        if dtype is None and any(isinstance(value, str) for value in values):
            dtype = object
        try:
            array = np.array(values, dtype)
        except (ValueError, TypeError, OverflowError) as error:
            raise ResponseDecodingError(
                f'output "{name}": cannot be an array, '
                f"got {values!r:.80} ({error}); pass another dtype"
            ) from None
        return array

    def _values(self, name: str) -> list[Any]:
        """Return the values of an output as a flat list."""
        if name not in self._fields:
            raise ResponseDecodingError(
                f'output "{name}": is not in the event; use one of {quoted(sorted(self._fields))}'
            )
        value = self._fields[name]
        values = value if isinstance(value, list) else [value]
        if not all(isinstance(item, str | int | float) for item in values):
            raise ResponseDecodingError(
                f'output "{name}": must be a value or a flat list, got {value!r:.80}; '
                "check that the endpoint runs Triton"
            )
        return values


class GenerateStream:
    """The events of one request, for ``for`` and for ``async for``; they can be read once.

    ``async for`` waits in a thread of its own. A stream that is closed, cancelled or no longer
    referenced closes its connection, and the server cancels the request; if an ``async for`` is
    waiting, it does so when the next event arrives.

    Args:
        events: Yields the events.
    """

    def __init__(self, events: Generator[GenerateEvent]) -> None:
        self._events = events
        self._thread: ThreadPoolExecutor | None = None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> GenerateEvent:
        return next(self._events)

    def __getitem__(self, name: object) -> Never:
        raise TypeError(
            f"a stream has no outputs; write `for event in stream: print(event[{name!r}])`"
        )

    def close(self) -> None:
        """Close the connection; there are no further events."""
        self._events.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> GenerateEvent:
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "constructs-triton-stream")
        loop = asyncio.get_running_loop()
        try:
            event = await loop.run_in_executor(self._thread, next, self._events, None)
        except BaseException:
            self._close_in_thread()
            raise
        if event is None:
            self._close_in_thread()
            raise StopAsyncIteration
        return event

    async def aclose(self) -> None:
        """Close the connection; there are no further events."""
        self._close_in_thread()

    def _close_in_thread(self) -> None:
        """Close the stream when the thread no longer reads it."""
        thread = self._thread
        self._thread = None
        if thread is None:
            self._events.close()
        else:
            thread.submit(self._events.close)
            thread.shutdown(wait=False)
