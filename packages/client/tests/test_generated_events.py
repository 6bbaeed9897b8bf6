"""Events of a model that generates, for callers with and without asyncio."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator
from typing import Any

import numpy as np
import pytest

from constructs_triton_client.generated_events import GenerateEvent, GenerateStream
from constructs_triton_core.errors import ResponseDecodingError

# What Triton sends for an output of two elements, and of one.
EVENTS = (
    {"ids": [0, 0], "model_name": "tok", "text_output": ["a", "b"]},
    {"ids": 1, "model_name": "tok", "text_output": "c"},
)


def test_an_output_has_one_type_whatever_its_size() -> None:
    """A list and a single value are both a string for text,
    and an array of one dimension for array.
    """
    events = [GenerateEvent(fields) for fields in EVENTS]
    assert [event.text() for event in events] == ["ab", "c"]
    assert [event.array("ids", "i4").tolist() for event in events] == [[0, 0], [1]]
    assert [event.array("text_output").tolist() for event in events] == [["a", "b"], ["c"]]
    assert events[0].array("ids").dtype == np.int64
    assert events == list(EVENTS)
    assert events[1].id is None
    assert repr(events[1]).startswith("GenerateEvent({'ids': 1")


def test_output_of_a_stream_is_read_from_its_events() -> None:
    """A stream has no outputs, and its error shows the loop that reads them."""
    stream = GenerateStream(GenerateEvent(fields) for fields in EVENTS)
    with pytest.raises(
        TypeError, match=r"write `for event in stream: print\(event\['text_output'\]\)`"
    ):
        stream["text_output"]
    assert [event["text_output"] for event in stream] == [["a", "b"], "c"]


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (
            lambda event: event.text(),
            'output "text_output": is not in the event; use one of .*deep',
        ),
        (lambda event: event.text("n"), r'output "n": must be strings, got \[1, 10{30}\]; read it'),
        (
            lambda event: event.array("n", "i8"),
            r'output "n": cannot be an array, got \[1, 10{30}\] .* another',
        ),
        (lambda event: event.array("s", "f4"), 'output "s": cannot be an array, got'),
        (lambda event: event.array("deep"), 'output "deep": must be a value or a flat list, got'),
    ],
)
def test_what_is_not_the_output_is_an_error(read: Any, message: str) -> None:
    """A missing output, another type and a value that Triton does not send
    are errors that say so.
    """
    event = GenerateEvent({"n": [1, 10**30], "s": "x", "deep": [[1], [2, 3]]})
    with pytest.raises(ResponseDecodingError, match=message):
        read(event)


class Source:
    """Yields events one by one, each when ``may_continue`` is set, and notes its end."""

    def __init__(self) -> None:
        self.may_continue = threading.Event()
        self.closed = threading.Event()
        self.threads: set[str] = set()

    def events(self) -> Generator[GenerateEvent]:
        try:
            for number in range(100):
                self.threads.add(threading.current_thread().name)
                assert self.may_continue.wait(10)
                yield GenerateEvent({"n": number})
        finally:
            self.closed.set()


def test_async_for_has_the_same_events() -> None:
    """The events come in order from one thread; streams of one loop do not wait for each other."""

    async def numbers(stream: GenerateStream) -> list[int]:
        return [event["n"] async for event in stream]

    async def scenario() -> None:
        slow, fast = Source(), Source()
        fast.may_continue.set()
        waiting = asyncio.create_task(numbers(GenerateStream(slow.events())))
        assert await numbers(GenerateStream(fast.events())) == list(range(100))
        assert len(fast.threads) == 1
        slow.may_continue.set()
        assert await waiting == list(range(100))

    asyncio.run(scenario())


def test_a_cancelled_async_for_closes_the_connection() -> None:
    """A stream that waits for an event is closed when the event arrives."""

    async def scenario() -> None:
        source = Source()
        stream = GenerateStream(source.events())
        waiting = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert not source.closed.is_set()
        source.may_continue.set()
        assert await asyncio.to_thread(source.closed.wait, 10)
        with pytest.raises(StopAsyncIteration):
            await anext(stream)

    asyncio.run(scenario())


@pytest.mark.parametrize("is_async", [True, False])
def test_a_closed_stream_has_no_further_events(is_async: bool) -> None:
    """close and aclose end the source, before and after the first event."""

    async def scenario() -> None:
        source = Source()
        source.may_continue.set()
        stream = GenerateStream(source.events())
        if is_async:
            assert (await anext(stream))["n"] == 0
            await stream.aclose()
            assert await asyncio.to_thread(source.closed.wait, 10)
        else:
            assert next(stream)["n"] == 0
            stream.close()
            assert source.closed.is_set()
        assert list(stream) == []
        await GenerateStream(source.events()).aclose()

    asyncio.run(scenario())


def test_an_error_of_the_source_is_raised() -> None:
    """What the thread raises reaches the task, and the stream has ended."""

    def failing() -> Generator[GenerateEvent]:
        yield GenerateEvent({})
        raise ResponseDecodingError("broken")

    async def scenario() -> None:
        stream = GenerateStream(failing())
        assert len(await anext(stream)) == 0
        with pytest.raises(ResponseDecodingError, match="broken"):
            await anext(stream)
        assert [event async for event in stream] == []

    asyncio.run(scenario())
