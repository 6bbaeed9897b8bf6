"""The plans that no other plan beats in both cost and latency."""

from __future__ import annotations

from collections.abc import Iterable

from constructs_triton.planning.capacity import Plan

__all__ = ["pareto_front"]


def pareto_front(plans: Iterable[Plan]) -> list[Plan]:
    """Return the plans that are not beaten, by rising cost and falling latency.

    A plan is beaten by one that costs no more and is no slower. Of equal plans the first one is returned.

    Args:
        plans: The plans to compare.
    """
    front: list[Plan] = []
    for plan in sorted(plans, key=lambda plan: (plan.cost_per_hour, plan.compared_ms)):
        if not front or plan.compared_ms < front[-1].compared_ms:
            front.append(plan)
    return front
