"""A simulation follows the rules of Application Auto Scaling."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.planning import Assumptions, Fleet, Traffic, simulate
from constructs_triton_tools.planning.scaling import (
    Scaling,
    ScheduledAction,
    StepScaling,
    TargetTracking,
)
from constructs_triton_tools.planning.simulation_result import Simulation

# trt-db on ml.g4dn.2xlarge in AWS's benchmark of BERT: what one instance serves, and its price.
FLEET = Fleet(invocations_per_minute=1335, price_per_hour=0.94)
BERT = Scaling(min_capacity=2, max_capacity=25, policies=(TargetTracking(target=667.5),))
SPIKE = Traffic.pattern("spike", low=2000, high=15000)
STEP = Traffic.pattern("step", low=1500, high=9000)
IDEAL = Assumptions(metric_delay_minutes=0)


def run(
    invocations: Sequence[int], *policies: Any, fleet: Fleet | None = None, **scaling: Any
) -> Simulation:
    """Simulate a fleet whose instances serve 100 requests a minute and start in 2 minutes."""
    settings = {"min_capacity": 1, "max_capacity": 10, "policies": policies, **scaling}
    fleet = fleet or Fleet(invocations_per_minute=100, start_minutes=2)
    return simulate(Traffic(tuple(invocations)), Scaling(**settings), fleet, IDEAL)


def desired(result: Simulation) -> list[int]:
    return [minute.desired for minute in result.minutes]


def test_step_is_answered_after_detection_and_start() -> None:
    """Three data points and one minute of delay detect a step;
    the instances serve six minutes later.
    """
    result = simulate(STEP, BERT, FLEET)
    minutes = result.minutes
    assert [minute.event for minute in minutes if minute.event] == ["out", "out", "in"]
    assert (minutes[62].desired, minutes[63].desired) == (3, 14)
    assert (minutes[68].in_service, minutes[69].in_service) == (3, 14)
    assert (result.overloaded_minutes, result.failed, result.peak_instances) == (9, 40950, 14)
    assert (result.cost, result.fixed_cost, result.perfect_cost) == (
        Decimal("34.15"),
        Decimal("26.32"),
        Decimal("16.92"),
    )


def test_spike_is_over_before_instances_serve() -> None:
    """An advice says that no target helps, and what does:
    its number of instances serves the spike.
    """
    result = simulate(SPIKE, BERT, FLEET)
    assert result.failed == 83955
    assert result.minutes[67].arrived == 15000
    assert (result.minutes[68].in_service, result.minutes[69].in_service) == (3, 23)
    assert result.advice == (
        (
            "No target helps: new instances serve after 9 minutes (3 to detect, 6 to start). Raise "
            "min_capacity to 12, or schedule it 9 minutes before 01:00."
        ),
    )
    assert simulate(SPIKE, replace(BERT, min_capacity=12), FLEET).failed == 0
    scheduled = ScheduledAction(schedule=51, min_capacity=12)
    assert simulate(SPIKE, replace(BERT, schedules=(scheduled,)), FLEET).failed == 0
    too_late = ScheduledAction(schedule=56, min_capacity=12)
    assert simulate(SPIKE, replace(BERT, schedules=(too_late,)), FLEET).failed > 0


@pytest.mark.parametrize(
    ("change", "failed", "peak"),
    [
        ({"fleet": replace(FLEET, start_minutes=3)}, 61965, 23),
        ({"assumptions": Assumptions(counts_refused_requests=False)}, 83955, 6),
        ({"scaling": replace(BERT, policies=(TargetTracking(target=1068),))}, 95970, 15),
    ],
)
def test_assumptions_change_the_result(change: dict[str, Any], failed: int, peak: int) -> None:
    """The start time, what the metric counts and the target have the effect that
    was calculated by hand.
    """
    arguments: dict[str, Any] = {"scaling": BERT, "fleet": FLEET, "assumptions": None, **change}
    result = simulate(SPIKE, **arguments)
    assert (result.failed, result.peak_instances) == (failed, peak)


def test_scale_in_needs_fifteen_points_and_ninety_percent() -> None:
    """At 90 percent of the target nothing is removed; below it,
    after 15 minutes and the cooldown.
    """
    policy = TargetTracking(target=50)
    assert set(desired(run([90] * 60, policy, initial_instance_count=2))) == {2}
    assert desired(run([89] * 16, policy, initial_instance_count=2))[13:] == [2, 2, 2]
    falling = run([44] * 20, policy, initial_instance_count=2)
    assert desired(falling)[13:16] == [2, 1, 1]


def test_minutes_without_requests_remove_nothing() -> None:
    """Without data points the alarm has insufficient data, and an advice says so."""
    result = run([400] * 6 + [0] * 60, TargetTracking(target=50))
    assert desired(result)[-1] == desired(result)[6] > 1
    assert any("without requests the fleet stays large" in sentence for sentence in result.advice)


def test_disabled_scale_in_does_not_hold_back_other_policies() -> None:
    """A policy that only adds instances has no vote on removing them;
    another tracking policy has one.
    """
    out = TargetTracking(target=1, disable_scale_in=True, metric="Invocations")
    load = [10] * 40
    assert desired(run(load, TargetTracking(target=50), initial_instance_count=3))[-1] == 1
    assert desired(run(load, out, TargetTracking(target=50), initial_instance_count=3))[-1] == 10
    busy = TargetTracking(target=1, metric="GPUUtilization")
    assert desired(run(load, busy, TargetTracking(target=50), initial_instance_count=3))[-1] > 3


def test_largest_of_several_policies_wins() -> None:
    """Of two policies that add instances, the larger count is used."""
    small, large = TargetTracking(target=90), TargetTracking(target=20, metric="GPUUtilization")
    assert desired(run([95] * 3, small, large))[-1] == 5


def test_least_aggressive_scale_in_wins() -> None:
    """Of policies that agree to remove instances, the larger remaining count is used,
    in either order.
    """
    keeps_four, keeps_two = TargetTracking(target=50), TargetTracking(target=80)
    late = StepScaling(
        threshold=500, steps=((None, 0, -1),), above=False, metric="Invocations", period_minutes=15
    )
    for policies, kept in (
        ([keeps_four], 4),
        ([keeps_two], 2),
        ([keeps_four, keeps_two], 4),
        ([keeps_two, keeps_four], 4),
        ([late], 9),
        ([keeps_four, late], 9),
    ):
        counts = desired(run([160] * 15, *policies, initial_instance_count=10))
        assert counts[-2:] == [10, kept], policies


def test_utilization_counts_each_gpu() -> None:
    """240 percent of four GPUs is the same target as 60 percent of one."""
    one = TargetTracking(target=60, metric="GPUUtilization")
    four = TargetTracking(target=240, metric="GPUUtilization", units=4)
    load = [90] * 30
    assert desired(run(load, one)) == desired(run(load, four))
    assert max(desired(run(load, one))) == 2


def test_concurrent_requests_are_seen_within_a_minute() -> None:
    """Rate times latency is the concurrency: 90 requests per minute of 2 s are 3 at a time."""
    fleet = Fleet(invocations_per_minute=100, start_minutes=2, latency_ms=2000)
    policy = TargetTracking(target=1, metric="ConcurrentRequestsPerModel")
    assert desired(run([90], policy, fleet=fleet)) == [3]
    with pytest.raises(
        InvalidValueError, match=r"latency_ms: is required to simulate a policy on concurr"
    ):
        run([90], policy)


def test_larger_need_in_a_cooldown_counts_what_was_added() -> None:
    """During the scale-out cooldown only a larger scale-out happens; afterwards any does."""
    slow, quick = (
        TargetTracking(target=50, scale_out_cooldown_seconds=time) for time in (1200, 60)
    )
    load = [200] * 10 + [210] * 10
    assert max(desired(run(load, quick))) == 5
    assert max(desired(run(load, slow))) == 4
    assert desired(run([200] * 8 + [1000] * 6, slow))[-1] > 4


@pytest.mark.parametrize(
    ("adjustment_type", "adjustment", "counts"),
    [
        ("ChangeInCapacity", 2, [3, 3, 3]),
        ("PercentChangeInCapacity", 150, [2, 2, 2]),
        ("ExactCapacity", 7, [7, 7, 7]),
    ],
)
def test_step_policy_adjusts_the_count(
    adjustment_type: str, adjustment: int, counts: list[int]
) -> None:
    """Each adjustment type changes one instance as the service does."""
    policy = StepScaling(
        threshold=50,
        steps=((0, None, adjustment),),
        adjustment_type=adjustment_type,
        metric="Invocations",
    )
    assert desired(run([90] * 3, policy)) == counts


def test_step_depends_on_the_distance_from_the_threshold() -> None:
    """The lower bound of a step belongs to it; below a threshold the upper bound does."""
    out = StepScaling(threshold=50, steps=((0, 20, 1), (20, None, 5)), metric="Invocations")
    assert [desired(run([load], out))[0] for load in (49, 50, 69, 70)] == [1, 2, 2, 6]
    into = StepScaling(
        threshold=50, steps=((-20, 0, -1), (None, -20, -3)), above=False, metric="Invocations"
    )
    counts = [desired(run([load], into, initial_instance_count=5))[0] for load in (51, 50, 31, 30)]
    assert counts == [5, 4, 4, 2]


def test_step_policy_waits_for_its_periods_and_cooldown() -> None:
    """Two periods of two minutes, summed, and no second step within the cooldown."""
    policy = StepScaling(
        threshold=150,
        steps=((0, None, 1),),
        metric="Invocations",
        period_minutes=2,
        evaluation_periods=2,
        is_sum=True,
        cooldown_seconds=600,
    )
    result = run([80] * 20, policy)
    assert desired(result)[:5] == [1, 1, 1, 2, 2]
    assert desired(result)[14:17] == [2, 3, 3]


def test_step_scale_in_is_not_held_back_by_target_tracking() -> None:
    """A step policy removes an instance although a tracking policy would keep it."""
    keep = TargetTracking(target=11)
    remove = StepScaling(threshold=50, steps=((None, 0, -1),), above=False, metric="Invocations")
    assert desired(run([20] * 2, keep, remove, initial_instance_count=2))[-1] == 1


def test_schedule_acts_at_once_and_keeps_its_bounds() -> None:
    """A schedule changes the count without an alarm, and later policies stay within its bounds."""
    night = ScheduledAction(schedule=30, min_capacity=4, max_capacity=4)
    result = run([10] * 60, TargetTracking(target=50), schedules=(night,))
    assert desired(result)[29:31] == [1, 4]
    assert result.minutes[32].in_service == 4
    assert desired(result)[-1] == 4
    assert result.minutes[30].event == "schedule"


def test_cron_schedule_uses_the_start_and_the_time_zone() -> None:
    """The patterns start at midnight UTC, which is one o'clock in Berlin."""
    action = ScheduledAction(
        schedule="cron(30 1 ? * MON *)", min_capacity=5, time_zone="Europe/Berlin"
    )
    assert desired(run([0] * 40, schedules=(action,)))[29:31] == [1, 5]


