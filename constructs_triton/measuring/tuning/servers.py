"""Starts candidates on this machine, each from its own copy of the repository."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from constructs_triton.errors import InvocationError, LocalEndpointError
from constructs_triton.local import LocalEndpoint
from constructs_triton.local.model_statistics import ModelStatistics, statistics_since
from constructs_triton.local.options import LocalRunOptions
from constructs_triton.measuring.tuning.candidates import Candidate
from constructs_triton.measuring.tuning.racing import CandidateRefusedError
from constructs_triton.measuring.tuning.repositories import TunedRepository
from constructs_triton_client import Invocation, SageMakerTransport
from constructs_triton_client.concurrency import map_concurrently

__all__ = ["CandidateServers", "RunningCandidate"]

_NAME = "tune"
_REASON_LENGTH = 300


@dataclass(frozen=True, slots=True)
class RunningCandidate:
    """The local endpoint of a candidate, if it is one, and the transport that reaches it."""

    endpoint: LocalEndpoint | None
    transport: SageMakerTransport

    @contextmanager
    def count_queues(self, found: dict[str, dict[str, float]]) -> Iterator[None]:
        """Add what the server counts of each model inside the block: times, and the size of batches."""
        before = self._statistics()
        yield
        after = self._statistics()
        for each in statistics_since(after, before):
            if each.success.count:
                found[each.name] = {
                    "queue_ms": round(each.queue.mean_ms, 3),
                    "compute_ms": round(each.mean_compute_ms, 3),
                    "batch": round(each.mean_batch_size, 2),
                }

    def _statistics(self) -> tuple[ModelStatistics, ...]:
        """Return the counters; none of a container or in AWS, where they cannot be reached."""
        if self.endpoint is None:
            return ()
        try:
            servers = self.endpoint.statistics()
        except LocalEndpointError:
            return ()
        return tuple(each for variants in servers.values() for models in variants.values() for each in models)


class CandidateServers:
    """The candidates that run now.

    Args:
        repository: The repository whose copies run.
        folder: Folder of the copies.
        requests: Requests that warm a candidate up.
        options: Options of ``LocalEndpoint``, such as the engine.
        calls: Models that Python models call, as for ``LocalEndpoint.from_repository``.
    """

    def __init__(
        self,
        repository: TunedRepository,
        folder: Path,
        requests: Sequence[Invocation],
        options: LocalRunOptions,
        calls: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self._repository = repository
        self._folder = folder
        self._requests = requests
        self._options = options
        self._calls = calls
        self._stack = ExitStack()
        self._running: dict[Candidate, RunningCandidate] = {}
        self.starts = 0
        #: Waiting for endpoints of several candidates, which is not part of the budget.
        self.waited_seconds = 0.0

    def get(self, candidate: Candidate, *, keep: Sequence[Candidate] = ()) -> RunningCandidate:
        """Return a candidate, which is started if it does not run; others than those of ``keep`` are stopped.

        Raises:
            CandidateRefusedError: the server does not start with it, or its first requests fail.
        """
        if candidate not in self._running:
            if any(each not in keep for each in self._running):
                self.close()
            running = self._start(candidate)
            self._running[candidate] = running
            self._warm_up(candidate, running)
        return self._running[candidate]

    def close(self) -> None:
        """Stop all candidates."""
        self._running.clear()
        self._stack.close()

    def _start(self, candidate: Candidate) -> RunningCandidate:
        folder = self._folder / f"{self.starts}"
        shutil.rmtree(folder, ignore_errors=True)
        self._repository.copy(candidate, folder)
        self._stack.callback(shutil.rmtree, folder, ignore_errors=True)
        self.starts += 1
        options: LocalRunOptions = {**self._options, "endpoint": _NAME, "is_exact": True}
        endpoint = LocalEndpoint.from_repository(
            folder, model=self._repository.model, calls=self._calls, **options
        )
        try:
            self._stack.enter_context(endpoint)
        except LocalEndpointError as error:
            raise CandidateRefusedError(_shorten(error)) from None
        transport = SageMakerTransport(_NAME, endpoint_url=endpoint.endpoint_url, region_name="us-east-1")
        return RunningCandidate(endpoint, transport)

    def _warm_up(self, candidate: Candidate, running: RunningCandidate) -> None:
        """Send a group of requests for each batch size: backends prepare a shape when they first see it."""
        largest = max(settings.batch for _, settings in candidate.models)
        sizes = [2**power for power in range(largest.bit_length())]
        try:
            for size in sizes:
                group = [self._requests[number % len(self._requests)] for number in range(size)]
                list(map_concurrently(running.transport.invoke, group, max_concurrency=min(size, 64)))
        except InvocationError as error:
            raise CandidateRefusedError(_shorten(error)) from None


def _shorten(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= _REASON_LENGTH else f"{text[:_REASON_LENGTH]}…"
