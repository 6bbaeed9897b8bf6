"""Runs steps, in one process or in several."""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from urllib.parse import urlsplit

from constructs_triton.errors import InvalidValueError
from constructs_triton.measuring.load_test.http_sender import HttpSender, Signer, import_aiohttp
from constructs_triton.measuring.load_test.open_loop import LiveFigures, OpenLoop
from constructs_triton.measuring.load_test.prepared_requests import PreparedRequest
from constructs_triton.measuring.load_test.step import Limits, Recording, StepResult, StepSettings, evaluate
from constructs_triton_client.transports.sagemaker_transport import LOOPBACK_HOSTS

__all__ = ["StepRunner"]

_SHOW_EVERY_SECONDS = 0.5
Show = Callable[[float, float, LiveFigures], None]


class StepRunner:
    """Measures one rate after the other.

    ``requests``
        What is sent, at random by their weights.
    ``processes``
        Processes that share the rate. Default: 1. One process signs and sends a few thousand requests per
        second.
    ``show``
        Called twice a second with the rate, the seconds since the start and the figures so far. Not called
        with several processes.
    ``limits``
        When a rate is held.

    Raises:
        InvalidValueError: there are no requests, or ``processes`` is below 1.
        MissingDependencyError: aiohttp is not installed.
        InvocationError: the requests have to be signed, and there are no credentials.
    """

    def __init__(
        self,
        requests: Sequence[PreparedRequest],
        limits: Limits,
        *,
        processes: int = 1,
        show: Show | None = None,
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
        self._steps = 0
        if any(request.scope for request in requests):
            Signer.of_default_session()

    def measure(self, rate: float, settings: StepSettings) -> StepResult:
        """Send requests at one rate and return what was measured.

        Args:
            rate: Requests per second.
            settings: How the step is run.
        """
        # Each step draws its own arrivals; the same test draws the same ones again.
        settings = replace(settings, seed=settings.seed + 1000 * self._steps)
        self._steps += 1
        if self._processes == 1:
            recordings = [asyncio.run(_record(self._requests, rate, settings, self._show))]
        else:
            recordings = self._measure_in_processes(rate, settings)
        return evaluate(rate, settings, self._limits, recordings)

    def _measure_in_processes(self, rate: float, settings: StepSettings) -> list[Recording]:
        share = replace(settings, max_in_flight=max(1, settings.max_in_flight // self._processes))
        # Started afresh: a fork would copy the threads' locks of the AWS SDK.
        with ProcessPoolExecutor(self._processes, get_context("spawn")) as pool:
            parts = [
                pool.submit(
                    _record_in_process,
                    self._requests,
                    rate / self._processes,
                    replace(share, seed=settings.seed + number),
                )
                for number in range(self._processes)
            ]
            return [part.result() for part in parts]


def _record_in_process(requests: Sequence[PreparedRequest], rate: float, settings: StepSettings) -> Recording:
    return asyncio.run(_record(requests, rate, settings, None))


async def _record(
    requests: Sequence[PreparedRequest], rate: float, settings: StepSettings, show: Show | None
) -> Recording:
    signer = Signer.of_default_session() if any(request.scope for request in requests) else None
    # What exists now is never garbage; looking at it again would delay the requests that are due meanwhile.
    gc.collect()
    gc.freeze()
    is_local = all(urlsplit(request.url).hostname in LOOPBACK_HOSTS for request in requests)
    async with HttpSender(signer, is_local=is_local) as sender:
        loop = OpenLoop(requests, sender.send, settings)
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