AT_FIFTY = {"policies": (TargetTracking(target=50),)}


@pytest.mark.parametrize(
    ("scaling", "load", "sentence"),
    [
        ({}, [50] * 5, "No minute is above capacity."),
        ({}, [50, 350], "No policy adds instances: add a policy, or raise min_capacity to 4."),
        (
            {**AT_FIFTY, "max_capacity": 2},
            [50] * 20 + [400] * 40,
            "max_capacity 2 is too low for the peak: raise it to at least 4.",
        ),
        (AT_FIFTY, [300] * 20, "The first minutes need 3 instances: start with as many."),
        (
            {"policies": (TargetTracking(target=95),), "initial_instance_count": 2},
            [150] * 30 + list(range(170, 300, 6)),
            "Load grows faster than instances start: lower the target, or raise min_capacity.",
        ),
        (
            {"policies": (TargetTracking(target=120),)},
            [50] * 30 + [300] * 10,
            (
                "The target 120 is not below what one instance serves (100), so scaling starts "
                "after requests fail: lower it, for example to 50."
            ),
        ),
    ],
)
def test_advice_names_the_cause(scaling: dict[str, Any], load: list[int], sentence: str) -> None:
    """Each cause of overload has its sentence."""
    assert sentence in run(load, **scaling).advice


