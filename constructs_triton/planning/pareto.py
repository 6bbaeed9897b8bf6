"""The plans that no other plan beats in both cost and latency."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from constructs_triton.planning.capacity import Plan
from constructs_triton.planning.quantities import exact

__all__ = ["pareto_front"]


def pareto_front(plans: Iterable[Plan]) -> list[Plan]:
    """Return the plans that are not beaten, by rising cost and falling latency.

    A plan is beaten by one that costs no more and is no slower. Of equal plans the first one is returned.

    Args:
        plans: The plans to compare.
    """
    front: list[Plan] = []
    for plan in sorted(plans, key=lambda plan: (plan.cost_per_hour, _latency(plan))):
        if not front or _latency(plan) < _latency(front[-1]):
            front.append(plan)
    return front


def _latency(plan: Plan) -> Decimal:
    return exact("latency_ms", plan.measurement.latency_ms)
