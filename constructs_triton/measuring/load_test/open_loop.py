"""Sends requests when they are due, whatever happened to those before."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from random import Random
from typing import Any

from constructs_triton.measuring.load_test.arrivals import due_times
from constructs_triton.measuring.load_test.prepared_requests import PreparedRequest
from constructs_triton.measuring.load_test.step import OK, Recording, Sample, StepSettings

__all__ = ["LiveFigures", "OpenLoop", "Send"]

#: Sends one request and returns its HTTP status (0: no response) and, after an error, a message.
Send = Callable[[PreparedRequest], Coroutine[Any, Any, tuple[int, str]]]
_RECENT = 500


@dataclass(slots=True)
class LiveFigures:
    """What a progress display shows while a step runs."""

    sent: int = 0
    errors: int = 0
    in_flight: int = 0
    recent: deque[float] = field(default_factory=lambda: deque(maxlen=_RECENT))

    def percentile_ms(self, percent: float) -> float:
        """A percentile of the latest latencies in milliseconds."""
        values = sorted(self.recent)
        return values[int(percent / 100 * (len(values) - 1))] * 1000 if values else 0.0


class OpenLoop:
    """One step in one process.

    ``cpu_clock`` returns the seconds of CPU that this process has used; tests replace it.
    """

    def __init__(
        self,
        requests: Sequence[PreparedRequest],
        send: Send,
        settings: StepSettings,
        *,
        cpu_clock: Callable[[], float] = time.process_time,
    ) -> None:
        self._requests = requests
        self._send = send
        self._settings = settings
        self._cpu_clock = cpu_clock
        self._rng = Random(settings.seed)
        self._weights = list(accumulate(request.weight for request in requests))
        self._tasks: set[asyncio.Task[None]] = set()
        self._recording = Recording()
        self.live = LiveFigures()

    async def run(self, rate: float) -> Recording:
        """Send ``rate`` requests per second, wait for the answers, and return what was recorded."""
        clock = asyncio.get_running_loop().time
        cpu, start = self._cpu_clock(), clock()
        await self._send_all(rate, start)
        self._recording.cpu = (self._cpu_clock() - cpu) / max(clock() - start, 1e-9)
        if self._tasks:
            await asyncio.gather(*self._tasks)
        return self._recording

    async def _send_all(self, rate: float, start: float) -> None:
        clock = asyncio.get_running_loop().time
        warm, total = self._settings.warm_up_seconds, self._settings.warm_up_seconds + self._settings.seconds
        for offset in due_times(rate, total, self._rng, constant=self._settings.constant):
            due = start + offset
            if (wait := due - clock()) > 0:
                await asyncio.sleep(wait)
            is_measured = offset >= warm
            if len(self._tasks) >= self._settings.max_in_flight:
                # Waiting for a free place would hide that the endpoint is too slow.
                self._recording.shed += is_measured
                await asyncio.sleep(0)
                continue
            (request,) = self._rng.choices(self._requests, cum_weights=self._weights)
            task = asyncio.create_task(self._send_one(request, due, is_measured))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _send_one(self, request: PreparedRequest, due: float, is_measured: bool) -> None:
        clock = asyncio.get_running_loop().time
        sent = clock()
        status, message = await self._send(request)
        latency = clock() - due
        self._note(latency, status)
        if is_measured:
            self._recording.samples.append(Sample(sent - due, latency, status))
            self._recording.first_error = self._recording.first_error or message

    def _note(self, latency: float, status: int) -> None:
        self.live.sent += 1
        self.live.errors += status != OK
        self.live.in_flight = len(self._tasks)
        self.live.recent.append(latency)