def test_cheaper_fixed_fleet_is_mentioned() -> None:
    """If a fixed fleet costs less, an advice says so with both costs."""
    advice = "\n".join(simulate(STEP, BERT, FLEET).advice)
    assert "A fixed fleet of 7 instances costs less (26.32 instead of 34.15)" in advice


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: Scaling(min_capacity=0, max_capacity=3),
            r"min_capacity: must be from 1 to max_capacity",
        ),
        (lambda: Scaling(min_capacity=3, max_capacity=2), r"min_capacity: .* got 3"),
        (
            lambda: Scaling(min_capacity=1, max_capacity=3, initial_instance_count=4),
            r"initial_instance_count: must be from 1 to 3, got 4",
        ),
        (lambda: TargetTracking(target=0), r"target: must be from"),
        (
            lambda: TargetTracking(target=5, metric="InvocationsPerInstanc"),
            r'did you mean "InvocationsPerI',
        ),
        (
            lambda: TargetTracking(target=5, metric="ModelLatency"),
            r"metric: cannot be derived from traffic",
        ),
        (
            lambda: StepScaling(threshold=5, steps=(), adjustment_type="ExactCapacit"),
            r'adjustment_type: .* did you mean "ExactCapacity"',
        ),
        (
            lambda: ScheduledAction(schedule=5),
            r"schedule 5: has no bounds; set min_capacity or max_cap",
        ),
        (lambda: ScheduledAction(schedule=5, min_capacity=-1), r"schedule 5: .* got -1"),
        (
            lambda: Fleet(invocations_per_minute=5, start_minutes=-1),
            r"start_minutes: must be a whole",
        ),
        (lambda: Assumptions(scale_out_points=0), r"scale_out_points: must be a whole .* from 1"),
        (
            lambda: Assumptions(scale_in_fraction=90),
            r"scale_in_fraction: .* write 90 percent as 0\.9",
        ),
    ],
)
def test_invalid_values_are_refused(build: Any, message: str) -> None:
    """The message has the name, the value and the range."""
    with pytest.raises(InvalidValueError, match=message):
        build()
