"""A search that is prepared: everything that it needs, before anything is measured or written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from blake3 import blake3

from constructs_triton_client import Invocation
from constructs_triton_core.declared_values import complete, part_of
from constructs_triton_tools.local.options import LocalRunOptions
from constructs_triton_tools.measuring.load_test.step import Limits
from constructs_triton_tools.measuring.tuning.axes import count_candidates
from constructs_triton_tools.measuring.tuning.candidates import SearchSpace
from constructs_triton_tools.measuring.tuning.options import TuneOptions
from constructs_triton_tools.measuring.tuning.outcome import Facts
from constructs_triton_tools.measuring.tuning.preparation import (
    Inputs,
    Machine,
    check_backends,
    describe_server,
    draw_requests,
    encode_inputs,
    find_only_model,
    find_spaces,
    read_machine,
)
from constructs_triton_tools.measuring.tuning.repositories import TunedRepository
from constructs_triton_tools.measuring.tuning.schedule import Schedule
from triton_model_check.model_config.target import Target
from triton_model_check.model_repository import ModelRepository


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedSearch:
    """What a search measures, with what, and for how long.

    Args:
        model: The model that is served.
        repository: It, with its present settings and all models that it needs.
        spaces: The settings to try, of each model.
        requests: The requests that every candidate gets.
        limits: When a rate is held.
        schedule: The time of the search, and of the comparison after it.
        facts: What the search is measured with, in words.
        folder: Folder of the results.
        local: How the candidates are run.
        machine: The machine that runs them.
        stand_in: Sentence about the stand-in that replaces a backend; empty if there is none.
        seed: Seed of the random arrivals.
        compares_outputs: Whether a candidate with other outputs is refused.
    """

    model: str
    repository: TunedRepository
    spaces: Mapping[str, SearchSpace]
    requests: Sequence[Invocation]
    limits: Limits
    schedule: Schedule
    facts: Facts
    folder: Path
    local: LocalRunOptions
    machine: Machine
    stand_in: str
    seed: int
    compares_outputs: bool

    @property
    def count(self) -> int:
        """The highest number of candidates that are tried."""
        return count_candidates(self.repository.present, self.spaces)

    def inputs(self) -> dict[str, str]:
        """Return what the results depend on: a result of other inputs is not used again."""
        bodies = blake3(b"\n".join(request.body for request in self.requests)).hexdigest()[:16]
        return {
            "model": f"{self.model} {self.repository.digest()}",
            "data": bodies,
            "server": self.facts.server,
            "machine": self.facts.machine,
            "limit": f"{self.limits.latency_ms:g} ms p{self.limits.percentile:g}",
        }


def prepare_search(
    directory: Path,
    model: str | None,
    given: TuneOptions,
    requests: Sequence[Inputs | Invocation] | None = None,
) -> PreparedSearch:
    """Read the models and check that they can be searched; the parameters are those of ``tune``.

    Raises:
        InvalidValueError: an option is out of range, or the model cannot be tuned.
        RepositoryError: a configuration has errors.
    """
    options = complete("tune()", given, TuneOptions)
    local = part_of(options, LocalRunOptions)
    machine = read_machine()
    limits = Limits(latency_ms=options["latency_ms"], percentile=options["percentile"])
    schedule = Schedule(60 * options["budget_minutes"], options["step_seconds"])

    found = _readable_models(directory, options)
    name = model or find_only_model(found)
    repository, spaces = find_spaces(
        found,
        name,
        machine,
        latency_ms=limits.latency_ms,
        parameters=options.get("parameters", {}),
    )
    stand_in = check_backends(repository, local, accept_stand_in=options["accept_stand_in"])

    drawn = requests or draw_requests(found, name, options["seed"], options.get("shapes", {}))
    encoded = [encode_inputs(request) for request in drawn]
    kind = "requests of your own" if requests else f"random requests (seed {options['seed']})"

    schedule.check_budget()
    return PreparedSearch(
        model=name,
        repository=repository,
        spaces=spaces,
        requests=encoded,
        limits=limits,
        schedule=schedule,
        facts=Facts(
            machine=str(machine),
            server=describe_server(local),
            data=f"{len(encoded)} {kind}",
            shares_cpus=not machine.gpus,
        ),
        folder=Path(options["output"]),
        local=local,
        machine=machine,
        stand_in=stand_in,
        seed=options["seed"],
        compares_outputs=options["compares_outputs"],
    )


def _readable_models(directory: Path, options: TuneOptions) -> ModelRepository:
    """Return the models, if their configurations are right.

    The server checks the files. Without a readable configuration there is nothing to search.
    """
    found = ModelRepository.from_directory(directory, calls=options.get("calls"))
    configs = Target("server", local_files=False)
    found.check(configs, is_packed=False).raise_for_errors()
    return found
