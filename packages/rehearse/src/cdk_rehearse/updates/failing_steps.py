"""Lets each step of a deployment fail once, each time in a copy of the process.

The deployment runs once. Where a step can fail, the process is copied: in the copy the step fails
and CloudFormation rolls back, in the original the deployment goes on. So all failures share the way
up to their step, and none of them sees what another one left.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import NoReturn

from constructs_triton_core.cloud_assembly.endpoints import ENDPOINT_TYPES
from constructs_triton_core.cloud_assembly.shapes import ADOPTED_TYPE

from ..account import copy_account
from ..copies import Alive, Copy, Original, copy_process, expect_answer
from ..providers import is_custom
from ..steps import When
from .report import GENERATED, FailureEvent, RehearsedStep
from .trial import Trial

_MOST_COPIES = 8
"""Each copy has about 50 MB of its own."""
BOTH = "v1, v2"
"""What serves while an endpoint gets another configuration."""


@dataclass(frozen=True)
class StepEvent:
    """What can happen in place of the success of a step; ``index`` is its place in the results."""

    index: int
    step: RehearsedStep
    kind: FailureEvent


def possible_events(steps: Sequence[RehearsedStep], *, answers: bool) -> Iterator[StepEvent]:
    """Each step that can fail, then what can happen in place of a failure.

    With ``answers``, a new custom resource also answers FAILED. After an update its physical ID
    stays the same, whether the response is lost or says FAILED.
    """
    changing = [step for step in steps if not step.is_cleanup]
    events: list[tuple[RehearsedStep, FailureEvent]] = [(step, "fails") for step in changing]
    for step in changing:
        if answers and step.action == "create" and is_custom(step.type):
            events.append((step, "answers FAILED"))
    for step in changing:
        if _gives_another_configuration(step):
            events.append((step, "reverts"))

    for index, (step, kind) in enumerate(events):
        yield StepEvent(index, step, kind)


def _gives_another_configuration(step: RehearsedStep) -> bool:
    """Whether a step updates the configuration of an endpoint,
    as the creation of an adopted one does too.
    """
    is_update = step.action == "update" or step.type == ADOPTED_TYPE
    return is_update and step.type in ENDPOINT_TYPES and BOTH in step.serving.values()


@dataclass
class FailingSteps:
    """Copies the process at each step of a deployment that can fail.

    Attributes:
        trial: The account before the deployment.
        events: What can happen.
        folder: Where copies put temporary files.
        original: The process that waits for the answer of this one. It gets the index of each event
            with the answer of its copy, when it is known.
        event: What happens in this process; ``None`` unless it is the copy of an event.
    """

    trial: Trial
    events: Sequence[StepEvent]
    folder: str
    original: Original
    event: StepEvent | None = None
    _copies: dict[Copy, StepEvent] = field(default_factory=dict)
    _waiting: dict[str, list[RehearsedStep]] = field(default_factory=dict)
    _reverted: dict[int, list[str]] = field(default_factory=dict)

    def __enter__(self) -> FailingSteps:
        """Watch the changes of the next deployment."""
        for event in self.events:
            steps = self._waiting.setdefault(f"{event.step.stack}/{event.step.place}", [])
            if event.step not in steps:
                steps.append(event.step)
            if event.kind == "reverts":
                self._reverted[event.index] = _changed_endpoints(self.trial, event.step)

        self.trial.watch = lambda _: self.original.tell_alive()
        deployer = self.trial.account.deployer
        deployer.before_change = self._before_change
        deployer.after_change = self._after_change
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        """Wait for all answers; end this process if it is a copy, or all copies after an error."""
        if self.event is not None:
            self.original.__exit__(kind, error, where)
        try:
            while self._copies and error is None:
                self._take_answers()
        finally:
            for copy in self._copies:
                copy.end()

    def answer(self, value: object) -> NoReturn:
        """Send the result of the event of this copy, and end its process."""
        with self.original:
            self.original.send(value)
        raise AssertionError("a copy ends with its answer")

    def _before_change(self, place: str) -> None:
        """Let SageMaker revert the update of an endpoint that is about to begin."""
        self.original.tell_alive()
        for event in self._events_at(place):
            if event.kind == "reverts" and self._is_copied(event):
                account = self.trial.account
                account.behaviour = replace(
                    account.behaviour,
                    endpoint_update="reverts",
                    updated_endpoints=self._reverted[event.index],
                )

    def _after_change(self, place: str) -> When | None:
        """Return how the change fails that a service has just carried out."""
        failures = [event for event in self._events_at(place) if event.kind != "reverts"]
        steps = self._waiting.get(place)
        if steps:
            del steps[0]

        for event in failures:
            if self._is_copied(event):
                return "answers FAILED" if event.kind == "answers FAILED" else "after"
        return None

    def _events_at(self, place: str) -> Iterator[StepEvent]:
        """What can happen at the step that is carried out; nothing more in a copy."""
        steps = self._waiting.get(place)
        for event in self.events:
            if steps and event.step == steps[0] and self.event is None:
                yield event

    def _is_copied(self, event: StepEvent) -> bool:
        """Copy the process for an event; return whether this is the copy."""
        while len(self._copies) >= _most_copies():
            self._take_answers()

        work = f"with step {event.step.number}, {event.step.place}, that {_HAPPENS[event.kind]}"
        side = copy_account(self.trial.account, lambda: copy_process(work, self.folder))
        if isinstance(side, Copy):
            self._copies[side] = event
            return False

        # No other process may hold these connections: their end shows that a process has ended.
        self.original.close()
        for other in self._copies:
            other.close()
        self._copies.clear()
        self.event = event
        self.original = side
        return True

    def _take_answers(self) -> None:
        """Pass the results of the copies that have ended on to the original process."""
        for copy in expect_answer(list(self._copies)):
            answer = copy.receive()
            if isinstance(answer, Alive):
                self.original.tell_alive()
                continue
            event = self._copies.pop(copy)
            copy.forget()
            self.original.send((event.index, answer))


_HAPPENS = {
    "fails": "fails",
    "answers FAILED": "answers FAILED",
    "reverts": "is reverted",
}


def _most_copies() -> int:
    """One copy for each core that this process may use."""
    try:
        cores = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        cores = os.cpu_count() or 1
    return min(cores, _MOST_COPIES)


def _changed_endpoints(trial: Trial, step: RehearsedStep) -> list[str]:
    """The endpoints that get another configuration in a step."""
    changed = {GENERATED.sub("", name) for name, serving in step.serving.items() if serving == BOTH}
    return [name for name in trial.endpoints() if GENERATED.sub("", name) in changed]
