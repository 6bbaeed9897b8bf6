"""What scales a fleet in a simulation: policies, schedules, the fleet,
and assumptions about the service.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from constructs_triton_core.declared_values import Value
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.spelling import did_you_mean
from constructs_triton_tools.declared_fields import shows_options
from constructs_triton_tools.planning.quantities import Bounds, Number, exact

#: The metrics that the simulation can derive from traffic. QueueTime is that of
#: ``container_metrics``.
METRICS = (
    "InvocationsPerInstance",
    "Invocations",
    "GPUUtilization",
    "CPUUtilization",
    "ConcurrentRequestsPerModel",
    "QueueTime",
)
# The default of both cooldowns, and of the cooldown of step scaling, for SageMaker variants.
# Source: Application Auto Scaling API reference, TargetTrackingScalingPolicyConfiguration.
_COOLDOWN_SECONDS = 300
_MINUTES = Bounds("0", "1440", "give minutes, at most a day")
_SECONDS = Bounds("0", "86400", "give seconds, at most a day")
MONEY = Bounds("0", "1000000", "give the price of one instance hour")
_FRACTION = Bounds("0.01", "1", "write 90 percent as 0.9")
_ADJUSTMENT_TYPES = ("ChangeInCapacity", "PercentChangeInCapacity", "ExactCapacity")


@shows_options
@dataclass(frozen=True, slots=True, kw_only=True)
class TargetTracking:
    """A target tracking policy.

    ``target``
        Target value, in the unit of the metric: invocations per minute, percent, requests, or
        microseconds in the queue.
    ``metric``
        One of ``METRICS``.
    ``disable_scale_in``
        Whether the policy only adds instances.
    ``units``
        For a utilization: the GPUs or vCPUs of one instance, because SageMaker reports 0 to 100
        percent of each.
    ``highest_value``
        Higher values of the metric count as this one. Default: no limit.

    Raises:
        InvalidValueError: a value is out of range, or the metric cannot be simulated.
    """

    target: Number
    metric: str = METRICS[0]
    scale_out_cooldown_seconds: Annotated[
        Number,
        Value(
            "cooldown after scaling out; the default is that of the service",
            flag="--scale-out-cooldown",
            metavar="SECONDS",
        ),
    ] = _COOLDOWN_SECONDS
    scale_in_cooldown_seconds: Annotated[
        Number,
        Value(
            "cooldown after scaling in; the default is that of the service",
            flag="--scale-in-cooldown",
            metavar="SECONDS",
        ),
    ] = _COOLDOWN_SECONDS
    disable_scale_in: bool = False
    units: Number = 1
    highest_value: Number | None = None

    def __post_init__(self) -> None:
        _check_metric(self.metric)
        exact("target", self.target)
        if self.highest_value is not None:
            exact("highest_value", self.highest_value)
        exact("units", self.units)
        exact("scale_out_cooldown_seconds", self.scale_out_cooldown_seconds, _SECONDS)
        exact("scale_in_cooldown_seconds", self.scale_in_cooldown_seconds, _SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepScaling:
    """A step scaling policy with its alarm.

    Args:
        threshold: Threshold of the alarm, in the unit of the metric.
        steps: ``(lower, upper, adjustment)`` for each step. The bounds are relative to the
            threshold, as in ``StepAdjustments``; ``None`` means no bound.
        above: Whether values above the threshold trigger the policy; otherwise values below it.
        metric: One of ``METRICS``.
        adjustment_type: ``"ChangeInCapacity"``, ``"PercentChangeInCapacity"`` or
            ``"ExactCapacity"``.
        period_minutes: Period of the alarm, in minutes.
        evaluation_periods: Number of periods that must be over the threshold.
        is_sum: Whether a period's value is the sum of its minutes instead of their average.
        cooldown_seconds: Time after a change before the next one. The default is that of the
            service.
        minimum_adjustment: Least number of instances that a percentage adds or removes.
        units: As in ``TargetTracking``.

    Raises:
        InvalidValueError: a value is out of range, or the metric cannot be simulated.
    """

    threshold: Number
    steps: tuple[tuple[float | None, float | None, float], ...]
    above: bool = True
    metric: str = METRICS[0]
    adjustment_type: str = _ADJUSTMENT_TYPES[0]
    period_minutes: int = 1
    evaluation_periods: int = 1
    is_sum: bool = False
    cooldown_seconds: Number = _COOLDOWN_SECONDS
    minimum_adjustment: int = 1
    units: Number = 1

    def __post_init__(self) -> None:
        _check_metric(self.metric)
        exact(
            "threshold", self.threshold, Bounds("0", "1000000000000", "give a number of at least 0")
        )
        exact(
            "period_minutes",
            self.period_minutes,
            Bounds("1", "60", "use whole minutes up to an hour"),
        )
        exact(
            "evaluation_periods", self.evaluation_periods, Bounds("1", "60", "use 1 to 60 periods")
        )
        exact("cooldown_seconds", self.cooldown_seconds, _SECONDS)
        if self.adjustment_type not in _ADJUSTMENT_TYPES:
            hint = did_you_mean(
                self.adjustment_type, _ADJUSTMENT_TYPES, f'use "{_ADJUSTMENT_TYPES[0]}"'
            )
            raise InvalidValueError(
                f'adjustment_type: must be an AdjustmentType, got "{self.adjustment_type}"; {hint}'
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledAction:
    """New bounds of the instance count at a time.

    ``schedule``
        A minute of the traffic, counted from 0, or an expression of Application Auto Scaling:
        ``"cron(0 8 ? * MON-FRI *)"``, ``"at(2026-01-05T08:00:00)"`` or ``"rate(1 day)"``.
    ``min_capacity``, ``max_capacity``
        The new bounds. ``None`` keeps a bound.
    ``time_zone``
        An IANA time zone. Default: UTC.

    Raises:
        InvalidValueError: no bound is set, or a bound or the minute is negative.
    """

    schedule: str | int
    min_capacity: int | None = None
    max_capacity: int | None = None
    time_zone: str = "UTC"

    def __post_init__(self) -> None:
        if self.min_capacity is None and self.max_capacity is None:
            raise InvalidValueError(
                f"schedule {self.schedule}: has no bounds; set min_capacity or max_capacity"
            )
        for value in (self.schedule, self.min_capacity, self.max_capacity):
            if isinstance(value, int) and value < 0:
                raise InvalidValueError(
                    f"schedule {self.schedule}: numbers must be at least 0, got {value}; raise it"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """The bounds of the instance count, and everything that changes the count between them.

    Args:
        min_capacity: Minimum number of instances, at least 1.
        max_capacity: Maximum number of instances, at most 10,000.
        policies: Target tracking and step scaling policies.
        schedules: Times at which the bounds change.
        initial_instance_count: Instances at the start. Default: ``min_capacity``.

    Raises:
        InvalidValueError: ``min_capacity`` is below 1 or above ``max_capacity``, or the initial
            count is not between them.
    """

    min_capacity: int
    max_capacity: int
    policies: tuple[TargetTracking | StepScaling, ...] = ()
    schedules: tuple[ScheduledAction, ...] = ()
    initial_instance_count: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "policies", tuple(self.policies))
        object.__setattr__(self, "schedules", tuple(self.schedules))
        if not 1 <= self.min_capacity <= self.max_capacity <= 10_000:
            raise InvalidValueError(
                f"min_capacity: must be from 1 to max_capacity ({self.max_capacity}, at most "
                f"10000), got {self.min_capacity}; change one of them"
            )
        if not self.min_capacity <= self.first_instance_count <= self.max_capacity:
            raise InvalidValueError(
                f"initial_instance_count: must be from {self.min_capacity} to {self.max_capacity}, "
                f"got {self.initial_instance_count}; change it, or the bounds"
            )

    @property
    def first_instance_count(self) -> int:
        """The instance count in the first minute."""
        if self.initial_instance_count is None:
            return self.min_capacity
        return self.initial_instance_count


@shows_options
@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """The instances of a variant.

    AWS measured a start of 381 seconds (median) for ml.g4dn.xlarge with an image of 15.7 GB, and of
    134 seconds with image caching ("Introducing container caching in Amazon SageMaker AI").

    Raises:
        InvalidValueError: a value is out of range.
    """

    invocations_per_minute: Annotated[
        Number,
        Value(
            "invocations per minute that one instance can serve, from a load test",
            flag="--throughput",
            metavar="N",
        ),
    ]
    start_minutes: Annotated[
        int,
        Value(
            "minutes until a new instance is in service; about 3 with image caching", metavar="N"
        ),
    ] = 6
    price_per_hour: Annotated[
        Number, Value("price of one instance hour", default_text="no costs", metavar="PRICE")
    ] = 0
    latency_ms: Annotated[
        Number | None,
        Value("time of one request, for policies on concurrent requests", metavar="MS"),
    ] = None

    def __post_init__(self) -> None:
        exact("invocations_per_minute", self.invocations_per_minute)
        _check_whole("start_minutes", self.start_minutes)
        exact("price_per_hour", self.price_per_hour, MONEY)
        if self.latency_ms is not None:
            exact("latency_ms", self.latency_ms)


@shows_options
@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """What the service does but no documentation promises. Each has the value that was observed.

    The numbers of points are those of published alarms of target tracking policies:
    "TargetTracking-...-AlarmHigh" has 3 of 3, "AlarmLow" 15 of 15. Users have measured a delay of
    the metric of 2 to 3 minutes. SageMaker waits 60 seconds for a container.

    ``scale_in_fraction``
        Instances are removed below this fraction of the target. Default: 0.9. The user guide says
        "usually more than 10% lower".
    ``counts_refused_requests``
        Whether refused requests count in the metric. Default: ``True``. If they do not, a fleet
        that is overloaded grows more slowly.
    ``utilization_at_capacity``
        The utilization, in percent, of an instance at ``invocations_per_minute``. Default: 100.
    ``high_resolution_points``
        Minutes above the target before a policy on concurrent requests adds instances. Default: 1,
        because its metric is published every 10 seconds.

    Raises:
        InvalidValueError: a value is out of range.
    """

    scale_out_points: Annotated[
        int, Value("minutes above the target before instances are added", metavar="N")
    ] = 3
    scale_in_points: Annotated[
        int, Value("minutes below it before instances are removed", metavar="N")
    ] = 15
    scale_in_fraction: Number = 0.9
    metric_delay_minutes: Annotated[
        int, Value("minutes until an alarm sees a finished minute", metavar="N")
    ] = 1
    wait_minutes: Annotated[
        Number, Value("minutes that a request waits before it fails", metavar="N")
    ] = 1
    counts_refused_requests: bool = True
    utilization_at_capacity: Number = 100
    high_resolution_points: int = 1

    def __post_init__(self) -> None:
        for name in ("scale_out_points", "scale_in_points", "high_resolution_points"):
            _check_whole(name, getattr(self, name), minimum=1)
        _check_whole("metric_delay_minutes", self.metric_delay_minutes)
        exact("scale_in_fraction", self.scale_in_fraction, _FRACTION)
        exact("wait_minutes", self.wait_minutes, _MINUTES)
        exact(
            "utilization_at_capacity",
            self.utilization_at_capacity,
            Bounds("1", "100", "give percent"),
        )


def _check_metric(metric: str) -> None:
    if metric not in METRICS:
        hint = did_you_mean(metric, METRICS, f"simulate a policy on one of {', '.join(METRICS)}")
        raise InvalidValueError(f'metric: cannot be derived from traffic, got "{metric}"; {hint}')


def _check_whole(name: str, value: int, minimum: int = 0) -> None:
    if not isinstance(value, int) or not minimum <= value <= 1440:
        raise InvalidValueError(
            f"{name}: must be a whole number of minutes from {minimum} to 1440, "
            f"got {value}; round it"
        )
