"""The numbers of a scaling policy: bounds of capacity, and targets in the range a metric is published in."""

from __future__ import annotations

from typing import Protocol

from aws_cdk import Duration

from constructs_triton.cdk.validation.limit_checks import check_range
from constructs_triton.cdk.validation.property_types import check_has, check_type
from constructs_triton.cdk.validation.tokens import is_concrete
from constructs_triton.errors import InvalidValueError
from constructs_triton.facts.instance_types import InstanceType
from constructs_triton.facts.limits import (
    MIN_CAPACITY_ASYNC,
    MIN_CAPACITY_REAL_TIME,
    SAFETY_FACTOR,
    RangeLimit,
)

__all__ = [
    "PlannedCapacity",
    "check_capacity",
    "check_plan",
    "check_positive",
    "gpus_of",
    "invocations_target",
    "microseconds",
    "not_multiplied",
    "product",
    "utilization_target",
    "vcpus_of",
]

_PERCENT = RangeLimit(1, 100, "percent")


class PlannedCapacity(Protocol):
    """What a plan of capacity says, such as ``constructs_triton.planning.Plan``."""

    @property
    def instance_type(self) -> str:
        """The name of the instance type that was measured."""
        ...

    @property
    def min_capacity(self) -> float:
        """The fewest instances."""
        ...

    @property
    def max_capacity(self) -> float:
        """The most instances."""
        ...

    @property
    def target_invocations_per_minute(self) -> float:
        """Invocations that one instance shall answer in a minute."""
        ...


def check_capacity(min_capacity: float, max_capacity: float, *, is_asynchronous: bool = False) -> None:
    """Raise ``InvalidValueError`` unless the bounds are a range of instances.

    It begins at one, or at zero for an asynchronous endpoint, whose queue waits for the first instance.
    """
    if min_capacity == 0 and not is_asynchronous:
        raise InvalidValueError(
            f"min_capacity: must be {MIN_CAPACITY_REAL_TIME} on a real-time endpoint, got 0; "
            "raise it to 1 or make the endpoint asynchronous"
        )
    least = MIN_CAPACITY_ASYNC if is_asynchronous else MIN_CAPACITY_REAL_TIME
    check_range("min_capacity", min_capacity, least)
    check_range("max_capacity", max_capacity, MIN_CAPACITY_REAL_TIME)
    for name, value in (("min_capacity", min_capacity), ("max_capacity", max_capacity)):
        if is_concrete(value) and value != int(value):
            raise InvalidValueError(f"{name}: must be a number of instances, got {value:g}; round it")
    if is_concrete(min_capacity) and is_concrete(max_capacity) and min_capacity > max_capacity:
        raise InvalidValueError(
            f"min_capacity: must not be above max_capacity {max_capacity:g}, got {min_capacity:g}; "
            "lower it or raise max_capacity"
        )


def check_plan(plan: PlannedCapacity, instance_type: InstanceType) -> None:
    """Raise ``InvalidValueError`` where a plan was measured on another instance type."""
    check_has("plan", plan, "target_invocations_per_minute", "cheapest(plan_all(...))")
    if instance_type.is_known and plan.instance_type != instance_type.name:
        raise InvalidValueError(
            f'instance_type: the plan was measured on "{plan.instance_type}", got "{instance_type}"; '
            "use that type or a plan of this one"
        )


def gpus_of(instance_type: InstanceType, gpu_count: float | None) -> float:
    """The GPUs of one instance; raises ``InvalidValueError`` where there are none or nobody knows."""
    if gpu_count is None and instance_type.gpus == 0:
        raise InvalidValueError(
            f'instance_type: has no NVIDIA GPU to scale on, got "{instance_type}"; '
            "use a GPU instance type or scale_on_invocations_per_instance"
        )
    return _units("gpu_count", "GPUs", gpu_count, instance_type.gpus, instance_type)


def vcpus_of(instance_type: InstanceType, vcpu_count: float | None) -> float:
    """The vCPUs of one instance; raises ``InvalidValueError`` where nobody knows."""
    return _units("vcpu_count", "vCPUs", vcpu_count, instance_type.vcpus, instance_type)


def _units(
    property: str, units: str, given: float | None, known: float | None, instance_type: InstanceType
) -> float:
    if given is not None:
        check_range(property, given, RangeLimit(1, None, units))
        return given
    if known is None:
        is_named = is_concrete(instance_type.name)
        shown = f'instance type "{instance_type}"' if is_named else "one that is only known at deployment"
        raise InvalidValueError(
            f"{property}: the {units} of the instance type are not known, "
            f"got {shown}; say how many {units} one instance has"
        )
    return known


def utilization_target(percent: float, units: float) -> float:
    """The target for a metric that runs from 0 to 100 times ``units``."""
    check_range("target_utilization_percent", percent, _PERCENT)
    return product("target_utilization_percent", percent, units)


def invocations_target(per_minute: float | None, per_second: float | None, safety_factor: float) -> float:
    """Invocations of one instance a minute: as given, or of the most a second it bears, less safety."""
    if per_minute is not None and per_second is None:
        check_positive("target_invocations_per_minute", per_minute)
        return per_minute
    if per_second is not None and per_minute is None:
        check_positive("max_requests_per_second", per_second)
        check_positive("safety_factor", safety_factor)
        check_range("safety_factor", safety_factor, SAFETY_FACTOR)
        return product("max_requests_per_second", per_second, safety_factor * 60)
    given = "neither" if per_minute is None else "both"
    raise InvalidValueError(
        "target_invocations_per_minute: exactly one of it and max_requests_per_second decides the target, "
        f"got {given}; give one of them"
    )


def microseconds(property: str, duration: Duration) -> float:
    """A duration in the unit that SageMaker publishes latencies in."""
    check_type(property, duration, (Duration, "Duration.millis(300)"))
    if duration.is_unresolved():
        raise not_multiplied(property)
    value = float(duration.to_milliseconds()) * 1000
    check_positive(property, value)
    return value


def check_positive(property: str, value: float) -> None:
    """Raise ``InvalidValueError`` unless the value is above zero; a token passes."""
    check_range(property, value, RangeLimit(None, None))
    if is_concrete(value) and not value > 0:
        raise InvalidValueError(f"{property}: must be above 0, got {value:g}; raise it")


def product(property: str, value: float, factor: float) -> float:
    """``value * factor``; refuses a value that CloudFormation fills in later, since it cannot compute."""
    if factor == 1 or (is_concrete(value) and is_concrete(factor)):
        return value * factor
    raise not_multiplied(property)


def not_multiplied(property: str) -> InvalidValueError:
    """The error for a value that would have to be computed with at deployment."""
    return InvalidValueError(
        f"{property}: has to be multiplied, which CloudFormation cannot do, got a value that is only known "
        "at deployment; give a number"
    )
