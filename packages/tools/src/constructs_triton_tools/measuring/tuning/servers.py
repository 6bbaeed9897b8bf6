"""The candidates that run now, of which each has its own copy of the repository."""

from __future__ import annotations

import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from constructs_triton_client import Invocation, SageMakerTransport
from constructs_triton_core.concurrency import map_concurrently
from constructs_triton_core.errors import ConstructsTritonError, InvocationError, LocalEndpointError
from constructs_triton_tools.local import LocalEndpoint
from constructs_triton_tools.local.model_statistics import ModelStatistics, statistics_since
from constructs_triton_tools.measuring.tuning.candidates import Candidate
from constructs_triton_tools.measuring.tuning.listener import TuneListener
from constructs_triton_tools.measuring.tuning.preparation import TuneOptions
from constructs_triton_tools.measuring.tuning.racing import CandidateRefusedError
from constructs_triton_tools.measuring.tuning.repositories import TunedRepository

__all__ = ["CandidateServers", "RunningCandidate", "describe_refusal"]

_REASON_LENGTH = 300


@dataclass(frozen=True, slots=True)
class RunningCandidate:
    """A candidate that answers.

    Args:
        transport: Reaches its endpoint.
        requests: The requests of the search, for this candidate: several candidates may share an endpoint.
        endpoint: Its endpoint, if it is on this machine.
    """

    transport: SageMakerTransport
    requests: Sequence[Invocation]
    endpoint: LocalEndpoint | None = None

    @contextmanager
    def count_queues(self, found: dict[str, dict[str, float]]) -> Iterator[None]:
        """Add what the server counts of each model inside the block: times, and the size of batches."""
        before = self._statistics()
        yield
        for each in statistics_since(self._statistics(), before):
            if each.success.count:
                found[each.name] = {
                    "queue_ms": round(each.queue.mean_ms, 3),
                    "compute_ms": round(each.mean_compute_ms, 3),
                    "batch": round(each.mean_batch_size, 2),
                }

    def _statistics(self) -> tuple[ModelStatistics, ...]:
        """Return the counters; none if they cannot be reached, as in AWS."""
        if self.endpoint is None:
            return ()
        try:
            servers = self.endpoint.statistics()
        except LocalEndpointError:
            return ()
        return tuple(each for variants in servers.values() for models in variants.values() for each in models)


@dataclass
class CandidateServers(ABC):
    """Starts candidates and stops them; a subclass knows where they run.

    Args:
        repository: The repository whose copies run.
        requests: The requests of the search, which also warm a candidate up.
        options: How the search is run.
        listener: Gets what takes minutes.
        starts: Number of copies so far.
        waited_seconds: Waiting for endpoints of several candidates, which is not part of the budget.
    """

    repository: TunedRepository
    requests: Sequence[Invocation]
    options: TuneOptions
    listener: TuneListener
    starts: int = field(default=0, init=False)
    waited_seconds: float = field(default=0.0, init=False)
    _kept: Sequence[Candidate] = field(default=(), init=False)
    _running: dict[Candidate, RunningCandidate] = field(default_factory=dict, init=False)

    def get(self, candidate: Candidate) -> RunningCandidate:
        """Return a candidate, which is started if it does not run.

        Raises:
            CandidateRefusedError: the server does not start with it, or its first requests fail.
            SearchStoppedError: it cannot be started for a reason that is not the candidate.
        """
        if candidate not in self._running:
            self._start(candidate)
        return self._running[candidate]

    @abstractmethod
    def keep(self, candidates: Sequence[Candidate]) -> None:
        """Let these candidates run at the same time from now on, where that is possible."""

    @abstractmethod
    def close(self) -> None:
        """Stop all candidates."""

    @abstractmethod
    def _start(self, candidate: Candidate) -> None:
        """Start a candidate, and stop those that cannot run beside it."""

    @property
    def folder(self) -> Path:
        """Folder of the copies, which exists as long as candidates run."""
        return self.options.output / "running"

    def _copy(self, candidate: Candidate) -> Path:
        """Copy the repository with the settings of a candidate."""
        self.starts += 1
        copy = self.folder / f"{self.starts}"
        shutil.rmtree(copy, ignore_errors=True)  # of a run that was killed
        self.repository.copy(candidate, copy)
        return copy

    def _add(self, candidate: Candidate, running: RunningCandidate) -> None:
        """Add a candidate to those that run, and warm it up."""
        self._running[candidate] = running
        try:
            self._warm_up(candidate, running)
        except InvocationError as error:
            raise self._explain(error) from None

    def _warm_up(self, candidate: Candidate, running: RunningCandidate) -> None:
        """Send a group of requests for each batch size: backends prepare a shape when they first see it."""
        largest = max(settings.batch for _, settings in candidate.models)
        requests = running.requests
        for size in (2**power for power in range(largest.bit_length())):
            group = [requests[number % len(requests)] for number in range(size)]
            list(map_concurrently(running.transport.invoke, group, max_concurrency=min(size, 64)))

    def _explain(self, error: InvocationError) -> ConstructsTritonError:
        """Return what a first request that failed means: the server does not run the candidate."""
        return CandidateRefusedError(describe_refusal(error))


def describe_refusal(error: Exception) -> str:
    """Return an error in one line that is not long."""
    text = " ".join(str(error).split())
    return text if len(text) <= _REASON_LENGTH else f"{text[:_REASON_LENGTH]}…"
