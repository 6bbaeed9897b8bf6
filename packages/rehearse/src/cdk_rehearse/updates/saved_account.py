"""The account in which OLD is deployed, kept in a copy of this process for the steps that fail."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from constructs_triton_core.untrusted.drafts import temporary_folder

from ..account import copy_account
from ..copies import Alive, Copy, Original, copy_process
from .analysis import Sequence
from .failing_steps import FailingSteps, StepEvent
from .meanwhile import Meanwhile
from .problems import failure_problems, revert_problems
from .progress import Notify
from .report import Failure, Problem

__all__ = ["FailureResult", "SavedAccount", "saved_account"]

FailureResult = tuple[Failure, list[Problem]]
"""The end of a failure, and its problems."""


class SavedAccount:
    """An account that waits in another process until it is known what can fail."""

    def __init__(self, copy: Copy) -> None:
        self._copy = copy

    def results(
        self, events: tuple[StepEvent, ...], notify: Notify
    ) -> Iterator[tuple[int, FailureResult]]:
        """Deploy NEW in the saved account, and yield the index and the result of each event.

        Args:
            events: What happens in place of the success of a step, each in a copy of its own.
            notify: Called while the other process works.
        """
        self._copy.send(events)
        while (answer := self._copy.receive()) is not None:
            if isinstance(answer, Alive):
                notify(answer)
            else:
                yield answer


@contextmanager
def saved_account(meanwhile: Meanwhile) -> Iterator[SavedAccount]:
    """Save an account as it is; the process that has it ends with the block."""
    with temporary_folder() as path:
        folder = str(path)
        side = copy_account(
            meanwhile.trial.account,
            lambda: copy_process("while steps fail", folder, has_copies=True),
        )
        if isinstance(side, Original):
            with side:  # its end is the end of the copied process
                _let_steps_fail(meanwhile, side, folder)

        assert isinstance(side, Copy)
        try:
            yield SavedAccount(side)
        finally:
            side.end()


def _let_steps_fail(meanwhile: Meanwhile, original: Original, folder: str) -> None:
    """Wait for the events, deploy NEW, and send the result of each; the last answer is
    ``None``.
    """
    request = meanwhile.request
    trial = meanwhile.trial
    events = original.receive()
    trial.set_fleets(request.fleets)
    with FailingSteps(trial, events, folder, original) as failing:
        outcome = trial.deploy(request.new, request.old)
        if failing.event is not None:
            failing.answer(_result(Sequence(outcome, meanwhile.last), failing.event))
    original.send(None)


def _result(sequence: Sequence, event: StepEvent) -> FailureResult:
    """Return the end of a deployment in which a step failed or was reverted."""
    step = event.step
    find = revert_problems if event.kind == "reverts" else failure_problems
    problems = list(find(sequence, step.place, step.stack))
    outcome = sequence.outcome
    failure = Failure(
        step.number,
        step.logical_id,
        event.kind,
        outcome.last_status,
        outcome.reason,
        sequence.serving(sequence.last),
        outcome.leftovers,
        place=step.place,
    )
    return failure, problems
