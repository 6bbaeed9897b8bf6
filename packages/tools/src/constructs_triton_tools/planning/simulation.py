"""Simulates Application Auto Scaling minute by minute.

The model: requests are a fluid inside each minute; one update of the endpoint at a time, because
SageMaker refuses a second one; new instances serve after ``start_minutes``; no launch fails; every
model is loaded.
Sources of the rules: Application Auto Scaling user guide, "Target tracking scaling policies", "Step
scaling policies" and "Scheduled scaling".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from constructs_triton_tools.planning.advice import advise
from constructs_triton_tools.planning.policy_state import Demand, PolicyState, state_of
from constructs_triton_tools.planning.scaling import Assumptions, Fleet, Scaling
from constructs_triton_tools.planning.schedule_times import find_minutes
from constructs_triton_tools.planning.simulation_result import SimulatedMinute, Simulation
from constructs_triton_tools.planning.traffic import Traffic

_REMOVE_MINUTES = 1


def simulate(
    traffic: Traffic, scaling: Scaling, fleet: Fleet, assumptions: Assumptions | None = None
) -> Simulation:
    """Simulate scaling on a traffic pattern.

    The same arguments give the same result.

    Args:
        traffic: Invocations of each minute.
        scaling: Bounds, policies and schedules.
        fleet: Throughput, start time and price of an instance.
        assumptions: What no documentation promises. Default: the values that were observed,
            ``Assumptions()``.

    Raises:
        InvalidValueError: a schedule is not supported, or a policy on concurrent requests lacks the
            fleet's ``latency_ms``.
    """
    assumptions = assumptions or Assumptions()
    run = _Run(traffic, scaling, fleet, assumptions)
    minutes = tuple(run.minute(t, arrived) for t, arrived in enumerate(traffic.invocations))
    result = Simulation(traffic, scaling, fleet, assumptions, minutes)
    return replace(result, advice=advise(result))


@dataclass(slots=True)
class _Update:
    """A change of the instance count that the endpoint is making."""

    ready_at: int
    grows: bool
    policies: tuple[PolicyState, ...]


class _Run:
    """The state of one simulation."""

    def __init__(
        self, traffic: Traffic, scaling: Scaling, fleet: Fleet, assumptions: Assumptions
    ) -> None:
        self._fleet = fleet
        self._wait_minutes = float(assumptions.wait_minutes)
        self._capacity = float(fleet.invocations_per_minute)
        self._minimum = scaling.min_capacity
        self._maximum = scaling.max_capacity
        self._in_service = self._desired = scaling.first_instance_count
        self._waiting = 0
        self._update: _Update | None = None
        self._policies = [state_of(policy, fleet, assumptions) for policy in scaling.policies]
        self._agreeing = [policy for policy in self._policies if policy.must_agree]
        self._others = [policy for policy in self._policies if not policy.must_agree]
        self._bounds = _bounds_by_minute(traffic, scaling)

    def minute(self, t: int, arrived: int) -> SimulatedMinute:
        """Run one minute: finish an update, apply schedules, serve, then look at the metrics."""
        self._finish_update(t)
        event = self._apply_bounds(t)
        demand = self._serve(arrived)
        for policy in self._policies:
            policy.observe(demand)
        event = event or self._scale(t)
        return SimulatedMinute(
            arrived,
            demand.served,
            demand.failed,
            self._waiting,
            demand.in_service,
            self._desired,
            event,
            demand.overloaded,
        )

    def _finish_update(self, t: int) -> None:
        update = self._update
        if update is None or t < update.ready_at:
            return
        self._in_service = self._desired
        self._update = None
        for policy in update.policies:
            policy.start_cooldown(t, grew=update.grows)

    def _apply_bounds(self, t: int) -> str:
        """Apply scheduled actions. They need no alarm and ignore cooldowns."""
        for minimum, maximum in self._bounds.get(t, ()):
            self._minimum = self._minimum if minimum is None else minimum
            self._maximum = max(self._minimum, self._maximum if maximum is None else maximum)
            self._minimum = min(self._minimum, self._maximum)
        wanted = self._clamp(self._desired)
        if wanted == self._desired or self._update:
            return ""
        return self._change(t, wanted, "schedule")

    def _serve(self, arrived: int) -> Demand:
        """Serve what arrived and what waited; requests that would wait too long fail."""
        room = int(self._in_service * self._capacity)
        present = self._waiting + arrived
        if present <= room:
            self._waiting = 0
            return Demand(arrived, present, 0, 0, self._in_service, False)
        failed = max(0, present - room - int(room * self._wait_minutes))
        self._waiting = present - room - failed
        return Demand(arrived, room, failed, self._waiting, self._in_service, True)

    def _scale(self, t: int) -> str:
        if self._update:
            return ""
        wanted = {}
        for policy in self._policies:
            count = policy.wants(t, self._desired)
            if count is not None:
                wanted[policy] = count
        if wanted:
            most = max(map(self._clamp, wanted.values()))
            if most > self._desired:
                winners = (policy for policy, count in wanted.items() if self._clamp(count) == most)
                return self._change(t, most, "out", *winners)
        return self._scale_in(t) if self._desired > self._minimum else ""

    def _scale_in(self, t: int) -> str:
        """Remove instances if every target tracking policy agrees,
        or if a step policy asks for it.
        """
        counts = [policy.removes(t, self._desired) for policy in self._others]
        together = [policy.removes(t, self._desired) for policy in self._agreeing]
        counts += [] if None in together else together
        known = [count for count in counts if count is not None]
        least = self._clamp(max(known)) if known else self._desired
        return self._change(t, least, "in", *self._policies) if least < self._desired else ""

    def _change(self, t: int, wanted: int, event: str, *policies: PolicyState) -> str:
        grows = wanted > self._desired
        for policy in policies:
            policy.note_change(t, self._desired, grew=grows)
        # From 0 minutes on an instance serves in the next minute.
        minutes = max(1, self._fleet.start_minutes) if grows else _REMOVE_MINUTES
        self._desired = wanted
        self._update = _Update(t + minutes, grows, policies)
        return event

    def _clamp(self, count: int) -> int:
        return max(self._minimum, min(self._maximum, count))


def _bounds_by_minute(
    traffic: Traffic, scaling: Scaling
) -> dict[int, list[tuple[int | None, int | None]]]:
    bounds: dict[int, list[tuple[int | None, int | None]]] = {}
    for action in scaling.schedules:
        for minute in _minutes_of(action.schedule, action.time_zone, traffic):
            bounds.setdefault(minute, []).append((action.min_capacity, action.max_capacity))
    return bounds


def _minutes_of(schedule: str | int, time_zone: str, traffic: Traffic) -> Iterator[int]:
    if isinstance(schedule, int):
        yield schedule
    else:
        yield from find_minutes(schedule, time_zone, traffic.start, len(traffic.invocations))
