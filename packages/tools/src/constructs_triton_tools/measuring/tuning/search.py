"""``tune``: searches the configuration of a model that holds the highest rate
within a latency limit.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Unpack

from constructs_triton_client import Invocation
from constructs_triton_core.declared_values import takes
from constructs_triton_core.errors import ConstructsTritonError, LocalEndpointError
from constructs_triton_tools.measuring.tuning.axes import search
from constructs_triton_tools.measuring.tuning.bench import Bench
from constructs_triton_tools.measuring.tuning.interruptions import noted_interruptions
from constructs_triton_tools.measuring.tuning.journal import Journal
from constructs_triton_tools.measuring.tuning.options import TuneOptions
from constructs_triton_tools.measuring.tuning.outcome import (
    TuneResult,
    choose,
    compare_finalists,
    find_notes,
)
from constructs_triton_tools.measuring.tuning.preparation import Inputs
from constructs_triton_tools.measuring.tuning.prepared_search import (
    PreparedSearch,
    prepare_search,
)
from constructs_triton_tools.measuring.tuning.racing import (
    CandidateRefusedError,
    Race,
    SearchStoppedError,
    TuneListener,
)
from constructs_triton_tools.measuring.tuning.results import write_tuning
from constructs_triton_tools.measuring.tuning.rounds import (
    Round,
    choose_finalists,
    measure_rounds,
)
from constructs_triton_tools.measuring.tuning.servers import CandidateServers


@takes(TuneOptions)
def tune(
    repository: str | Path,
    *,
    model: str | None = None,
    requests: Sequence[Inputs | Invocation] | None = None,
    listener: TuneListener | None = None,
    **options: Unpack[TuneOptions],
) -> TuneResult:
    """Search the configuration of a model that holds the highest rate, on this machine.

    Starts the model with one configuration after the other, sends the same requests to each, and
    compares the best with the present configuration in turns. Writes ``report.md``, ``report.svg``,
    ``benchmark.csv`` and the ``config.pbtxt`` of each model that changes to ``output``. The
    repository is not changed. After an interruption the next call continues with the results in
    ``output``.

    Raises:
        InvalidValueError: an argument is out of range, or the model cannot be tuned.
        LocalEndpointError: the present configuration does not start, or its outputs vary.
        MissingDependencyError: a package that is needed is not installed.
        RepositoryError: a configuration has errors.

    Args:
        repository: The model repository.
        model: The model to serve. Default: the only top-level model.
        requests: Inputs by name for each request, with the batch dimension. Default: random values.
        listener: Gets each result, for a display.
    """
    prepared = prepare_search(Path(repository), model, options, requests)
    return run_search(prepared, listener)


class BatchingFaultError(LocalEndpointError):
    """The present configuration has other outputs for requests that arrive
    together than for each alone.
    """


def run_search(prepared: PreparedSearch, listener: TuneListener | None = None) -> TuneResult:
    """Search, compare and write the results.

    The candidates are stopped, also after Ctrl-C and SIGTERM.

    Raises:
        BatchingFaultError: requests that arrive together get other outputs than alone.
        LocalEndpointError: the present configuration does not start.
    """
    watcher = listener or TuneListener()
    started = time.monotonic()
    prepared.folder.mkdir(parents=True, exist_ok=True)
    servers = CandidateServers(
        prepared.repository,
        prepared.requests,
        prepared.folder / "running",
        prepared.local,
        prepared.machine,
    )
    with (
        noted_interruptions() as stopped,
        closing(Journal(prepared.folder / "journal.jsonl", prepared.inputs())) as journal,
        closing(servers),
    ):
        watcher.on_begin(len(journal))
        bench = Bench(
            servers,
            journal,
            prepared.limits,
            seed=prepared.seed,
            compares_outputs=prepared.compares_outputs,
            is_stopped=lambda: bool(stopped),
            deadline=started + prepared.schedule.search_seconds,
            show=watcher.show if watcher.shows_steps else None,
        )
        ends = started + prepared.schedule.budget_seconds
        result = _Search(prepared, bench, watcher, ends).run()
        write_tuning(result, prepared.repository)
    return result


@dataclass(slots=True)
class _Search:
    """A search that runs, and what it has found so far.

    ``ends`` is when the comparison must end, on the clock of ``time.monotonic``.
    """

    prepared: PreparedSearch
    bench: Bench
    watcher: TuneListener
    ends: float
    race: Race = field(init=False)
    rounds: list[Round] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    is_interrupted: bool = False

    def __post_init__(self) -> None:
        self.race = Race(
            self.bench.measure,
            self.prepared.repository.present,
            self.prepared.schedule.step_seconds,
            self.watcher.on_trial,
        )

    def run(self) -> TuneResult:
        """Search and compare; an early end leaves a note, and a result of what was measured."""
        try:
            self._search()
            self._compare()
        except (SearchStoppedError, CandidateRefusedError) as error:
            self.notes.append(f"The comparison ended early: {error}.")
        except KeyboardInterrupt:
            self.is_interrupted = True
        return self._result()

    def _search(self) -> None:
        try:
            # Half the rate of one caller, who waits for each answer, is probably held.
            self.race.begin(self.bench.measure_alone() / 2)
            search(self.race, self.prepared.spaces, self._by_queue)
        except CandidateRefusedError as error:
            raise _present_fails(self.prepared.model, error) from None
        except SearchStoppedError as error:
            self.notes.append(f"The search ended early: {error}.")

    def _by_queue(self) -> list[str]:
        """Return the models, the longest queue of the best candidate's steps first."""
        steps = [step.models for step in self.bench.steps if step.candidate == self.race.best]

        def queue(name: str) -> float:
            return max((models.get(name, {}).get("queue_ms", 0.0) for models in steps), default=0.0)

        return sorted(self.prepared.spaces, key=queue, reverse=True)

    def _compare(self) -> None:
        race = self.race
        bench = self.bench
        if race.best == race.present or not race.trials[race.present].rate:
            return

        finalists = choose_finalists(race)
        bench.deadline = self.ends
        bench.servers.keep(finalists)
        # Kept, because a run that continues this comparison has more time left.
        count, seconds = bench.journal.recall_once(
            f"rounds of {', '.join(map(str, finalists))}",
            lambda: self.prepared.schedule.rounds(len(finalists), bench.seconds_left),
        )

        self.watcher.on_compare(finalists, count)
        for rates in measure_rounds(
            bench.measure,
            {finalist: race.trials[finalist].rate for finalist in finalists},
            latency_ms=self.prepared.limits.latency_ms,
            seconds=seconds,
            rounds=count,
            seed=bench.seed,
            report=self.watcher.on_round,
        ):
            # Added one by one, so that an interruption keeps the complete rounds.
            self.rounds.append(rates)

    def _result(self) -> TuneResult:
        race = self.race
        comparisons = compare_finalists(race.present, self.rounds)
        return TuneResult(
            model=self.prepared.model,
            limits=self.prepared.limits,
            present=race.present,
            trials=race.trials,
            best=choose(race.present, race.best, comparisons),
            facts=self.prepared.facts,
            rounds=self.rounds,
            comparisons=comparisons,
            steps=self.bench.steps,
            notes=[*find_notes(race.present, race.trials, self.rounds), *race.notes, *self.notes],
            stand_in=self.prepared.stand_in,
            is_interrupted=self.is_interrupted,
            folder=self.prepared.folder,
        )


def _present_fails(model: str, error: CandidateRefusedError) -> ConstructsTritonError:
    if error.is_wrong:
        return BatchingFaultError(
            f"{model}: with its present configuration, requests that arrive together get other "
            f"outputs than alone ({error}); fix the model, or set compares_outputs "
            "(--no-output-check) if they are random"
        )
    return LocalEndpointError(f"{model}: its present configuration does not run: {error}")
