"""What one policy has seen during a simulation, and what it wants."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.planning.scaling import Assumptions, Fleet, StepScaling, TargetTracking

_HIGH_RESOLUTION = "ConcurrentRequestsPerModel"
_QUEUE_TIME = "QueueTime"
# Triton's metrics are printed once a minute, so a value contains up to a minute before its own.
_PUBLISHER_MINUTES = 1
# A queue with random arrivals has no finite mean at full load; in a minute it grows to about this.
_BUSIEST = 0.99
# Floating point must not add an instance: 3 * 1.0000000000000002 is not more than 3.
_ROUNDING = 1e-9


class Demand(NamedTuple):
    """One minute of work, in requests."""

    arrived: int
    served: int
    failed: int
    waiting: int
    in_service: int
    overloaded: bool


Metric = Callable[[Demand], float | None]


class PolicyState:
    """The part that both types of policy share: the delayed metric, and the cooldowns.

    ``must_agree`` is whether other policies may only remove instances if this one agrees.
    """

    must_agree = False

    def __init__(self, metric: Metric, delay: int, cooldowns: tuple[float, float]) -> None:
        seconds_out, seconds_in = cooldowns
        self._metric = metric
        self._unseen: deque[float | None] = deque([None] * delay)
        self._cooldown_out = math.ceil(seconds_out / 60)
        self._cooldown_in = math.ceil(seconds_in / 60)
        # The minutes in which the cooldowns end; the simulation begins with minute 0.
        self._out_until = -1
        self._in_until = -1
        # The instance count before the scale-outs of the present cooldown.
        self._before = 0

    def observe(self, demand: Demand) -> None:
        """Publish the minute's value; the alarms see it after the delay."""
        self._unseen.append(self._metric(demand))
        self._see(self._unseen.popleft())

    def note_change(self, t: int, before: int, *, grew: bool) -> None:
        """Note that the instance count changes, because of this policy."""
        if not grew:
            return
        if t >= self._out_until:
            self._before = before
        self._in_until = -1  # a scale-out ends the cooldown of a scale-in

    def start_cooldown(self, t: int, *, grew: bool) -> None:
        """Start the cooldown once the new count is in service."""
        if grew:
            self._out_until = t + self._cooldown_out
        else:
            self._in_until = t + self._cooldown_in

    def wants(self, t: int, desired: int) -> int | None:
        """Return the instance count that the policy wants to scale out to, if any."""
        # In a cooldown, what was added counts as part of the next scale-out, which must be larger.
        # So values from before the scale-out do not add the same instances again.
        base = self._before if t < self._out_until else desired
        count = self._out(base)
        if count is None or count <= desired:
            return None
        return count

    def removes(self, t: int, desired: int) -> int | None:
        """Return the instance count that the policy wants to scale in to, if any."""
        if t < self._in_until:
            return None
        count = self._in(desired)
        if count is None or count >= desired:
            return None
        return count

    def _see(self, value: float | None) -> None:
        """Take a value that the alarms see; ``None`` is a minute without a data point."""
        raise NotImplementedError

    def _out(self, base: int) -> int | None:
        """Return the count to which a scale-out alarm changes ``base``, if it is active."""
        raise NotImplementedError

    def _in(self, desired: int) -> int | None:
        """Return the count to which a scale-in alarm changes ``desired``, if it is active."""
        raise NotImplementedError


