"""``compare_repositories``: two configurations of a model in one run, in turns, on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

from constructs_triton_client import Invocation
from constructs_triton_core.declared_values import complete, part_of, takes
from constructs_triton_core.errors import InvalidValueError, LocalEndpointError
from constructs_triton_core.facts.limits import RangeLimit
from constructs_triton_core.limit_checks import check_range
from constructs_triton_core.untrusted.drafts import temporary_folder
from constructs_triton_tools.local.options import LocalRunOptions
from constructs_triton_tools.measuring.load_test.step import Limits
from constructs_triton_tools.measuring.tuning.bench import Bench
from constructs_triton_tools.measuring.tuning.candidates import Candidate, ModelSettings
from constructs_triton_tools.measuring.tuning.comparison import Comparison, compare_rounds
from constructs_triton_tools.measuring.tuning.journal import Journal
from constructs_triton_tools.measuring.tuning.options import ComparisonOptions
from constructs_triton_tools.measuring.tuning.preparation import (
    Inputs,
    check_backends,
    draw_requests,
    encode_inputs,
    find_only_model,
    read_machine,
)
from constructs_triton_tools.measuring.tuning.racing import (
    CandidateRefusedError,
    Race,
    SearchStoppedError,
)
from constructs_triton_tools.measuring.tuning.repositories import TunedRepository
from constructs_triton_tools.measuring.tuning.rounds import measure_rounds
from constructs_triton_tools.measuring.tuning.servers import CandidateServers
from triton_model_check.artifacts.environments.placement import as_packed
from triton_model_check.model_repository import ModelRepository

_ROUNDS = RangeLimit(2, None)
_FIRST = Candidate.of(first=ModelSettings())
_SECOND = Candidate.of(second=ModelSettings())


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


@takes(ComparisonOptions)
def compare_repositories(
    first: str | Path,
    second: str | Path,
    *,
    model: str | None = None,
    requests: Sequence[Inputs | Invocation] | None = None,
    rounds: int = 5,
    **options: Unpack[ComparisonOptions],
) -> Comparison:
    """Compare the rates that a model holds in two repositories, in turns, on this machine.

    The repositories have a model of the same name, for example with another ``config.pbtxt`` or
    other code.

    Returns:
        How many times the rate of the first the second has, with an interval; its ``verdict`` is
        "faster", "slower" or "not distinguishable".

    Raises:
        InvalidValueError: an argument is out of range, or a configuration holds no rate within the
            limit.
        LocalEndpointError: a model does not start, its outputs differ, or the machine is too busy.

    Args:
        first: Repository with the present configuration.
        second: Repository with the other configuration.
        model: The model to serve. Default: the only top-level model.
        requests: Inputs by name for each request, with the batch dimension. Default: random values.
        rounds: Number of rounds, at least 2. Each measures both configurations, in random order.
    """
    chosen = complete("compare_repositories()", options, ComparisonOptions)
    local = part_of(chosen, LocalRunOptions)
    check_range("rounds", rounds, _ROUNDS)

    first_repository = ModelRepository.from_directory(first)
    second_repository = ModelRepository.from_directory(second)
    name = model or find_only_model(first_repository)
    repository = _both(first_repository, second_repository, name)
    for placed in (repository, repository.second):
        check_backends(placed, local, accept_stand_in=chosen["accept_stand_in"])
    drawn = requests or draw_requests(first_repository, name, chosen["seed"], {})
    invocations = [encode_inputs(request) for request in drawn]

    with _bench(repository, invocations, local, chosen) as bench:
        try:
            return _compare(bench, rounds, chosen["step_seconds"])
        except (CandidateRefusedError, SearchStoppedError) as error:
            raise LocalEndpointError(f"{name}: {error}") from None


def _both(first: ModelRepository, second: ModelRepository, model: str) -> _TwoRepositories:
    """Return both repositories with their Python environments.

    Raises:
        InvalidValueError: the second does not have the model.
    """
    second.model(model)
    first_placed = as_packed(first)
    second_placed = as_packed(second)
    return _TwoRepositories(
        first_placed, model, _FIRST, TunedRepository(second_placed, model, _SECOND)
    )


@contextmanager
def _bench(
    repository: _TwoRepositories,
    invocations: Sequence[Invocation],
    local: LocalRunOptions,
    options: ComparisonOptions,
) -> Iterator[Bench]:
    """Start what measures both repositories; it ends with the context."""
    limits = Limits(latency_ms=options["latency_ms"], percentile=options["percentile"])
    with temporary_folder() as folder:
        servers = CandidateServers(
            repository, invocations, folder / "running", local, read_machine()
        )
        with closing(Journal(folder / "journal.jsonl", {})) as journal, closing(servers):
            servers.keep((_FIRST, _SECOND))
            yield Bench(
                servers,
                journal,
                limits,
                seed=options["seed"],
                compares_outputs=options["compares_outputs"],
            )


def _compare(bench: Bench, rounds: int, step_seconds: float) -> Comparison:
    """Estimate the rate of each repository, then measure both near it in each round."""
    # The search begins at half of the rate of one caller who waits for each answer.
    first_estimate = _estimate(bench, _FIRST, bench.measure_alone() / 2, step_seconds / 2)
    second_estimate = _estimate(bench, _SECOND, first_estimate, step_seconds / 2)
    measured = list(
        measure_rounds(
            bench.measure,
            {_FIRST: first_estimate, _SECOND: second_estimate},
            latency_ms=bench.limits.latency_ms,
            seconds=step_seconds,
            rounds=rounds,
            seed=bench.seed,
        )
    )
    first_rates = [rates[_FIRST] for rates in measured]
    second_rates = [rates[_SECOND] for rates in measured]
    return compare_rounds(first_rates, second_rates)


def _estimate(bench: Bench, candidate: Candidate, first_rate: float, step_seconds: float) -> float:
    """Return the rate that a repository holds in a short search.

    Raises:
        InvalidValueError: it holds none.
    """
    race = Race(bench.measure, candidate, step_seconds)
    race.begin(first_rate)
    rate = race.trials[candidate].rate
    if not rate:
        which = "first" if candidate == _FIRST else "second"
        raise InvalidValueError(
            f"latency_ms: the {which} configuration holds no rate within the limit, got "
            f"{bench.limits.latency_ms:g}; raise it"
        )
    return rate
