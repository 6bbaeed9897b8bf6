"""Sends requests when they are due, whatever happened to those before,
or keeps a number of them open.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, count, takewhile
from random import Random
from typing import Any

from constructs_triton_tools.measuring.load_test.prepared_requests import PreparedRequest
from constructs_triton_tools.measuring.load_test.samples import OK, Recording, Sample, StreamTimes
from constructs_triton_tools.measuring.load_test.step import StepSettings

#: Sends one request and returns its HTTP status (0: no response) and, after an error, a message.
Send = Callable[[PreparedRequest], Coroutine[Any, Any, tuple[int, str]]]
#: Takes the time at which an event arrived, its tokens, and all tokens of the stream up to it. A
#: number that the event does not have is ``None``.
NoteEvent = Callable[[float, int | None, int | None], None]
#: Sends one request and notes the events of its response.
SendStream = Callable[[PreparedRequest, NoteEvent], Coroutine[Any, Any, tuple[int, str]]]
#: Whether what was recorded so far decides the step, so that it can end.
IsDecided = Callable[[Recording], bool]
_RECENT = 500
# An endpoint that refuses requests would otherwise get thousands per second from a few callers.
_PAUSE_AFTER_ERROR_SECONDS = 0.1


@dataclass(slots=True)
class LiveFigures:
    """What a progress display shows while a step runs; of streams, the times to the first token."""

    sent: int = 0
    errors: int = 0
    in_flight: int = 0
    recent: deque[float] = field(default_factory=lambda: deque(maxlen=_RECENT))

    def percentile_ms(self, percent: float) -> float:
        """A percentile of the latest times in milliseconds."""
        values = sorted(self.recent)
        return values[int(percent / 100 * (len(values) - 1))] * 1000 if values else 0.0


class OpenLoop:
    """One step in one process.

    ``stream`` sends requests whose events are noted, in place of ``send``. ``is_decided`` returns
    whether the step can end early. ``cpu_clock`` returns the seconds of CPU that this process has
    used; tests replace it.
    """

    def __init__(
        self,
        requests: Sequence[PreparedRequest],
        send: Send,
        settings: StepSettings,
        *,
        stream: SendStream | None = None,
        is_decided: IsDecided | None = None,
        cpu_clock: Callable[[], float] = time.process_time,
    ) -> None:
        self._requests = requests
        self._send = send
        self._stream = stream
        self._is_decided = is_decided
        self._settings = settings
        self._cpu_clock = cpu_clock
        self._rng = Random(settings.seed)
        self._weights = list(accumulate(request.weight for request in requests))
        self._tasks: set[asyncio.Task[object]] = set()
        self._recording = Recording()
        self._measured = 0
        self._start = self._end = 0.0  # of the time that is measured
        self.live = LiveFigures()

    async def run(self, rate: float) -> Recording:
        """Send ``rate`` requests per second, or keep that number open, and return what was
        recorded.

        Requests are closed if the run is cancelled, or after the time that the settings give them.
        """
        clock = asyncio.get_running_loop().time
        cpu = self._cpu_clock()
        start = clock()
        self._start = start + self._settings.warm_up_seconds
        self._end = self._start + self._settings.seconds
        try:
            if self._settings.by_concurrency:
                await self._keep_open(int(rate))
            else:
                await self._send_all(rate)
            self._recording.cpu = (self._cpu_clock() - cpu) / max(clock() - start, 1e-9)
            await self._wait_for_answers()
        finally:
            await self._close_all()
        return self._recording

    async def _send_all(self, rate: float) -> None:
        clock = asyncio.get_running_loop().time
        start = self._start - self._settings.warm_up_seconds
        total = self._end - self._start
        total += self._settings.warm_up_seconds
        for offset in due_times(rate, total, self._rng, constant=self._settings.constant):
            due = start + offset
            if (wait := due - clock()) > 0:
                await asyncio.sleep(wait)
            if self._is_enough():
                break
            if len(self._tasks) >= self._settings.max_in_flight:
                # Waiting for a free place would hide that the endpoint is too slow.
                self._recording.shed += offset >= self._settings.warm_up_seconds
                await asyncio.sleep(0)
                continue
            self._begin(self._send_one(self._choose(), due, is_measured=self._count(due)))

    async def _keep_open(self, requests: int) -> None:
        """Keep this number of requests open: when one ends, send the next."""
        places = asyncio.Semaphore(requests)
        clock = asyncio.get_running_loop().time

        async def send(due: float, *, is_measured: bool) -> None:
            try:
                if not await self._send_one(self._choose(), due, is_measured=is_measured):
                    await asyncio.sleep(_PAUSE_AFTER_ERROR_SECONDS)
            finally:
                places.release()

        try:
            async with asyncio.timeout_at(self._end):
                while True:
                    await places.acquire()
                    if self._is_enough():
                        return
                    due = clock()
                    self._begin(send(due, is_measured=self._count(due)))
        except TimeoutError:
            return

    def _choose(self) -> PreparedRequest:
        (request,) = self._rng.choices(self._requests, cum_weights=self._weights)
        return request

    def _count(self, due: float) -> bool:
        """Whether a request that is due then is measured."""
        is_measured = due >= self._start
        self._measured += is_measured
        return is_measured

    def _is_enough(self) -> bool:
        """Whether the step ends before the next request; the time that is measured ends then."""
        most = self._settings.most_requests
        is_last = most is not None and self._measured >= most
        if not is_last and (self._is_decided is None or not self._is_decided(self._recording)):
            return False
        self._end = asyncio.get_running_loop().time()
        self._recording.seconds = round(self._end - self._start, 3)
        return True

    def _begin(self, request: Coroutine[Any, Any, object]) -> None:
        task = asyncio.create_task(request)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _wait_for_answers(self) -> None:
        if self._tasks:
            done, _ = await asyncio.wait(self._tasks, timeout=self._settings.grace_seconds)
            for task in done:
                task.result()

    async def _close_all(self) -> None:
        """Close what is open, so that the server stops to work for it."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _send_one(self, request: PreparedRequest, due: float, *, is_measured: bool) -> bool:
        """Send a request, record it, and return whether it succeeded."""
        clock = asyncio.get_running_loop().time
        sent = clock()
        if self._stream is None:
            times = None
            status, message = await self._send(request)
        else:
            times = StreamTimes()
            status, message = await self._read_stream(self._stream, request, due, times)
        sample = Sample(sent - due, clock() - due, status, times)
        self._note(sample)
        if is_measured:
            self._recording.samples.append(sample)
            self._recording.first_error = self._recording.first_error or message
        return sample.is_good

    async def _read_stream(
        self, stream: SendStream, request: PreparedRequest, due: float, times: StreamTimes
    ) -> tuple[int, str]:
        def note(time: float, tokens: int | None, total: int | None) -> None:
            times.note(time - due, tokens, total, is_in_step=self._start <= time < self._end)

        try:
            status, message = await stream(request, note)
        except asyncio.CancelledError:
            times.is_closed = True
            return OK, ""
        finally:
            self._recording.tokens += times.count_in_step()
            self._recording.events += times.step_events
        times.is_failed = bool(message)
        return status, message

    def _note(self, sample: Sample) -> None:
        self.live.sent += 1
        self.live.errors += not sample.is_good and not sample.is_closed
        self.live.in_flight = len(self._tasks)
        first = sample.stream.first if sample.stream else None
        self.live.recent.append(sample.latency if first is None else first)


def due_times(
    rate: float, seconds: float, rng: Random, *, constant: bool = False
) -> Iterator[float]:
    """Yield the times of requests in seconds from the start, in order.

    Gaps are random with the mean ``1 / rate``, as those of independent callers (a Poisson process),
    or all of the same length.
    """
    if constant:
        yield from takewhile(lambda time: time < seconds, (number / rate for number in count(1)))
        return
    time = 0.0
    while (time := time + rng.expovariate(rate)) < seconds:
        yield time