class _TargetTrackingState(PolicyState):
    """Target tracking: two alarms, which count the data points above and below the target."""

    def __init__(self, policy: TargetTracking, metric: Metric, assumptions: Assumptions) -> None:
        cooldowns = (
            float(policy.scale_out_cooldown_seconds),
            float(policy.scale_in_cooldown_seconds),
        )
        super().__init__(metric, _delay(policy, assumptions), cooldowns)
        self.must_agree = not policy.disable_scale_in
        self._target = float(policy.target)
        self._highest = math.inf if policy.highest_value is None else float(policy.highest_value)
        self._low = self._target * float(assumptions.scale_in_fraction)
        self._out_points = _out_points(policy, assumptions)
        self._in_points = assumptions.scale_in_points
        self._above = 0
        self._below = 0
        self._value = 0.0

    def _see(self, value: float | None) -> None:
        """Count the data points in a row. Without a data point an alarm has insufficient data."""
        if value is None:
            self._above = 0
            self._below = 0
            self._value = 0.0
            return
        self._value = min(value, self._highest)
        self._above = self._above + 1 if self._value > self._target else 0
        self._below = self._below + 1 if self._value < self._low else 0

    def _out(self, base: int) -> int | None:
        if self._above < self._out_points:
            return None
        return self._proportional(base)

    def _in(self, desired: int) -> int | None:
        if not self.must_agree or self._below < self._in_points:
            return None
        return self._proportional(desired)

    def _proportional(self, count: int) -> int:
        """Return the count at which the metric is at its target."""
        return math.ceil(count * self._value / self._target - _ROUNDING)


