"""What is seen of an account at each step of an operation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ..account import SimulatedAccount
from ..endpoints.encrypted_data import DataReading
from ..endpoints.readings import Count, Peak, Reading
from ..providers.provider import Deployed
from ..stacks.stack import Event, Stack
from ..steps import Step
from .report import Leftover

_OF_RESOURCES = ("create", "update", "replace", "restore", "delete")
_REMAINS = ("DELETE_SKIPPED", "DELETE_FAILED")


@dataclass(frozen=True)
class Moment:
    """What was seen after one step of the operation on a stack; a cleanup can no longer be undone.

    ``serving`` has the configuration that answers the requests of each endpoint, ``peaks`` the most
    instances of each endpoint that the step has updated.
    """

    stack: str
    step: Step
    serving: Mapping[str, str]
    readings: tuple[Reading, ...]
    counts: tuple[Count, ...]
    is_cleanup: bool
    peaks: Mapping[str, Peak] = field(default_factory=dict)
    data: tuple[DataReading, ...] = ()


@dataclass(frozen=True)
class State:
    """The resources of all stacks: type and physical ID by path of the stack and logical ID."""

    resources: Mapping[tuple[str, str], tuple[str, str]]
    deployed: Mapping[tuple[str, str], Deployed] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, account: SimulatedAccount) -> State:
        """Return the present state."""
        deployed = {}
        for stack in account.stacks.all:
            if stack.status != "DELETE_COMPLETE":
                for logical_id, resource in stack.resources.items():
                    deployed[stack.path, logical_id] = resource

        resources = {
            place: (resource.request.type, resource.physical.id)
            for place, resource in deployed.items()
        }
        return cls(resources, deployed)


@dataclass
class Recorder:
    """Replaces the inspection of an account, and keeps what it saw."""

    account: SimulatedAccount
    stack: str = ""
    moments: list[Moment] = field(default_factory=list)
    watch: Callable[[str], None] = lambda _: None
    """Called with the place of a resource, ``STACK/ID``, before and after its change."""
    _is_cleanup: bool = False

    def attach(self) -> None:
        """Look at the account after each step from now on."""
        deployer = self.account.deployer
        deployer.inspect = self.inspect
        deployer.begin_cleanup = self._begin_cleanup
        deployer.before_change = self._before_change

    def begin(self, stack: str) -> None:
        """Begin an operation on a stack."""
        self.stack = stack
        self._is_cleanup = False

    def _before_change(self, place: str) -> None:
        self.watch(place)

    def inspect(self, step: Step) -> None:
        """Record the account as it is after a step."""
        if step.action in _OF_RESOURCES:
            self.watch(f"{self.stack}/{step.subject}")
        fleets = self.account.fleets
        readings_before = len(fleets.readings)
        counts_before = len(fleets.counts)
        fleets.inspect(step)
        moment = Moment(
            stack=self.stack,
            step=step,
            serving=self._serving(),
            readings=tuple(fleets.readings[readings_before:]),
            counts=tuple(fleets.counts[counts_before:]),
            is_cleanup=self._is_cleanup,
            peaks=dict(fleets.peaks),
            data=tuple(self.account.encrypted_data.inspect(step)),
        )
        self.moments.append(moment)
        # The peaks of the next moment are those of its own step.
        fleets.peaks.clear()

    def _begin_cleanup(self) -> None:
        self._is_cleanup = True
        self.account.fleets.begin_cleanup()

    def _serving(self) -> dict[str, str]:
        endpoints = self.account.api.backend("sagemaker").endpoints
        return {name: endpoint.endpoint_config_name for name, endpoint in list(endpoints.items())}


def leftovers(stack: Stack, since: int, name: str) -> tuple[Leftover, ...]:
    """What the operation that began at an event has left without a stack.

    ``name`` is that of the stack, or of the one that it is nested in.
    """
    remaining: dict[str, Event] = {}
    for event in stack.events[since:]:
        if event.status in _REMAINS and event.physical_id != stack.id:
            remaining[event.physical_id] = event
        elif event.status == "DELETE_COMPLETE":
            remaining.pop(event.physical_id, None)
    for deployed in stack.resources.values():
        remaining.pop(deployed.physical.id, None)

    found = []
    for event in remaining.values():
        shown = stack.shown(event.physical_id)
        found.append(Leftover(event.logical_id, event.type, shown, event.reason, name))
    return tuple(found)
