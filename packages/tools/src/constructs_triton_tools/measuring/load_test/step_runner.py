"""Runs steps, in one process or in several."""

from __future__ import annotations

import asyncio
import gc
import pickle
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from constructs_triton_client.transports.sagemaker_transport import LOOPBACK_HOSTS
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.processes.bounded_process import NO_LIMIT, BoundedProcess
from constructs_triton_core.processes.children import own_environment
from constructs_triton_tools.measuring.load_test.open_loop import IsDecided, LiveFigures, OpenLoop
from constructs_triton_tools.measuring.load_test.prepared_requests import (
    HttpSender,
    PreparedRequest,
    Signer,
    import_aiohttp,
)
from constructs_triton_tools.measuring.load_test.samples import Recording
from constructs_triton_tools.measuring.load_test.step import (
    Limits,
    StepResult,
    StepSettings,
    evaluate,
)

_SHOW_EVERY_SECONDS = 0.5
_RECORD = "constructs_triton_tools.measuring.load_test.step_runner:record_share"
Show = Callable[[float, float, LiveFigures], None]


class StepRunner:
    """Measures one rate after the other, or one number of open requests after the other.

    ``requests``
        What is sent, at random by their weights.
    ``processes``
        Processes that share the rate. Default: 1. One process signs and sends a few thousand
        requests per second.
    ``show``
        Called twice a second with the rate, the seconds since the start and the figures so far. Not
        called with several processes.
    ``limits``
        When a rate is held. With limits of streams, the responses are read as streams.
    ``is_decided``
        Called before each request with what was recorded; the step ends when it returns ``True``.
        Not called with several processes. Default: steps do not end early.
    """

    def __init__(
        self,
        requests: Sequence[PreparedRequest],
        limits: Limits,
        *,
        processes: int = 1,
        show: Show | None = None,
        is_decided: IsDecided | None = None,
    ) -> None:
        import_aiohttp()
        if not requests:
            raise InvalidValueError("requests: must contain at least one request; add an input")
        if not 1 <= processes <= 256:
            raise InvalidValueError(f"processes: must be from 1 to 256, got {processes}; use 1")
        self._requests = tuple(requests)
        self._limits = limits
        self._processes = processes
        self._show = show
        self._is_decided = is_decided
        self._steps = 0
        if any(request.scope for request in requests):
            Signer.of_default_session()

    def measure(self, rate: float, settings: StepSettings) -> StepResult:
        """Send requests at one rate, or keep a number of them open, and return what was measured.

        With ``by_concurrency``, ``rate`` is the number of requests to keep open.
        """
        # Each step draws its own arrivals; the same test draws the same ones again.
        settings = replace(settings, seed=settings.seed + 1000 * self._steps)
        self._steps += 1
        shares = _share(rate, settings, self._processes)
        is_stream = self._limits.stream is not None
        if len(shares) == 1:
            watched = (self._show, self._is_decided)
            recordings = [asyncio.run(_record(self._requests, *shares[0], is_stream, watched))]
        else:
            recordings = self._measure_in_processes(shares, is_stream)
        return evaluate(rate, settings, self._limits, recordings)

    def _measure_in_processes(
        self, shares: Sequence[tuple[float, StepSettings]], is_stream: bool
    ) -> list[Recording]:
        processes = [BoundedProcess(_RECORD, own_environment) for _ in shares]
        try:
            for process, share in zip(processes, shares, strict=True):
                request = pickle.dumps((self._requests, *share, is_stream))
                process.send(request, seconds=NO_LIMIT, memory_bytes=NO_LIMIT)
            return [_recording(process.receive()) for process in processes]
        finally:
            for process in processes:  # after Ctrl-C, their requests are closed with them
                process.close()


def _share(rate: float, settings: StepSettings, processes: int) -> list[tuple[float, StepSettings]]:
    """The rate and the settings of each process, each with its own random arrivals."""
    processes = min(processes, settings.most_requests or processes)
    if settings.by_concurrency:
        processes = min(processes, int(rate))
    requests = None if settings.most_requests is None else _split(settings.most_requests, processes)
    rates = (
        _split(int(rate), processes) if settings.by_concurrency else [rate / processes] * processes
    )
    return [
        (
            rates[number],
            replace(
                settings,
                max_in_flight=max(1, settings.max_in_flight // processes),
                most_requests=None if requests is None else requests[number],
                seed=settings.seed + number,
            ),
        )
        for number in range(processes)
    ]


def _split(total: int, parts: int) -> list[int]:
    return [total // parts + (number < total % parts) for number in range(parts)]


def record_share(request: bytes) -> bytes:
    """Record the share of one process; both sides are pickled.

    An error of this package is an answer.
    """
    try:
        requests, rate, settings, is_stream = pickle.loads(request)
        return pickle.dumps(asyncio.run(_record(requests, rate, settings, is_stream, (None, None))))
    except Exception as error:
        return pickle.dumps(error)


def _recording(answer: bytes) -> Recording:
    recording = pickle.loads(answer)
    if isinstance(recording, Exception):
        raise recording
    assert isinstance(recording, Recording)
    return recording


async def _record(
    requests: Sequence[PreparedRequest],
    rate: float,
    settings: StepSettings,
    is_stream: bool,
    watched: tuple[Show | None, IsDecided | None],
) -> Recording:
    show, is_decided = watched
    signer = Signer.of_default_session() if any(request.scope for request in requests) else None
    # What exists now is never garbage; looking at it again would delay the requests that are
    # due then.
    gc.collect()
    gc.freeze()
    is_local = all(urlsplit(request.url).hostname in LOOPBACK_HOSTS for request in requests)
    async with HttpSender(signer, is_local=is_local) as sender:
        stream = sender.stream if is_stream else None
        loop = OpenLoop(requests, sender.send, settings, stream=stream, is_decided=is_decided)
        if show is None:
            return await loop.run(rate)
        display = asyncio.create_task(_keep_showing(show, rate, loop.live))
        try:
            return await loop.run(rate)
        finally:
            display.cancel()


async def _keep_showing(show: Show, rate: float, live: LiveFigures) -> None:
    start = time.monotonic()
    while True:
        await asyncio.sleep(_SHOW_EVERY_SECONDS)
        show(rate, time.monotonic() - start, live)
