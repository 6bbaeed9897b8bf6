"""``compare_repositories``: two configurations of a model in one run, in turns, on this machine."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

from constructs_triton_client import Invocation
from constructs_triton_core.errors import InvalidValueError, LocalEndpointError
from constructs_triton_tools.local.options import LocalRunOptions
from constructs_triton_tools.measuring.tuning.bench import Bench
from constructs_triton_tools.measuring.tuning.candidates import Candidate, ModelSettings
from constructs_triton_tools.measuring.tuning.comparison import Comparison, compare_rounds
from constructs_triton_tools.measuring.tuning.journal import Journal
from constructs_triton_tools.measuring.tuning.machine import check_backends, read_machine
from constructs_triton_tools.measuring.tuning.preparation import (
    Inputs,
    TuneOptions,
    draw_requests,
    encode_inputs,
    find_only_model,
)
from constructs_triton_tools.measuring.tuning.racing import CandidateRefusedError, Race, SearchStoppedError
from constructs_triton_tools.measuring.tuning.repositories import TunedRepository
from constructs_triton_tools.measuring.tuning.rounds import measure_rounds
from constructs_triton_tools.measuring.tuning.servers import CandidateServers
from triton_model_check.artifacts.environments.placement import with_environments
from triton_model_check.model_repository import ModelRepository

__all__ = ["compare_repositories"]

_FIRST, _SECOND = Candidate.of(first=ModelSettings()), Candidate.of(second=ModelSettings())


@dataclass(frozen=True)
class _TwoRepositories(TunedRepository):
    """Two repositories in the place of one whose settings change."""

    second: TunedRepository

    def copy(self, candidate: Candidate, target: Path) -> None:
        """Copy the first or the second repository."""
        if candidate == _SECOND:
            self.second.copy(_SECOND, target)
        else:
            super().copy(candidate, target)


def compare_repositories(
    first: str | Path,
    second: str | Path,
    *,
    latency_ms: float,
    model: str | None = None,
    requests: Sequence[Inputs | Invocation] | None = None,
    percentile: float = 95,
    rounds: int = 5,
    step_seconds: float = 8.0,
    accept_stand_in: bool = False,
    compares_outputs: bool = True,
    seed: int = 0,
    **local: Unpack[LocalRunOptions],
) -> Comparison:
    """Compare the rates that a model holds in two repositories, in turns, on this machine.

    The repositories have a model of the same name, for example with another ``config.pbtxt`` or other code.

    Args:
        first: Repository with the present configuration.
        second: Repository with the other configuration.
        latency_ms: Highest latency in milliseconds, counted from when a request was due.
        model: The model to serve. Default: the only top-level model.
        requests: Inputs by name for each request, with the batch dimension. Default: random values.
        percentile: Percentile of the latency that must be within the limit, 50 to 99.
        rounds: Number of rounds, at least 2. Each measures both configurations, in random order.
        step_seconds: Length of a step; a round has about six.
        accept_stand_in: Whether to measure a framework's Python package in place of a backend that is not
            installed.
        compares_outputs: Whether the second must have the outputs of the first.
        seed: Start of the random arrivals and values.
        **local: Options of :meth:`LocalEndpoint.from_repository`, such as ``engine`` and ``images``.

    Returns:
        How many times the rate of the first the second has, with an interval; its ``verdict`` is "faster",
        "slower" or "not distinguishable".

    Raises:
        InvalidValueError: an argument is out of range, or a configuration holds no rate within the limit.
        LocalEndpointError: a model does not start, its outputs differ, or the machine is too busy.
    """
    if rounds < 2:
        raise InvalidValueError(f"rounds: must be at least 2, got {rounds}; use 5")
    found, second_found = (ModelRepository.from_directory(each) for each in (first, second))
    name = model or find_only_model(found)
    second_found.model(name)
    first_placed, second_placed = map(with_environments, (found, second_found))
    repository = _TwoRepositories(first_placed, name, _FIRST, TunedRepository(second_placed, name, _SECOND))
    with tempfile.TemporaryDirectory() as folder:
        options = TuneOptions(
            latency_ms=latency_ms,
            percentile=percentile,
            output=Path(folder),
            step_seconds=step_seconds,
            accept_stand_in=accept_stand_in,
            compares_outputs=compares_outputs,
            seed=seed,
        )
        for each in (repository, repository.second):
            check_backends(each, local, accept_stand_in=accept_stand_in)
        drawn = requests or draw_requests(Path(first), name, options)
        invocations = [encode_inputs(each) for each in drawn]
        with (
            closing(Journal(options.output / "journal.jsonl", {})) as journal,
            closing(CandidateServers(repository, invocations, options, local, read_machine())) as servers,
        ):
            servers.keep((_FIRST, _SECOND))
            bench = Bench(servers, journal)
            try:
                return _compare(bench, rounds)
            except (CandidateRefusedError, SearchStoppedError) as error:
                raise LocalEndpointError(f"{name}: {error}") from None


def _compare(bench: Bench, rounds: int) -> Comparison:
    options, rate, estimates = bench.options, bench.measure_alone() / 2, {}
    for each in (_FIRST, _SECOND):
        estimates[each] = rate = _estimate(bench, each, rate)
    found = list(
        measure_rounds(
            bench.measure,
            estimates,
            latency_ms=options.latency_ms,
            seconds=options.step_seconds,
            rounds=rounds,
            seed=options.seed,
        )
    )
    return compare_rounds([each[_FIRST] for each in found], [each[_SECOND] for each in found])


def _estimate(bench: Bench, candidate: Candidate, first_rate: float) -> float:
    race = Race(bench.measure, candidate, bench.options.step_seconds / 2)
    race.begin(first_rate)
    rate = race.trials[candidate].rate
    if not rate:
        which = "first" if candidate == _FIRST else "second"
        raise InvalidValueError(
            f"latency_ms: the {which} configuration holds no rate within the limit, got "
            f"{bench.options.latency_ms:g}; raise it"
        )
    return rate
