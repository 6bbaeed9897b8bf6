"""Turns what was seen at each moment into steps, instances and what callers notice."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
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
    return (
        f"after {step.subject}" if step.action == "meanwhile" else f"from step {number} ({step}) on"
    )


@dataclass(frozen=True)
class Sequence:
    """The moments of one operation, seen against the last one before it;
    an empty account has none.
    """

    outcome: Outcome
    before: Moment | None

    @cached_property
    def _old_configs(self) -> set[str]:
        return set() if self.before is None else set(self.before.serving.values())

    @cached_property
    def _old_models(self) -> set[str]:
        return set() if self.before is None else {each.model for each in self.before.readings}

    def label(self, config: str) -> str:
        """``v1`` for a configuration of the time before, ``v2`` for a new one."""
        return "v1" if config in self._old_configs else "v2"

    def is_old(self, reading: Reading) -> bool:
        """Whether a reading concerns a model of the time before."""
        return reading.model in self._old_models

    def serving(self, moment: Moment | None) -> dict[str, str]:
        """What each endpoint serves at a moment."""
        return (
            {}
            if moment is None
            else {name: self.label(config) for name, config in moment.serving.items()}
        )

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
        place, logical_id = moment.step.place, moment.step.subject
        resources = (
            self.outcome.before.resources if moment.is_cleanup else self.outcome.after.resources
        )
        both = {**self.outcome.after.resources, **self.outcome.before.resources, **resources}
        earlier, later = self.serving(previous), self.serving(moment)
        old = [each for each in moment.readings if self.is_old(each)]
        data = [each for each in moment.data if each.waits and not each.use.has_previous_key]
        return RehearsedStep(
            number,
            moment.stack,
            moment.step.action,
            logical_id,
            both.get((place, logical_id), ("",))[0],
            moment.is_cleanup or moment.step.action == "delete",
            {name: _during(earlier.get(name), later.get(name)) for name in {**earlier, **later}},
            _all_read([*old, *data]),
            _all_read(each for each in moment.readings if not self.is_old(each)),
            nested=place.removeprefix(moment.stack).removeprefix("/"),
        )

    def replaced(self) -> tuple[str, ...]:
        """The logical IDs whose physical resource is another one afterwards."""
        before, after = self.outcome.before.resources, self.outcome.after.resources
        return tuple(
            place[1] for place, known in before.items() if after.get(place, known)[1] != known[1]
        )

    def instances(self) -> tuple[Instances, ...]:
        """The instances of each endpoint before, during and after the operation."""
        moments = self.outcome.moments
        before, after = _totals(self.before), _totals(moments[-1] if moments else self.before)
        found = []
        for name in dict.fromkeys([*before, *(name for each in moments for name in _totals(each))]):
            totals = [_totals(each).get(name, 0) for each in (self.before, *moments)]
            peaks = [moment.peaks[name] for moment in moments if name in moment.peaks]
            highest = max([*totals, *(each.total for each in peaks)])
            by_type = self._highest_by_type(name, peaks)
            types = ", ".join(filter(None, by_type))
            found.append(
                Instances(name, types, before.get(name, 0), highest, after.get(name, 0), by_type)
            )
        return tuple(found)

    def _highest_by_type(self, endpoint: str, peaks: Iterable[Peak]) -> dict[str, int]:
        """The highest number of each instance type, in the order in which they are seen."""
        found: dict[str, int] = {}
        for moment in (self.before, *self.outcome.moments):
            present: dict[str, int] = {}
            for each in () if moment is None else moment.counts:
                for kind in each.instance_type.split(", ") if each.endpoint == endpoint else ():
                    present[kind] = present.get(kind, 0) + each.count
            found |= {kind: max(count, found.get(kind, 0)) for kind, count in present.items()}
        for peak in peaks:
            found |= {kind: max(count, found.get(kind, 0)) for kind, count in peak.by_type.items()}
        return found

    def drops(self) -> list[tuple[Count, Count]]:
        """The variants that have fewer instances afterwards,
        although their initial count was exceeded.
        """
        found, previous = [], _by_variant(self.before)
        for moment in self.outcome.moments:
            present = _by_variant(moment)
            for place, after in present.items():
                before = previous.get(place, after)
                if before.count > max(after.count, before.initial_count):
                    found.append((before, after))
            previous = {**previous, **present}
        return found


def _by_variant(moment: Moment | None) -> dict[tuple[str, str], Count]:
    return {} if moment is None else {(each.endpoint, each.variant): each for each in moment.counts}


def _totals(moment: Moment | None) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in () if moment is None else moment.counts:
        found[each.endpoint] = found.get(each.endpoint, 0) + each.count
    return found


def _during(earlier: str | None, later: str | None) -> str:
    if earlier == later or later is None:
        return earlier or ""
    return f"{earlier}, {later}" if earlier else f"{later} starts"


def _all_read(readings: Iterable[Any]) -> bool | None:
    refusals = [each.refusal for each in readings]
    return None if not refusals else not any(refusals)
