"""The plan of a fleet with several instance types, of which any mix may run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.planning.capacity import Plan, cheapest
from constructs_triton_tools.planning.prices import HOURS_PER_MONTH


@dataclass(frozen=True, slots=True)
class PooledPlan:
    """The counts of the slowest type, and the range of the cost.

    Args:
        plans: The cheapest plan of each instance type, in order of priority.
    """

    plans: tuple[Plan, ...]

    @property
    def initial_instance_count(self) -> int:
        """The instances that handle the load even if all are of the slowest type."""
        return max(plan.initial_instance_count for plan in self.plans)

    @property
    def max_capacity(self) -> int:
        """The maximum capacity that peak load needs if all instances are of the slowest type."""
        return max(plan.max_capacity for plan in self.plans)

    @property
    def cost_per_hour(self) -> tuple[Decimal, Decimal]:
        """The cost of these instances if all are of the cheapest type,
        and of the most expensive one.
        """
        prices = [plan.price_per_hour for plan in self.plans]
        return min(prices) * self.initial_instance_count, max(prices) * self.initial_instance_count

    @property
    def cost_per_month(self) -> tuple[Decimal, Decimal]:
        """The same for 730 hours."""
        least, most = self.cost_per_hour
        return least * HOURS_PER_MONTH, most * HOURS_PER_MONTH

    @property
    def max_requests_per_second(self) -> dict[str, float]:
        """The measured throughput of an instance of each type,
        for ``scale_on_invocations_per_instance``.
        """
        return {
            plan.instance_type: round(float(plan.measurement.invocations_per_minute) / 60, 4)
            for plan in self.plans
        }

    def to_dict(self) -> dict[str, object]:
        """Return the plan as values that ``json.dumps`` accepts."""
        return {
            "instance_types": [plan.instance_type for plan in self.plans],
            "initial_instance_count": self.initial_instance_count,
            "min_capacity": self.plans[0].min_capacity,
            "max_capacity": self.max_capacity,
            "cost_per_hour": [float(cost) for cost in self.cost_per_hour],
            "cost_per_month": [float(cost) for cost in self.cost_per_month],
            "max_requests_per_second": self.max_requests_per_second,
        }


def plans_of_pools(plans: Sequence[Plan], instance_types: Sequence[str]) -> dict[str, list[Plan]]:
    """Return the plans of each instance type, in order of priority.

    Raises:
        InvalidValueError: a type is given twice, or was not measured.
    """
    found: dict[str, list[Plan]] = {}
    for name in instance_types:
        if name in found:
            raise InvalidValueError(
                f'instance_pools: each type must be unique, got "{name}" twice; remove one'
            )
        found[name] = [plan for plan in plans if plan.instance_type == name]
        if not found[name]:
            raise InvalidValueError(
                f'instance_pools: no row of the benchmark is for "{name}"; measure it with '
                "constructs-triton load-test, or remove it"
            )
    return found


def plan_pools(plans: Mapping[str, Sequence[Plan]]) -> PooledPlan:
    """Return the plan of a fleet with the types of ``plans_of_pools``.

    Raises:
        InvalidValueError: a type does not meet the latency.
    """
    found = []
    for name, measured in plans.items():
        try:
            found.append(cheapest(measured))
        except InvalidValueError as error:
            raise InvalidValueError(f"instance_pools, {name}: {error}") from None
    return PooledPlan(tuple(found))
