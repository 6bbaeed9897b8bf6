"""``tune``: searches the configuration of a model that holds the highest rate
within a latency limit.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from math import ceil
from pathlib import Path
from types import FrameType
from typing import Unpack

from blake3 import blake3

from constructs_triton_client import Invocation
from constructs_triton_core.declared_values import complete, part_of, takes
from constructs_triton_core.errors import (
    ConstructsTritonError,
    InvalidValueError,
    LocalEndpointError,
)
from constructs_triton_tools.local.options import LocalRunOptions
from constructs_triton_tools.measuring.load_test.step import Limits
from constructs_triton_tools.measuring.tuning.axes import count_candidates, search
from constructs_triton_tools.measuring.tuning.bench import Bench
from constructs_triton_tools.measuring.tuning.journal import Journal
from constructs_triton_tools.measuring.tuning.options import TuneOptions
from constructs_triton_tools.measuring.tuning.outcome import (
    Facts,
    TuneResult,
    choose,
    compare_finalists,
    find_notes,
)
from constructs_triton_tools.measuring.tuning.preparation import (
    Inputs,
    check_backends,
    describe_server,
    draw_requests,
    encode_inputs,
    find_only_model,
    find_spaces,
    read_machine,
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
    Schedule,
    choose_finalists,
    measure_rounds,
)
from constructs_triton_tools.measuring.tuning.servers import CandidateServers
from triton_model_check.model_config.target import Target
from triton_model_check.model_repository import ModelRepository


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
    return Tuning(Path(repository), model, options, requests).run(listener)


class BatchingFaultError(LocalEndpointError):
    """The present configuration has other outputs for requests that arrive
    together than for each alone.
    """


class Tuning:
    """A search that is prepared: nothing is measured or written before ``run``.

    The parameters are those of ``tune``.
    """

    def __init__(
        self,
        repository: Path,
        model: str | None,
        options: TuneOptions,
        requests: Sequence[Inputs | Invocation] | None = None,
    ) -> None:
        self._options = options = complete("tune()", options, TuneOptions)
        self._local = part_of(options, LocalRunOptions)
        self._machine = read_machine()
        #: When a rate is held.
        self.limits = Limits(latency_ms=options["latency_ms"], percentile=options["percentile"])
        #: The time of the search, and of the comparison after it.
        self.schedule = Schedule(60 * options["budget_minutes"], options["step_seconds"])
        #: Folder of the results.
        self.folder = Path(options["output"])
        found = ModelRepository.from_directory(repository, calls=options.get("calls"))
        # The server checks the files; without a readable configuration there is nothing to search.
        configs = Target("server", local_files=False)
        found.check(configs, is_packed=False).raise_for_errors()
        self.model = model or find_only_model(found)
        self.repository, self.spaces = find_spaces(
            found,
            self.model,
            self._machine,
            latency_ms=self.limits.latency_ms,
            parameters=options.get("parameters", {}),
        )
        #: The highest number of candidates that are tried.
        self.count = count_candidates(self.repository.present, self.spaces)
        self.stand_in = check_backends(
            self.repository, self._local, accept_stand_in=options["accept_stand_in"]
        )
        drawn = requests or draw_requests(
            found, self.model, options["seed"], options.get("shapes", {})
        )
        self.requests = [encode_inputs(request) for request in drawn]
        kind = "requests of your own" if requests else f"random requests (seed {options['seed']})"
        #: What the search is measured with.
        self.facts = Facts(
            machine=str(self._machine),
            server=describe_server(self._local),
            data=f"{len(self.requests)} {kind}",
            shares_cpus=not self._machine.gpus,
        )
        _refuse_small_budget(self.schedule)
        self._started = 0.0

    def _inputs(self) -> dict[str, str]:
        """What the results depend on."""
        bodies = blake3(b"\n".join(request.body for request in self.requests)).hexdigest()[:16]
        return {
            "model": f"{self.model} {self.repository.digest()}",
            "data": bodies,
            "server": self.facts.server,
            "machine": self.facts.machine,
            "limit": f"{self.limits.latency_ms:g} ms p{self.limits.percentile:g}",
        }

    def run(self, listener: TuneListener | None = None) -> TuneResult:
        """Search, compare and write the results, and stop the candidates,
        also after Ctrl-C and SIGTERM.
        """
        watcher = listener or TuneListener()
        self._started = time.monotonic()
        self.folder.mkdir(parents=True, exist_ok=True)
        servers = CandidateServers(
            self.repository, self.requests, self.folder / "running", self._local, self._machine
        )
        with (
            _interruptions() as stopped,
            closing(Journal(self.folder / "journal.jsonl", self._inputs())) as journal,
            closing(servers),
        ):
            watcher.on_begin(len(journal))
            bench = Bench(
                servers,
                journal,
                self.limits,
                seed=self._options["seed"],
                compares_outputs=self._options["compares_outputs"],
                is_stopped=lambda: bool(stopped),
                deadline=self._started + self.schedule.search_seconds,
                show=watcher.show if watcher.shows_steps else None,
            )
            result = self._search_and_compare(bench, watcher)
            write_tuning(result, self.repository)
        return result

    def _search_and_compare(self, bench: Bench, watcher: TuneListener) -> TuneResult:
        race = Race(
            bench.measure, self.repository.present, self.schedule.step_seconds, watcher.on_trial
        )
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
            facts=self.facts,
            rounds=rounds,
            comparisons=comparisons,
            steps=bench.steps,
            notes=[*find_notes(race.present, race.trials, rounds), *race.notes, *notes],
            stand_in=self.stand_in,
            is_interrupted=is_interrupted,
            folder=self.folder,
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
        """Return the models in the order of their queues in the last steps
        of the best candidate.
        """
        steps = [step.models for step in bench.steps if step.candidate == race.best]

        def queue(name: str) -> float:
            return max((models.get(name, {}).get("queue_ms", 0.0) for models in steps), default=0.0)

        return sorted(self.spaces, key=queue, reverse=True)

    def _compare(
        self, race: Race, bench: Bench, watcher: TuneListener, rounds: list[Round]
    ) -> None:
        finalists = choose_finalists(race)
        if race.best == race.present or not race.trials[race.present].rate:
            return
        bench.deadline = self._started + self.schedule.budget_seconds
        bench.servers.keep(finalists)
        # Kept, because a run that continues this comparison has more time left.
        count, seconds = bench.journal.recall_once(
            f"rounds of {', '.join(map(str, finalists))}",
            lambda: self.schedule.rounds(len(finalists), bench.seconds_left),
        )
        watcher.on_compare(finalists, count)
        for found in measure_rounds(
            bench.measure,
            {finalist: race.trials[finalist].rate for finalist in finalists},
            latency_ms=self.limits.latency_ms,
            seconds=seconds,
            rounds=count,
            seed=bench.seed,
            report=watcher.on_round,
        ):
            rounds.append(found)


def _refuse_small_budget(schedule: Schedule) -> None:
    least = schedule.least_minutes
    budget = schedule.budget_seconds / 60
    if budget < least:
        raise InvalidValueError(
            f"budget_minutes: must be at least {least:g} with steps of {schedule.step_seconds:g} "
            f"seconds, because the present configuration is measured first, got {budget:g}; raise "
            f"it to {ceil(least)}, or make the steps shorter with step_seconds (--step-seconds)"
        )


def _present_fails(model: str, error: CandidateRefusedError) -> ConstructsTritonError:
    if error.is_wrong:
        return BatchingFaultError(
            f"{model}: with its present configuration, requests that arrive together get other "
            f"outputs than alone ({error}); fix the model, or set compares_outputs "
            "(--no-output-check) if they are random"
        )
    return LocalEndpointError(f"{model}: its present configuration does not run: {error}")


@contextmanager
def _interruptions() -> Iterator[list[int]]:
    """Raise KeyboardInterrupt for Ctrl-C and SIGTERM inside the block, and add each to the list.

    The list is there because Python loses an exception that is raised within a finalizer. A program
    that handles Ctrl-C in its own way, and a thread, get an empty list.
    """
    found: list[int] = []
    is_usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not is_usual or threading.current_thread() is not threading.main_thread():
        yield found
        return

    def handle(number: int, frame: FrameType | None) -> None:
        found.append(number)
        signal.default_int_handler(number, frame)

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield found
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