class _StepScalingState(PolicyState):
    """Step scaling: one alarm on the last periods, and a step for each range of the metric."""

    def __init__(self, policy: StepScaling, metric: Metric, assumptions: Assumptions) -> None:
        cooldown = float(policy.cooldown_seconds)
        super().__init__(metric, _delay(policy, assumptions), (cooldown, cooldown))
        self._policy = policy
        length = policy.period_minutes * policy.evaluation_periods
        self._values: deque[float | None] = deque(maxlen=length)

    def _see(self, value: float | None) -> None:
        self._values.append(value)

    def _out(self, base: int) -> int | None:
        return self._adjusted(base)

    def _in(self, desired: int) -> int | None:
        return self._adjusted(desired)

    def _adjusted(self, count: int) -> int | None:
        """Return the count after the adjustment of the step that the metric is in.

        ``None`` if the alarm is not active.
        """
        periods = self._periods()
        threshold = float(self._policy.threshold)
        differences = [value - threshold for value in periods if value is not None]
        if len(differences) < self._policy.evaluation_periods:
            return None
        if not all(self._breaches(difference) for difference in differences):
            return None

        for lower, upper, adjustment in self._policy.steps:
            if self._contains(differences[-1], lower, upper):
                return self._adjust(count, adjustment)
        return None

    def _periods(self) -> list[float | None]:
        """Return the value of each period of the alarm; none before all have passed."""
        values = list(self._values)
        length = self._policy.period_minutes
        if len(values) < length * self._policy.evaluation_periods:
            return []
        return [self._combine(values[at : at + length]) for at in range(0, len(values), length)]

    def _combine(self, values: list[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        if not known:
            return None
        return sum(known) if self._policy.is_sum else sum(known) / len(known)

    def _breaches(self, difference: float) -> bool:
        return difference >= 0 if self._policy.above else difference <= 0

    def _contains(self, difference: float, lower: float | None, upper: float | None) -> bool:
        """Above the threshold a step has its lower bound, below the threshold its upper bound."""
        low = -math.inf if lower is None else lower
        high = math.inf if upper is None else upper
        return low <= difference < high if self._policy.above else low < difference <= high

    def _adjust(self, count: int, adjustment: float) -> int:
        if self._policy.adjustment_type == "ExactCapacity":
            return round(adjustment)
        if self._policy.adjustment_type == "ChangeInCapacity":
            return count + round(adjustment)
        # Rounded towards zero, but never to zero, as the user guide describes.
        change = int(count * adjustment / 100)
        least = max(1, self._policy.minimum_adjustment)
        if adjustment > 0:
            return count + max(change, least)
        return count + min(change, -least)


def state_of(
    policy: TargetTracking | StepScaling, fleet: Fleet, assumptions: Assumptions
) -> PolicyState:
    """Return the state of a policy at the start of a simulation.

    Raises:
        InvalidValueError: the policy needs the fleet's ``latency_ms``.
    """
    metric = _metric(policy.metric, float(policy.units), fleet, assumptions)
    if isinstance(policy, TargetTracking):
        return _TargetTrackingState(policy, metric, assumptions)
    return _StepScalingState(policy, metric, assumptions)


def detection_minutes(policy: TargetTracking | StepScaling, assumptions: Assumptions) -> int:
    """Return the minutes from a jump of the load until the policy adds instances."""
    if isinstance(policy, TargetTracking):
        points = _out_points(policy, assumptions)
    else:
        points = policy.period_minutes * policy.evaluation_periods
    return points - 1 + _delay(policy, assumptions)


def _delay(policy: TargetTracking | StepScaling, assumptions: Assumptions) -> int:
    """Return the minutes after which the alarms see a value."""
    if policy.metric == _HIGH_RESOLUTION:
        return 0
    if policy.metric == _QUEUE_TIME:
        return assumptions.metric_delay_minutes + _PUBLISHER_MINUTES
    return assumptions.metric_delay_minutes


def _out_points(policy: TargetTracking, assumptions: Assumptions) -> int:
    """Return the data points in a row above the target after which a policy scales out."""
    if policy.metric == _HIGH_RESOLUTION:
        return assumptions.high_resolution_points
    return assumptions.scale_out_points


def _metric(name: str, units: float, fleet: Fleet, assumptions: Assumptions) -> Metric:
    """Return the function that calculates a metric of SageMaker from a minute's work.

    ``units`` are the GPUs or vCPUs of an instance, whose utilization SageMaker adds up.
    """
    if name == "InvocationsPerInstance":
        return _invocations(assumptions, is_per_instance=True)
    if name == "Invocations":
        return _invocations(assumptions, is_per_instance=False)
    if name == _HIGH_RESOLUTION:
        return _concurrency(fleet)
    if name == _QUEUE_TIME:
        return _queue_time(fleet)
    return _utilization(units, fleet, assumptions)


def _invocations(assumptions: Assumptions, *, is_per_instance: bool) -> Metric:
    """Count requests: SageMaker publishes no value for a minute without one."""

    def count(demand: Demand) -> float | None:
        if not demand.arrived:
            return None
        requests = demand.served
        if assumptions.counts_refused_requests:
            requests = demand.arrived
        return requests / demand.in_service if is_per_instance else requests

    return count


def _utilization(units: float, fleet: Fleet, assumptions: Assumptions) -> Metric:
    """Measure a utilization that grows with the requests, up to that of a full instance."""
    full = units * float(assumptions.utilization_at_capacity)
    of_one_request = full / float(fleet.invocations_per_minute)
    return lambda demand: of_one_request * demand.served / demand.in_service


def _concurrency(fleet: Fleet) -> Metric:
    """Measure the requests that are open at the same time: those in service and those that wait.

    Raises:
        InvalidValueError: the fleet has no ``latency_ms``.
    """
    if fleet.latency_ms is None:
        raise InvalidValueError(
            "latency_ms: is required to simulate a policy on concurrent requests; "
            "set the time of one request in milliseconds"
        )
    minutes = float(fleet.latency_ms) / 60_000
    return lambda demand: (demand.served * minutes + demand.waiting) / demand.in_service


def _queue_time(fleet: Fleet) -> Metric:
    """Return the average wait in microseconds: that of a queue with random arrivals, plus the
    overload.

    Each instance is a server with one queue (M/M/1): the wait is near 0 up to about half of the
    load, and then rises steeply.
    """
    per_minute = float(fleet.invocations_per_minute)
    one_request = 60_000_000 / per_minute

    def wait(demand: Demand) -> float:
        busy = min(demand.served / (demand.in_service * per_minute), _BUSIEST)
        return one_request * (busy / (1 - busy) + demand.waiting / demand.in_service)

    return wait
