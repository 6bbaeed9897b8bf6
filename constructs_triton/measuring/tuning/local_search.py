"""``tune``: searches the configuration of a model that holds the highest rate within a latency limit."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Unpack

from blake3 import blake3

from constructs_triton.errors import ConstructsTritonError, LocalEndpointError
from constructs_triton.local.options import LocalRunOptions
from constructs_triton.measuring.load_test.step import Limits
from constructs_triton.measuring.tuning.axes import search
from constructs_triton.measuring.tuning.bench import Bench, interruptions
from constructs_triton.measuring.tuning.candidates import Candidate
from constructs_triton.measuring.tuning.journal import Journal
from constructs_triton.measuring.tuning.listener import TuneListener
from constructs_triton.measuring.tuning.outcome import TuneResult, choose, compare_finalists, find_notes
from constructs_triton.measuring.tuning.preparation import (
    Inputs,
    Machine,
    TuneOptions,
    describe_server,
    draw_requests,
    encode_inputs,
    find_only_model,
    find_spaces,
    find_stand_in,
)
from constructs_triton.measuring.tuning.racing import (
    CandidateRefusedError,
    Race,
    RaceSettings,
    SearchStoppedError,
)
from constructs_triton.measuring.tuning.report import Facts
from constructs_triton.measuring.tuning.results import write_tuning
from constructs_triton.measuring.tuning.rounds import Round, choose_finalists, measure_rounds
from constructs_triton.measuring.tuning.schedule import Schedule
from constructs_triton.measuring.tuning.servers import CandidateServers
from constructs_triton.model_config.target import Target
from constructs_triton.model_repository import ModelRepository
from constructs_triton_client import Invocation

__all__ = ["BatchingFaultError", "TuneOptions", "Tuning", "tune"]

JOURNAL = "journal.jsonl"


def tune(
    repository: str | Path,
    *,
    latency_ms: float,
    model: str | None = None,
    requests: Sequence[Inputs | Invocation] | None = None,
    percentile: float = 95,
    budget_minutes: float = 20,
    output: str | Path = "tuned",
    step_seconds: float = 4.0,
    parameters: Mapping[str, Sequence[str]] | None = None,
    calls: Mapping[str, Sequence[str]] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    accept_stand_in: bool = False,
    compares_outputs: bool = True,
    seed: int = 0,
    listener: TuneListener | None = None,
    **local: Unpack[LocalRunOptions],
) -> TuneResult:
    """Search the configuration of a model that holds the highest rate, on this machine.

    Starts the model with one configuration after the other, sends the same requests to each, and compares the
    best with the present configuration in turns. Writes ``report.md``, ``report.svg``, ``benchmark.csv`` and
    the ``config.pbtxt`` of each model that changes to ``output``. The repository is not changed. After an
    interruption the next call continues with the results in ``output``.

    Args:
        repository: The model repository.
        latency_ms: Highest latency in milliseconds, counted from when a request was due.
        model: The model to serve. Default: the only top-level model.
        requests: Inputs by name for each request, with the batch dimension. Default: random values.
        percentile: Percentile of the latency that must be within the limit, 50 to 99.
        budget_minutes: Time after which the search ends.
        output: Folder of the results, which is created.
        step_seconds: Length of a step; one that confirms a rate is twice as long.
        parameters: Values to try of parameters of the backend, such as ``{"threads": ["1", "2"]}``.
        calls: Models that a Python model calls and whose names its source does not contain as strings.
        shapes: Dims of inputs for random values, without the batch dimension. Default: 1 for each variable
            size.
        accept_stand_in: Whether to measure a framework's Python package in place of a backend that is not
            installed.
        compares_outputs: Whether a candidate must have the outputs of the present configuration.
        seed: Start of the random arrivals and values.
        listener: Gets each result, for a display.
        **local: Options of :meth:`LocalEndpoint.from_repository`, such as ``engine`` and ``images``.

    Raises:
        InvalidValueError: an argument is out of range, or the model cannot be tuned.
        LocalEndpointError: the present configuration does not start, or its outputs vary.
        MissingDependencyError: a package that is needed is not installed.
        RepositoryError: a configuration has errors.
    """
    options = TuneOptions(
        latency_ms=latency_ms,
        percentile=percentile,
        budget_minutes=budget_minutes,
        output=Path(output),
        step_seconds=step_seconds,
        parameters=parameters,
        calls=calls,
        shapes=shapes,
        accept_stand_in=accept_stand_in,
        compares_outputs=compares_outputs,
        seed=seed,
    )
    return Tuning(Path(repository), model, options, requests, local).run(listener)


class BatchingFaultError(LocalEndpointError):
    """The present configuration has other outputs for requests that arrive together than for each alone."""


class Tuning:
    """A search that is prepared: nothing is measured or written before ``run``.

    Args:
        repository: The model repository.
        model: The model to serve. Default: the only top-level model.
        options: How the search is run.
        requests: Inputs or encoded requests. Default: random values.
        local: Options of the local runs.

    Raises:
        InvalidValueError: an argument is out of range, or the model cannot be tuned.
        RepositoryError: a configuration has errors.
    """

    def __init__(
        self,
        repository: Path,
        model: str | None,
        options: TuneOptions,
        requests: Sequence[Inputs | Invocation] | None = None,
        local: LocalRunOptions | None = None,
    ) -> None:
        self.options = options
        self.local: LocalRunOptions = local or {}
        self.limits = Limits(latency_ms=options.latency_ms, percentile=options.percentile)
        self.machine = self._inspect()
        found = ModelRepository.from_directory(repository, calls=options.calls)
        # The server checks the files; without a readable configuration there is nothing to search.
        configs = Target(local_files=False)
        found.check(configs, is_packed=False, front_end=False).raise_for_errors()
        self.model = model or find_only_model(found)
        self.repository, self.spaces = find_spaces(found, self.model, options, self.machine)
        self.stand_in = self._find_stand_in()
        self.has_own_requests = requests is not None
        drawn = requests or draw_requests(repository, self.model, options)
        self.requests = [encode_inputs(each) for each in drawn]
        settings = RaceSettings(options.step_seconds, 2 * options.step_seconds)
        self.schedule = Schedule(60 * options.budget_minutes, settings, self.start_seconds)
        self._started = 0.0

    @property
    def count(self) -> int:
        """How many candidates are tried at most."""
        return self.schedule.count(self.repository.present, self.spaces)

    def _inputs(self) -> dict[str, str]:
        """What the results depend on."""
        bodies = blake3(b"\n".join(request.body for request in self.requests)).hexdigest()[:16]
        return {
            "model": f"{self.model} {self.repository.digest()}",
            "data": bodies,
            "server": self.server,
            "machine": str(self.machine),
            "limit": f"{self.limits.latency_ms:g} ms p{self.limits.percentile:g}",
        }

    # --- the place ----------------------------------------------------------------------------------------

    @property
    def server(self) -> str:
        """Which Triton server runs the candidates."""
        return describe_server(self.local)

    @property
    def start_seconds(self) -> float:
        """What the start of a candidate takes."""
        return 3.0

    def _inspect(self) -> Machine:
        return Machine.inspect()

    def _find_stand_in(self) -> str:
        return find_stand_in(self.repository, self.options, self.local)

    def _make_servers(self, folder: Path, watcher: TuneListener) -> CandidateServers:  # noqa: ARG002
        return CandidateServers(self.repository, folder, self.requests, self.local, self.options.calls)

    def _finalists(self, race: Race) -> list[Candidate]:
        return choose_finalists(race)

    def _keep(self, finalists: Sequence[Candidate]) -> Sequence[Candidate]:
        """Models on GPUs would share the memory, so they run in turns."""
        return () if self.machine.gpus else finalists

    # --- the run ------------------------------------------------------------------------------------------

    def run(self, listener: TuneListener | None = None) -> TuneResult:
        """Search, compare and write the results, also after Ctrl-C.

        Raises:
            InvalidValueError: the folder of the results belongs to a search with other inputs.
            LocalEndpointError: the present configuration does not start.
        """
        watcher = listener or TuneListener()
        self._started = time.monotonic()
        output = self.options.output
        output.mkdir(parents=True, exist_ok=True)
        journal = Journal(output / JOURNAL, self._inputs())
        watcher.on_begin(len(journal))
        with interruptions() as stopped, self._bench(journal, watcher, stopped) as bench:
            result = self._search_and_compare(bench, watcher)
        write_tuning(result, self.repository, self.facts)
        return result

    @property
    def facts(self) -> Facts:
        """What the search is measured with."""
        kind = (
            "requests of your own" if self.has_own_requests else f"random requests (seed {self.options.seed})"
        )
        data = f"{len(self.requests)} {kind}"
        return Facts(str(self.machine), self.server, data, not self.machine.gpus)

    @contextmanager
    def _bench(self, journal: Journal, watcher: TuneListener, stopped: list[int]) -> Iterator[Bench]:
        folder = self.options.output / "running"
        servers = self._make_servers(folder, watcher)
        try:
            yield Bench(
                servers,
                journal,
                self.requests,
                self.limits,
                self.repository.present,
                self.options.compares_outputs,
                lambda: bool(stopped),
                self._started + self.schedule.search_seconds,
                self.options.seed,
                watcher.show if watcher.shows_steps else None,
            )
        finally:
            servers.close()
            journal.close()
            with suppress(OSError):
                folder.rmdir()

    def _search_and_compare(self, bench: Bench, watcher: TuneListener) -> TuneResult:
        race = Race(bench.measure, self.repository.present, self.schedule.settings, watcher.on_trial)
        rounds: list[Round] = []
        notes: list[str] = []
        is_interrupted = False
        try:
            self._search(race, bench, notes)
            self._compare(race, bench, watcher, rounds)
        except (SearchStoppedError, CandidateRefusedError) as error:
            notes.append(f"The comparison ended early: {error}.")
        except KeyboardInterrupt:
            is_interrupted = True
        comparisons = compare_finalists(race.present, rounds)
        return TuneResult(
            model=self.model,
            limits=self.limits,
            present=race.present,
            trials=race.trials,
            best=choose(race.present, race.best, comparisons),
            rounds=rounds,
            comparisons=comparisons,
            steps=bench.steps,
            notes=[*find_notes(race.present, race.trials, rounds), *race.notes, *notes],
            stand_in=self.stand_in,
            is_interrupted=is_interrupted,
            folder=self.options.output,
        )

    def _search(self, race: Race, bench: Bench, notes: list[str]) -> None:
        try:
            race.begin(bench.measure_alone() / 2)
            search(race, self.spaces, lambda: self._by_queue(bench, race))
        except CandidateRefusedError as error:
            raise _present_fails(self.model, error) from None
        except SearchStoppedError as error:
            notes.append(f"The search ended early: {error}.")

    def _by_queue(self, bench: Bench, race: Race) -> list[str]:
        """Return the models in the order of their queues in the last steps of the best candidate."""
        names = list(self.spaces)
        steps = [step.models for step in bench.steps if step.candidate == race.best and step.models]

        def queue(name: str) -> float:
            return max((each.get(name, {}).get("queue_ms", 0.0) for each in steps), default=0.0)

        return sorted(names, key=queue, reverse=True)

    def _compare(self, race: Race, bench: Bench, watcher: TuneListener, rounds: list[Round]) -> None:
        finalists = self._finalists(race)
        if race.best == race.present or not race.trials[race.present].rate:
            return
        bench.deadline = end = self._started + self.schedule.budget_seconds
        bench.keep = self._keep(finalists)
        # Kept, because a run that continues this comparison has more time left.
        count, seconds = bench.journal.recall_once(
            f"rounds of {', '.join(map(str, finalists))}",
            lambda: self.schedule.rounds(
                len(finalists), end + bench.servers.waited_seconds - time.monotonic()
            ),
        )
        watcher.on_compare(finalists, count)
        for found in measure_rounds(
            bench.measure,
            finalists,
            {each: race.trials[each].rate for each in finalists},
            latency_ms=self.limits.latency_ms,
            seconds=seconds,
            rounds=count,
            seed=self.options.seed,
            report=watcher.on_round,
        ):
            rounds.append(found)


def _present_fails(model: str, error: CandidateRefusedError) -> ConstructsTritonError:
    if error.is_wrong:
        return BatchingFaultError(
            f"{model}: with its present configuration, requests that arrive together get other outputs than "
            f"alone ({error}); fix the model, or set compares_outputs (--no-output-check) if they are random"
        )
    return LocalEndpointError(f"{model}: its present configuration does not run: {error}")
