"""The candidates that run now, of which each has its own copy of the repository."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from constructs_triton_client import Invocation, SageMakerTransport
from constructs_triton_core.concurrency import map_concurrently
from constructs_triton_core.errors import InvocationError, LocalEndpointError
from constructs_triton_tools.local import LocalEndpoint
from constructs_triton_tools.local.model_statistics import ModelStatistics, statistics_since
from constructs_triton_tools.local.options import LocalRunOptions
from constructs_triton_tools.measuring.tuning.candidates import Candidate
from constructs_triton_tools.measuring.tuning.preparation import Machine
from constructs_triton_tools.measuring.tuning.racing import CandidateRefusedError
from constructs_triton_tools.measuring.tuning.repositories import TunedRepository

_NAME = "tune"
_REASON_LENGTH = 300


@dataclass(frozen=True, slots=True)
class RunningCandidate:
    """A candidate that answers."""

    transport: SageMakerTransport
    endpoint: LocalEndpoint

    @contextmanager
    def count_queues(self, found: dict[str, dict[str, float]]) -> Iterator[None]:
        """Add what the server counts of each model inside the block: times,
        and the size of batches.
        """
        before = self._statistics()
        yield
        for model in statistics_since(self._statistics(), before):
            if model.success.count:
                found[model.name] = {
                    "queue_ms": round(model.queue.mean_ms, 3),
                    "compute_ms": round(model.mean_compute_ms, 3),
                    "batch": round(model.mean_batch_size, 2),
                }

    def _statistics(self) -> tuple[ModelStatistics, ...]:
        """Return the counters; none if they cannot be reached."""
        try:
            servers = self.endpoint.statistics()
        except LocalEndpointError:
            return ()
        found: list[ModelStatistics] = []
        for variants in servers.values():
            for models in variants.values():
                found += models
        return tuple(found)


@dataclass
class CandidateServers:
    """Starts candidates on this machine, and stops them.

    ``requests`` are those of the search, which also warm a candidate up. ``folder`` has the copies,
    and exists as long as candidates run.
    """

    repository: TunedRepository
    requests: Sequence[Invocation]
    folder: Path
    local: LocalRunOptions
    machine: Machine
    _starts: int = field(default=0, init=False)
    _kept: Sequence[Candidate] = field(default=(), init=False)
    _running: dict[Candidate, RunningCandidate] = field(default_factory=dict, init=False)
    _stack: ExitStack = field(default_factory=ExitStack, init=False)

    def get(self, candidate: Candidate) -> RunningCandidate:
        """Return a candidate, which is started if it does not run.

        Raises:
            CandidateRefusedError: the server does not start with it, or its first requests fail.
        """
        if candidate not in self._running:
            self._start(candidate)
        return self._running[candidate]

    def keep(self, candidates: Sequence[Candidate]) -> None:
        """Let candidates run at the same time, unless they would share the memory of GPUs."""
        self._kept = () if self.machine.gpus else candidates

    def close(self) -> None:
        """Stop all candidates, and delete their copies."""
        self._running.clear()
        self._stack.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _start(self, candidate: Candidate) -> None:
        """Start a candidate, warm it up, and stop those that cannot run beside it."""
        if not self._running.keys() <= set(self._kept):
            self.close()
        options: LocalRunOptions = {**self.local, "endpoint": _NAME, "is_exact": True}
        endpoint = LocalEndpoint.from_repository(
            self._copy(candidate),
            model=self.repository.model,
            calls=self.repository.calls,
            **options,
        )
        try:
            self._stack.enter_context(endpoint)
            transport = SageMakerTransport(_NAME, endpoint_url=endpoint.endpoint_url)
            self._running[candidate] = RunningCandidate(transport, endpoint)
            self._warm_up(candidate, transport)
        except (InvocationError, LocalEndpointError) as error:
            raise CandidateRefusedError(_shorten(error)) from None

    def _copy(self, candidate: Candidate) -> Path:
        """Copy the repository with the settings of a candidate."""
        self._starts += 1
        copy = self.folder / f"{self._starts}"
        shutil.rmtree(copy, ignore_errors=True)  # of a run that was killed
        self.repository.copy(candidate, copy)
        return copy

    def _warm_up(self, candidate: Candidate, transport: SageMakerTransport) -> None:
        """Send a group of requests for each batch size:
        backends prepare a shape when they first see it.
        """
        largest = max(settings.batch for _, settings in candidate.models)
        for size in (2**power for power in range(largest.bit_length())):
            group = [self.requests[number % len(self.requests)] for number in range(size)]
            list(map_concurrently(transport.invoke, group, max_concurrency=min(size, 64)))


def _shorten(error: Exception) -> str:
    """Return an error in one line that is not long."""
    text = " ".join(str(error).split())
    return text if len(text) <= _REASON_LENGTH else f"{text[:_REASON_LENGTH]}…"
