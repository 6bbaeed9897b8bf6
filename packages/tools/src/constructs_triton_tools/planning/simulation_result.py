"""The result of a simulation: every minute, the totals and the costs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, NamedTuple

from constructs_triton_tools.planning.quantities import exact
from constructs_triton_tools.planning.scaling import MONEY, Assumptions, Fleet, Scaling
from constructs_triton_tools.planning.traffic import Traffic

__all__ = ["OverloadPeriod", "SimulatedMinute", "Simulation"]

_CENTS = Decimal("0.01")


class SimulatedMinute(NamedTuple):
    """One simulated minute.

    Args:
        arrived: Requests that arrived.
        served: Requests that were served, including some that had waited.
        failed: Requests that would have waited too long.
        waiting: Requests that wait at the end of the minute.
        in_service: Instances that serve.
        desired: Instance count after the event.
        event: ``"out"``, ``"in"``, ``"schedule"`` or empty.
        overloaded: Whether more requests were present than the instances can serve in a minute.
    """

    arrived: int
    served: int
    failed: int
    waiting: int
    in_service: int
    desired: int
    event: str
    overloaded: bool


@dataclass(frozen=True, slots=True)
class OverloadPeriod:
    """Consecutive minutes above capacity.

    Args:
        start: First minute, counted from 0.
        length: Number of minutes.
    """

    start: int
    length: int


@dataclass(frozen=True, slots=True)
class Simulation:
    """The result of a simulation of scaling on a traffic pattern.

    Costs are in the currency of the fleet's ``price_per_hour``, rounded to two digits.

    Args:
        traffic: The traffic that was simulated.
        scaling: Its scaling.
        fleet: Its instances.
        assumptions: What was assumed about the service.
        minutes: What happened in each minute.
        advice: Sentences about what failed, why, and what to change.
    """

    traffic: Traffic
    scaling: Scaling
    fleet: Fleet
    assumptions: Assumptions
    minutes: tuple[SimulatedMinute, ...]
    advice: tuple[str, ...] = ()

    @property
    def arrived(self) -> int:
        """All requests."""
        return sum(minute.arrived for minute in self.minutes)

    @property
    def failed(self) -> int:
        """Requests that waited longer than ``wait_minutes``."""
        return sum(minute.failed for minute in self.minutes)

    @property
    def overloaded_minutes(self) -> int:
        """Minutes in which more requests were present than the instances can serve."""
        return sum(minute.overloaded for minute in self.minutes)

    @property
    def requests_above_capacity(self) -> int:
        """Requests that were not served in the minute in which they arrived:
        they waited or failed.
        """
        return sum(min(minute.arrived, minute.failed + minute.waiting) for minute in self.minutes)

    @property
    def peak_instances(self) -> int:
        """The highest instance count."""
        return max(minute.desired for minute in self.minutes)

    @property
    def activities(self) -> int:
        """How often the instance count was changed."""
        return sum(bool(minute.event) for minute in self.minutes)

    @property
    def instance_hours(self) -> Decimal:
        """Instance hours, counted from the request for an instance.

        SageMaker may start to bill later.
        """
        return _hours(self._paid_minutes)

    @property
    def fixed_instances(self) -> int:
        """The smallest fixed count that serves every minute."""
        return self.instances_for(max(self.traffic.invocations))

    @property
    def perfect_instance_hours(self) -> Decimal:
        """Instance hours of a fleet that has exactly what each minute needs,
        at least ``min_capacity``.
        """
        return _hours(self._perfect_minutes)

    @property
    def cost(self) -> Decimal:
        """The cost of ``instance_hours``."""
        return self._cost(self._paid_minutes)

    @property
    def fixed_cost(self) -> Decimal:
        """The cost of ``fixed_instances`` all the time."""
        return self._cost(self.fixed_instances * len(self.minutes))

    @property
    def perfect_cost(self) -> Decimal:
        """The cost of ``perfect_instance_hours``: no scaling can be cheaper without failures."""
        return self._cost(self._perfect_minutes)

    def instances_for(self, invocations_per_minute: int) -> int:
        """Return the instances that serve a load, and at least ``min_capacity``.

        Args:
            invocations_per_minute: The load.
        """
        needed = math.ceil(invocations_per_minute / float(self.fleet.invocations_per_minute))
        return max(self.scaling.min_capacity, needed)

    def overload_periods(self) -> Iterator[OverloadPeriod]:
        """Yield the periods of consecutive minutes above capacity."""
        start = None
        for t, minute in enumerate(self.minutes):
            if minute.overloaded and start is None:
                start = t
            if not minute.overloaded and start is not None:
                yield OverloadPeriod(start, t - start)
                start = None
        if start is not None:
            yield OverloadPeriod(start, len(self.minutes) - start)

    def to_dict(self) -> dict[str, Any]:
        """Return the totals and every minute as values that ``json.dumps`` accepts."""
        return {
            "minutes": len(self.minutes),
            "arrived": self.arrived,
            "failed": self.failed,
            "overloaded_minutes": self.overloaded_minutes,
            "requests_above_capacity": self.requests_above_capacity,
            "peak_instances": self.peak_instances,
            "activities": self.activities,
            "instance_hours": float(self.instance_hours),
            "cost": float(self.cost),
            "fixed_instances": self.fixed_instances,
            "fixed_cost": float(self.fixed_cost),
            "perfect_cost": float(self.perfect_cost),
            "advice": list(self.advice),
            "timeline": [minute._asdict() for minute in self.minutes],
        }

    @property
    def _paid_minutes(self) -> int:
        return sum(max(minute.in_service, minute.desired) for minute in self.minutes)

    @property
    def _perfect_minutes(self) -> int:
        return sum(self.instances_for(minute.arrived) for minute in self.minutes)

    def _cost(self, instance_minutes: int) -> Decimal:
        price = exact("price_per_hour", self.fleet.price_per_hour, MONEY)
        return (price * instance_minutes / 60).quantize(_CENTS)


def _hours(instance_minutes: int) -> Decimal:
    return (Decimal(instance_minutes) / 60).quantize(_CENTS)
