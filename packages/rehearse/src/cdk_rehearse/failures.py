"""Fails a deployment at each of its steps in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from .account import SimulatedAccount
from .behaviour import Behaviour
from .endpoints.readings import Drop, Reading
from .stacks.stack import Event, Stack
from .steps import Step, When

_CHANGES = ("create", "update", "replace")
_LEFT = ("DELETE_FAILED", "DELETE_SKIPPED")
_WHEN: tuple[When, ...] = ("before", "after")


@dataclass(frozen=True)
class Attempt:
    """A deployment in which one step failed, and what brought the stack back.

    ``when`` is whether the step's service had carried it out. ``statuses`` are those of the stack
    after the deployment and after what followed: a failed rollback is continued, and a stack whose
    creation failed is deleted. The events DELETE_FAILED and DELETE_SKIPPED are what is left behind.
    """

    failed: Step
    when: When
    statuses: tuple[str, ...]
    reason: str
    steps: tuple[Step, ...]
    readings: tuple[Reading, ...]
    drops: tuple[Drop, ...]
    events: tuple[Event, ...]

    @property
    def leftovers(self) -> list[Event]:
        """The deletions that failed or were skipped."""
        return [event for event in self.events if event.status in _LEFT]


def fail_each_change(
    aws: SimulatedAccount, deploy: Callable[[], Stack], steps: Iterable[Step]
) -> Iterator[Attempt]:
    """Deploy once for each way in which a change can fail, before and after its service carries it
    out.

    ``aws`` is in the state before the deployment, to which each attempt returns. ``steps`` are
    those of the deployment without failures.
    """
    changing = [step for step in steps if step.action in _CHANGES]
    for step in changing:
        name = f"{step.place}/{step.subject}" if step.place else step.subject
        for when in _WHEN:
            failing = replace(aws.behaviour, failing={name: when})
            yield attempt(aws, deploy, failing, step, when)


def attempt(
    aws: SimulatedAccount, deploy: Callable[[], Stack], failing: Behaviour, step: Step, when: When
) -> Attempt:
    """Deploy while ``step`` fails as ``failing`` says, and return to the state before."""
    fleets = aws.fleets
    first_step = len(fleets.steps)
    first_reading = len(fleets.readings)
    first_drop = len(fleets.drops)
    first_events = {stack.id: len(stack.events) for stack in aws.stacks.all}

    usual = aws.behaviour
    aws.behaviour = failing
    try:
        stack = deploy()
    finally:
        aws.behaviour = usual
    reason = stack.reason
    statuses = (stack.status, *_return(aws, stack))
    return Attempt(
        step,
        when,
        statuses,
        reason,
        tuple(fleets.steps[first_step:]),
        tuple(fleets.readings[first_reading:]),
        tuple(fleets.drops[first_drop:]),
        tuple(stack.events[first_events.get(stack.id, 0) :]),
    )


def _return(aws: SimulatedAccount, stack: Stack) -> Iterator[str]:
    """Bring a stack that cannot be updated back to the state before its deployment."""
    if stack.status == "UPDATE_ROLLBACK_FAILED":
        aws.deployer.resumed_rollback(stack)()
        yield stack.status
    elif stack.status in ("ROLLBACK_COMPLETE", "ROLLBACK_FAILED"):
        aws.deployer.delete(stack)
        yield stack.status
