"""One pass of a rehearsal, under one behaviour of AWS: the update without failures, the way back,
the deletion, and then a failure at each step.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from ..behaviour import CALM, Behaviour
from .calm_deployments import deploy_calmly
from .calm_report import CalmReport, calm_report, unique
from .failing_steps import StepEvent, possible_events
from .meanwhile import prepared
from .progress import Attempted, Notify
from .report import Failure, Problem, Rehearsal
from .saved_account import FailureResult, SavedAccount, saved_account
from .versions import NONE, Request

__all__ = ["Pass", "calm_pass"]


@dataclass(frozen=True)
class Pass:
    """A pass after its deployments without failures.

    Attributes:
        request: What is rehearsed.
        behaviour: What AWS does where it documents nothing.
        notify: Called with each change, and after each failure.
        report: What is known before steps fail.
        events: What can fail; nothing if the request asks for no failures.
        saved: The account in which OLD is deployed. ``None`` before a first deployment, or if the
            request asks for no failures.
    """

    request: Request
    behaviour: Behaviour
    notify: Notify
    report: CalmReport
    events: tuple[StepEvent, ...]
    saved: SavedAccount | None

    @property
    def calm(self) -> Rehearsal:
        """The rehearsal without failures."""
        return self.report.rehearsal

    def with_failures(self) -> Rehearsal:
        """Let each step fail too, and return the whole rehearsal."""
        results: dict[int, FailureResult] = {}
        if self.events:
            for index, result in self._results():
                results[index] = result
                self.notify(Attempted())

        failures: list[Failure] = []
        problems: list[Problem] = []
        missed: list[str] = []
        for event in self.events:
            if event.index not in results:
                missed.append(
                    f"the failure of step {event.step.number}, {event.step.logical_id}, which a "
                    "second deployment did not reach"
                )
                continue
            failure, problems_of_failure = results[event.index]
            failures.append(failure)
            problems += problems_of_failure

        failures.sort(key=lambda failure: (failure.step, failure.event))
        return replace(
            self.calm,
            failures=tuple(failures),
            not_simulated=(*missed, *self.calm.not_simulated),
            problems=unique(*self.report.of_update, *problems, *self.report.of_deletion),
        )

    def _results(self) -> Iterator[tuple[int, FailureResult]]:
        """Yield the index and the result of each event."""
        if self.saved is not None:
            yield from self.saved.results(self.events, self.notify)
            return

        with ExitStack() as running:
            with prepared(self.request, self.behaviour, self.notify) as meanwhile:
                saved = running.enter_context(saved_account(meanwhile))
            yield from saved.results(self.events, self.notify)


@contextmanager
def calm_pass(request: Request, behaviour: Behaviour, notify: Notify) -> Iterator[Pass]:
    """Deploy NEW without failures, OLD again, NEW again, and delete it.

    The account in which steps can fail ends with the block.
    """
    has_failures = request.failures == "each"
    with ExitStack() as running:
        with prepared(request, behaviour, notify) as meanwhile:
            saved = None
            # The account is saved before it is known what can fail. Before a first deployment there
            # is nothing to keep, and one that is saved later has read the service models that NEW
            # needs.
            if has_failures and request.old != NONE:
                saved = running.enter_context(saved_account(meanwhile))
            deployments = deploy_calmly(meanwhile, notify)

        report = calm_report(request, deployments)
        events: tuple[StepEvent, ...] = ()
        if has_failures:
            # A function answers in the same way under each behaviour of AWS: one pass shows it.
            events = tuple(possible_events(deployments.steps, answers=behaviour == CALM))
        yield Pass(request, behaviour, notify, report, events, saved)
