"""Random policies, fleets and traces, and what every simulation of them has to keep."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from constructs_triton_tools.planning import Assumptions, Fleet, Traffic
from constructs_triton_tools.planning.scaling import (
    Scaling,
    ScheduledAction,
    StepScaling,
    TargetTracking,
)
from constructs_triton_tools.planning.simulation_result import Simulation

METRICS = ("InvocationsPerInstance", "Invocations", "GPUUtilization", "ConcurrentRequestsPerModel")


@dataclass(frozen=True)
class Case:
    """The arguments of one simulation."""

    traffic: Traffic
    scaling: Scaling
    fleet: Fleet
    assumptions: Assumptions


def draw(rng: Random, *, only_out: bool = False) -> Case:
    """Draw a case: up to three policies, one schedule, and up to 200 minutes."""
    low = rng.randint(1, 4)
    high = rng.randint(low, 20)
    invocations = tuple(rng.choice((0, rng.randint(0, 5000))) for _ in range(rng.randint(1, 200)))
    policies = [_tracking(rng, only_out) for _ in range(rng.randint(0, 2))]
    steps = [] if only_out else [_steps(rng) for _ in range(rng.randint(0, 1))]
    action = ScheduledAction(
        schedule=rng.randint(0, 100), min_capacity=low + 1, max_capacity=high + 2
    )
    schedules = () if only_out or rng.random() < 0.6 else (action,)
    scaling = Scaling(
        min_capacity=low, max_capacity=high, policies=(*policies, *steps), schedules=schedules
    )
    fleet = Fleet(
        invocations_per_minute=rng.uniform(10, 1000),
        start_minutes=rng.randint(0, 12),
        price_per_hour=1,
        latency_ms=rng.uniform(1, 5000),
    )
    assumptions = Assumptions(
        metric_delay_minutes=rng.randint(0, 3),
        wait_minutes=rng.uniform(0, 2),
        counts_refused_requests=rng.random() < 0.5,
    )
    return Case(Traffic(invocations), scaling, fleet, assumptions)


def _tracking(rng: Random, only_out: bool) -> TargetTracking:
    return TargetTracking(
        target=rng.uniform(5, 500),
        metric=rng.choice(METRICS),
        scale_out_cooldown_seconds=rng.randint(0, 600),
        scale_in_cooldown_seconds=rng.randint(0, 600),
        disable_scale_in=only_out or rng.random() < 0.2,
    )


def _steps(rng: Random) -> StepScaling:
    above = rng.random() < 0.5
    sign = 1 if above else -1
    return StepScaling(
        threshold=rng.uniform(5, 500),
        above=above,
        metric=rng.choice(METRICS),
        steps=((0, 50, sign), (50, None, 3 * sign))
        if above
        else ((-50, 0, sign), (None, -50, 3 * sign)),
        adjustment_type=rng.choice(("ChangeInCapacity", "PercentChangeInCapacity")),
        evaluation_periods=rng.randint(1, 3),
        period_minutes=rng.randint(1, 5),
        cooldown_seconds=rng.randint(0, 600),
    )


def check(case: Case, result: Simulation) -> None:
    """Assert what is true of every simulation."""
    minutes, scaling = result.minutes, case.scaling
    lowest = scaling.min_capacity
    highest = max([scaling.max_capacity, *(each.max_capacity or 0 for each in scaling.schedules)])
    assert [minute.arrived for minute in minutes] == list(case.traffic.invocations)
    assert all(lowest <= minute.in_service <= highest for minute in minutes)
    assert all(lowest <= minute.desired <= highest for minute in minutes)
    assert all(min(minute.served, minute.failed, minute.waiting) >= 0 for minute in minutes)
    assert (
        result.arrived
        == sum(minute.served for minute in minutes) + result.failed + minutes[-1].waiting
    )
    assert result.perfect_cost <= result.fixed_cost
    assert result.advice
