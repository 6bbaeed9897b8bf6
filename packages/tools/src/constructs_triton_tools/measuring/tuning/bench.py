"""Measures candidates, and keeps each result in the journal."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from math import ceil
from typing import Any

from constructs_triton_tools.measuring.load_test.confidence import Decision, decide
from constructs_triton_tools.measuring.load_test.prepared_requests import prepare
from constructs_triton_tools.measuring.load_test.samples import Recording
from constructs_triton_tools.measuring.load_test.step import (
    Limits,
    StepResult,
    StepSettings,
    Verdict,
)
from constructs_triton_tools.measuring.load_test.step_runner import Show, StepRunner
from constructs_triton_tools.measuring.tuning.candidates import Candidate
from constructs_triton_tools.measuring.tuning.journal import Journal
from constructs_triton_tools.measuring.tuning.outputs import (
    Expected,
    compare_outputs,
    record_outputs,
)
from constructs_triton_tools.measuring.tuning.racing import (
    CandidateRefusedError,
    MeasuredStep,
    SearchStoppedError,
)
from constructs_triton_tools.measuring.tuning.servers import CandidateServers, RunningCandidate

LEAD_SECONDS = 0.8
_DECIDE_EVERY = 50
# A busy machine is often idle again after some seconds.
_PAUSES = (0, 1, 2, 4, 8, 15)
# A generator that is later than this share of the limit shows that the machine is busy with
# something else.
_LATE_SHARE = 0.2
_REPEATS_OF_DISTURBED = 2
_BUSY_CPU = 0.8
# With more requests in flight than this times what the limit allows, most are over the limit.
_IN_FLIGHT = 4
_LEAST_IN_FLIGHT = 32
_ALONE = 10
#: Fields of a step that the journal keeps; tune measures no streams.
_KEPT = tuple(
    declared.name
    for declared in fields(StepResult)
    if declared.name not in ("stream", "latencies_ms")
)


@dataclass(frozen=True, slots=True)
class BenchStep:
    """A step of a candidate.

    Args:
        candidate: The candidate.
        result: What was measured.
        models: What the server counted of each model during the step.
        load: Load average of the machine.
        voids: Steps before it that were void, because the machine was busy.
    """

    candidate: Candidate
    result: StepResult
    models: dict[str, dict[str, float]]
    load: float
    voids: int


@dataclass(slots=True)
class Bench:
    """Measures candidates with the same requests.

    ``is_stopped`` returns whether Ctrl-C was pressed: Python loses an interruption of a finalizer.
    After ``deadline``, on the clock of ``time.monotonic``, no measurement begins. ``show`` is
    called twice a second while a step runs.
    """

    servers: CandidateServers
    journal: Journal
    limits: Limits
    seed: int = 0
    compares_outputs: bool = True
    is_stopped: Callable[[], bool] = bool
    deadline: float = float("inf")
    show: Show | None = None
    steps: list[BenchStep] = field(default_factory=list)
    _expected: list[Expected] = field(default_factory=list)

    def measure(self, candidate: Candidate, rate: float, seconds: float) -> MeasuredStep:
        """Measure a candidate at a rate, after its outputs were compared.

        Raises:
            CandidateRefusedError: it does not start, or its outputs differ.
            SearchStoppedError: the budget is spent, or the machine cannot measure the rate.
        """
        self._check(candidate)
        question = f"{candidate} at {rate:.4g}/s for {seconds:.3g} s"
        kept = self.journal.recall(question, lambda: self._measure(candidate, rate, seconds))
        result = _from_dict(kept["step"])
        self.steps.append(BenchStep(candidate, result, kept["models"], kept["load"], kept["voids"]))
        return MeasuredStep(result.verdict is Verdict.HELD, result.latency_ms, result.first_error)

    def measure_alone(self) -> float:
        """Return the requests per second of one caller who waits for each answer."""

        def ask() -> float:
            running = self.servers.get(self.servers.repository.present)
            requests = self.servers.requests
            begin = time.monotonic()
            for number in range(_ALONE):
                running.transport.invoke(requests[number % len(requests)])
            return _ALONE / (time.monotonic() - begin)

        return float(self.journal.recall("one caller", ask))

    # --- one step ---------------------------------------------------------------------------------

    def _measure(self, candidate: Candidate, rate: float, seconds: float) -> dict[str, Any]:
        """Measure until a step is not void, with pauses if the machine is busy."""
        for voids, pause in enumerate(_PAUSES):
            self._refuse_after_deadline()
            time.sleep(pause)
            models: dict[str, dict[str, float]] = {}
            running = self.servers.get(candidate)
            with running.count_queues(models):
                result = self._run(running, candidate, rate, seconds)
            is_repeated = voids >= _REPEATS_OF_DISTURBED
            if result.verdict is not Verdict.VOID and (
                is_repeated or not self._is_disturbed(result)
            ):
                load = round(os.getloadavg()[0], 2)
                step = {name: getattr(result, name) for name in _KEPT}
                return {"step": step, "models": models, "load": load, "voids": voids}
            if result.cpu > _BUSY_CPU:
                raise SearchStoppedError(
                    f"the generator cannot send {rate:.0f} requests per second: {result.reason}"
                )
        raise SearchStoppedError(f"this machine is too busy to measure: {result.reason}")

    def _is_disturbed(self, result: StepResult) -> bool:
        """Whether the machine was too busy to send on time, in a step that missed the limit."""
        is_late = result.late_p99_ms > _LATE_SHARE * self.limits.latency_ms
        return is_late and result.verdict is Verdict.NOT_HELD and not result.errors

    def _run(
        self, running: RunningCandidate, candidate: Candidate, rate: float, seconds: float
    ) -> StepResult:
        prepared = [prepare(running.transport, request) for request in self.servers.requests]
        runner = StepRunner(
            prepared, self.limits, show=self.show, is_decided=MissDetector(self.limits)
        )
        in_flight = ceil(_IN_FLIGHT * rate * self.limits.latency_ms / 1000)
        settings = StepSettings(
            seconds=max(1.0, round(seconds, 1)),
            warm_up_seconds=LEAD_SECONDS,
            max_in_flight=max(_LEAST_IN_FLIGHT, in_flight),
            # The steps of each candidate have the same random arrivals, in the same order.
            seed=self.seed + sum(step.candidate == candidate for step in self.steps),
        )
        return runner.measure(rate, settings)

    @property
    def seconds_left(self) -> float:
        """Time until the deadline."""
        return self.deadline - time.monotonic()

    def _refuse_after_deadline(self) -> None:
        if self.is_stopped():
            raise KeyboardInterrupt
        if self.seconds_left < 0:
            raise SearchStoppedError("the budget of time is spent")

    # --- outputs ----------------------------------------------------------------------------------

    def _check(self, candidate: Candidate) -> None:
        """Start a candidate that was not measured before,
        and compare its outputs with the present ones.
        """
        kept = self.journal.recall_once(
            f"check of {candidate}", lambda: self._start_and_compare(candidate)
        )
        if kept["reason"]:
            raise CandidateRefusedError(kept["reason"], is_wrong=kept["is_wrong"])

    def _start_and_compare(self, candidate: Candidate) -> dict[str, Any]:
        self._refuse_after_deadline()
        requests = self.servers.requests
        if self.compares_outputs and not self._expected:
            running = self.servers.get(self.servers.repository.present)
            self._expected = record_outputs(running.transport, requests)
        try:
            running = self.servers.get(candidate)
        except CandidateRefusedError as error:
            return {"reason": str(error), "is_wrong": False}
        found = (
            compare_outputs(running.transport, requests, self._expected) if self._expected else []
        )
        return {"reason": found[0] if found else "", "is_wrong": bool(found)}


@dataclass(slots=True)
class MissDetector:
    """Ends a step when it is nearly certain that the limit is missed.

    A step that holds the limit so far goes on: near its capacity, a queue grows slowly.
    """

    limits: Limits
    checked: int = 0

    def __call__(self, recording: Recording) -> bool:
        count = len(recording.samples)
        if recording.shed or count < self.checked + _DECIDE_EVERY:
            return recording.shed > 0
        self.checked = count
        limit = self.limits.latency_ms / 1000
        over = sum(not sample.is_good or sample.latency > limit for sample in recording.samples)
        return decide(over, count, self.limits.percentile) is Decision.NOT_HELD


def _from_dict(values: Mapping[str, Any]) -> StepResult:
    statuses = {int(status): count for status, count in values["statuses"].items()}
    return StepResult(**{**values, "verdict": Verdict(values["verdict"]), "statuses": statuses})
