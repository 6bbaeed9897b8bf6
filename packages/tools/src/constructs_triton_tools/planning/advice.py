"""Says in sentences what a simulation shows and what to change."""

from __future__ import annotations

from collections.abc import Iterator

from constructs_triton_tools.planning.policy_state import detection_minutes
from constructs_triton_tools.planning.scaling import TargetTracking
from constructs_triton_tools.planning.simulation_result import OverloadPeriod, Simulation


def advise(simulation: Simulation) -> tuple[str, ...]:
    """Return sentences about what failed, why, and what to change."""
    return tuple(_sentences(simulation))


def _sentences(simulation: Simulation) -> Iterator[str]:
    periods = list(simulation.overload_periods())
    too_high = list(_about_target(simulation))
    if not periods:
        yield "No minute is above capacity."
    elif not simulation.scaling.policies:
        yield _without_policy(simulation, periods)
    elif not too_high:
        yield from _about_periods(simulation, periods)
    yield from too_high
    yield from _about_silence(simulation)
    yield from _about_cost(simulation)


def _without_policy(simulation: Simulation, periods: list[OverloadPeriod]) -> str:
    needed = _most_needed(simulation, periods)
    return f"No policy adds instances: add a policy, or raise min_capacity to {needed}."


def _about_periods(simulation: Simulation, periods: list[OverloadPeriod]) -> Iterator[str]:
    """One sentence for each reason why minutes are above capacity."""
    limited: list[OverloadPeriod] = []
    first: list[OverloadPeriod] = []
    spikes: list[OverloadPeriod] = []
    others: list[OverloadPeriod] = []
    for period in periods:
        if _is_at_maximum(simulation, period):
            limited.append(period)
        elif period.start == 0:
            first.append(period)
        elif _is_spike(simulation, period):
            spikes.append(period)
        else:
            others.append(period)

    if limited:
        yield (
            f"max_capacity {simulation.scaling.max_capacity} is too low for the peak: "
            f"raise it to at least {_most_needed(simulation, limited)}."
        )
    if first:
        yield (
            f"The first minutes need {_most_needed(simulation, first)} "
            "instances: start with as many."
        )
    if spikes:
        yield _about_spikes(simulation, spikes)
    if others:
        yield "Load grows faster than instances start: lower the target, or raise min_capacity."


def _about_spikes(simulation: Simulation, spikes: list[OverloadPeriod]) -> str:
    """The sentence about what no policy can do."""
    start = simulation.fleet.start_minutes
    reaction = _reaction(simulation)
    worst = max(spikes, key=lambda spike: _needed(simulation, spike))
    return (
        f"No target helps: new instances serve after {reaction} minutes ({reaction - start} to "
        f"detect, {start} to start). Raise min_capacity to {_needed(simulation, worst)}, or "
        f"schedule it {reaction} minutes before {simulation.traffic.time_of(worst.start):%H:%M}."
    )


def _is_spike(simulation: Simulation, period: OverloadPeriod) -> bool:
    """Whether load doubles before new instances can serve,
    which a target of half the capacity allows.
    """
    minutes = simulation.minutes
    before = minutes[max(0, period.start - _reaction(simulation))].arrived
    peak = max(minute.arrived for minute in minutes[period.start : period.start + period.length])
    return peak >= 2 * before


def _about_target(simulation: Simulation) -> Iterator[str]:
    capacity = float(simulation.fleet.invocations_per_minute)
    for policy in simulation.scaling.policies:
        if (
            isinstance(policy, TargetTracking)
            and policy.metric == "InvocationsPerInstance"
            and float(policy.target) >= capacity
        ):
            yield (
                f"The target {float(policy.target):g} is not below what one instance serves "
                f"({capacity:g}), so scaling starts after requests fail: "
                f"lower it, for example to {capacity / 2:g}."
            )


def _about_silence(simulation: Simulation) -> Iterator[str]:
    silent = sum(
        not minute.arrived and minute.in_service > simulation.scaling.min_capacity
        for minute in simulation.minutes
    )
    if silent:
        yield (
            f"For {silent} minutes without requests the fleet stays large: without data points an "
            "alarm does not remove instances. Lower the bounds with a schedule."
        )


def _about_cost(simulation: Simulation) -> Iterator[str]:
    if simulation.cost > simulation.fixed_cost and simulation.scaling.policies:
        count = simulation.fixed_instances
        yield (
            f"A fixed fleet of {count} instance{'' if count == 1 else 's'} costs less "
            f"({simulation.fixed_cost} instead of {simulation.cost}) and serves every minute: "
            "raise the target, or do not scale."
        )


def _reaction(simulation: Simulation) -> int:
    """Minutes from a jump of the load until the first new instance serves."""
    fastest = min(
        detection_minutes(policy, simulation.assumptions) for policy in simulation.scaling.policies
    )
    return fastest + simulation.fleet.start_minutes


def _needed(simulation: Simulation, period: OverloadPeriod) -> int:
    minutes = simulation.minutes[period.start : period.start + period.length]
    return simulation.instances_for(max(minute.arrived for minute in minutes))


def _most_needed(simulation: Simulation, periods: list[OverloadPeriod]) -> int:
    return max(_needed(simulation, period) for period in periods)


def _is_at_maximum(simulation: Simulation, period: OverloadPeriod) -> bool:
    last = simulation.minutes[period.start + period.length - 1]
    return last.in_service >= simulation.scaling.max_capacity
