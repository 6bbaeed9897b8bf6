"""Turns what was seen at each moment into steps, instances and what callers notice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

from ..endpoints.readings import Count, Peak, Reading
from ..steps import Step
from .recording import Moment
from .report import Instances, RehearsedStep
from .trial import Outcome

CHANGES = ("create", "update", "replace", "delete")

RESTORE = "undo this, or let an update replace what it took away"
"""The fix of an event between two operations."""


def since(number: int, step: Step) -> str:
    """Return since when something is so: a step of the operation, or an event before it."""
    if step.action == "meanwhile":
        return f"after {step.subject}"
    return f"from step {number} ({step}) on"


@dataclass(frozen=True)
class Sequence:
    """The moments of one operation, seen against the last one before it;
    an empty account has none.
    """

    outcome: Outcome
    before: Moment | None

    @property
    def last(self) -> Moment | None:
        """The last moment; the one before the operation if nothing happened in it."""
        moments = self.outcome.moments
        return moments[-1] if moments else self.before

    @cached_property
    def _old_configs(self) -> set[str]:
        return set() if self.before is None else set(self.before.serving.values())

    @cached_property
    def _old_models(self) -> set[str]:
        if self.before is None:
            return set()
        return {reading.model for reading in self.before.readings}

    def label(self, config: str) -> str:
        """``v1`` for a configuration of the time before, ``v2`` for a new one."""
        return "v1" if config in self._old_configs else "v2"

    def is_old(self, reading: Reading) -> bool:
        """Whether a reading concerns a model of the time before."""
        return reading.model in self._old_models

    def serving(self, moment: Moment | None) -> dict[str, str]:
        """What each endpoint serves at a moment."""
        if moment is None:
            return {}
        return {name: self.label(config) for name, config in moment.serving.items()}

    def steps(self) -> tuple[RehearsedStep, ...]:
        """The changes of resources, in order."""
        found: list[RehearsedStep] = []
        previous = self.before
        for moment in self.outcome.moments:
            if moment.step.action in CHANGES:
                found.append(self._step(len(found) + 1, previous, moment))
            previous = moment
        return tuple(found)

    def _step(self, number: int, previous: Moment | None, moment: Moment) -> RehearsedStep:
        """Return the step that led from the previous moment to this one."""
        step = moment.step
        earlier = self.serving(previous)
        later = self.serving(moment)
        of_old = [reading for reading in moment.readings if self.is_old(reading)]
        of_new = [reading for reading in moment.readings if not self.is_old(reading)]
        data = [read for read in moment.data if read.waits and not read.use.has_previous_key]
        return RehearsedStep(
            number=number,
            stack=moment.stack,
            action=step.action,
            logical_id=step.subject,
            type=self._type_of(moment),
            is_cleanup=moment.is_cleanup or step.action == "delete",
            serving={
                name: _during(earlier.get(name), later.get(name)) for name in {**earlier, **later}
            },
            may_read_old=_all_read([*of_old, *data]),
            may_read_new=_all_read(of_new),
            nested=step.place.removeprefix(moment.stack).removeprefix("/"),
        )

    def _type_of(self, moment: Moment) -> str:
        """Return the type of the resource of a step; "" if no stack has it before or after.

        A cleanup concerns the resource before the operation, and any other step the one after it.
        """
        states = [self.outcome.after, self.outcome.before]
        if moment.is_cleanup:
            states.reverse()
        place = (moment.step.place, moment.step.subject)
        for state in states:
            if place in state.resources:
                resource_type, _ = state.resources[place]
                return resource_type
        return ""

    def replaced(self) -> tuple[str, ...]:
        """The logical IDs whose physical resource is another one afterwards."""
        after = self.outcome.after.resources
        found = []
        for place, resource in self.outcome.before.resources.items():
            _, logical_id = place
            _, physical_id = resource
            _, new_physical_id = after.get(place, resource)
            if new_physical_id != physical_id:
                found.append(logical_id)
        return tuple(found)

    def instances(self) -> tuple[Instances, ...]:
        """The instances of each endpoint before, during and after the operation."""
        moments = self.outcome.moments
        totals = [_totals(moment) for moment in (self.before, *moments)]
        endpoints = dict.fromkeys(chain.from_iterable(totals))

        found = []
        for endpoint in endpoints:
            counts = [by_endpoint.get(endpoint, 0) for by_endpoint in totals]
            peaks = [moment.peaks[endpoint] for moment in moments if endpoint in moment.peaks]
            by_type = self._highest_by_type(endpoint, peaks)
            found.append(
                Instances(
                    endpoint,
                    ", ".join(filter(None, by_type)),
                    counts[0],
                    max([*counts, *(peak.total for peak in peaks)]),
                    counts[-1],
                    by_type,
                )
            )
        return tuple(found)

    def _highest_by_type(self, endpoint: str, peaks: Iterable[Peak]) -> dict[str, int]:
        """The highest number of each instance type, in the order in which they are seen."""
        seen = [_by_type(moment, endpoint) for moment in (self.before, *self.outcome.moments)]
        highest: dict[str, int] = {}
        for counts in (*seen, *(peak.by_type for peak in peaks)):
            for instance_type, count in counts.items():
                highest[instance_type] = max(count, highest.get(instance_type, 0))
        return highest

    def drops(self) -> list[tuple[Count, Count]]:
        """The variants that have fewer instances afterwards,
        although their initial count was exceeded.
        """
        found = []
        previous = _by_variant(self.before)
        for moment in self.outcome.moments:
            present = _by_variant(moment)
            for variant, after in present.items():
                before = previous.get(variant, after)
                if before.count > max(after.count, before.initial_count):
                    found.append((before, after))
            previous = {**previous, **present}
        return found


def _by_variant(moment: Moment | None) -> dict[tuple[str, str], Count]:
    """Return the instances at a moment by endpoint and variant."""
    if moment is None:
        return {}
    return {(count.endpoint, count.variant): count for count in moment.counts}


def _by_type(moment: Moment | None, endpoint: str) -> Mapping[str, int]:
    """Return how many instances of each type an endpoint has at a moment.

    Instances of a variant with several types count for each of them.
    """
    found: Counter[str] = Counter()
    if moment is not None:
        for count in moment.counts:
            if count.endpoint == endpoint:
                found.update(dict.fromkeys(count.instance_type.split(", "), count.count))
    return found


def _totals(moment: Moment | None) -> Mapping[str, int]:
    """Return how many instances each endpoint has at a moment."""
    found: Counter[str] = Counter()
    if moment is not None:
        for count in moment.counts:
            found[count.endpoint] += count.count
    return found


def _during(earlier: str | None, later: str | None) -> str:
    if earlier == later or later is None:
        return earlier or ""
    return f"{earlier}, {later}" if earlier else f"{later} starts"


def _all_read(readings: Iterable[Any]) -> bool | None:
    """Whether all can be read; ``None`` if there are none."""
    refusals = [reading.refusal for reading in readings]
    if not refusals:
        return None
    return not any(refusals)
