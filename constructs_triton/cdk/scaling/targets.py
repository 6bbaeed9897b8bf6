"""Numbers of scaling policies: bounds of capacity, and targets in the unit of the metric."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from aws_cdk import Duration

from constructs_triton.cdk.validation.property_types import check_has, check_type, shown
from constructs_triton.cdk.validation.read_once import milliseconds_of
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_core.facts.limits import (
    MIN_CAPACITY_ASYNC,
    MIN_CAPACITY_REAL_TIME,
    SAFETY_FACTOR,
    RangeLimit,
)
from constructs_triton_core.limit_checks import check_range
from constructs_triton_core.tokens import is_lookup_dummy, is_token

SERVICE_NAME = "sagemaker.application-autoscaling.amazonaws.com"
"""The service that the role is linked to, as ``iam:AWSServiceName`` names it."""

_ROLE_NAME = "AWSServiceRoleForApplicationAutoScaling_SageMakerEndpoint"


def service_linked_role_arn(partition: str, account: str) -> str:
    """Return the role's ARN.

    Source: Application Auto Scaling user guide, "Service-linked roles for Application Auto
    Scaling".
    """
    return f"arn:{partition}:iam::{account}:role/aws-service-role/{SERVICE_NAME}/{_ROLE_NAME}"


_PERCENT = RangeLimit(1, 100, "percent")


class CapacityPlan(Protocol):
    """A plan of the capacity of one variant, such as ``constructs_triton_tools.planning.Plan``."""

    @property
    def instance_type(self) -> str:
        """The name of the instance type that was measured."""

    @property
    def min_capacity(self) -> float:
        """Minimum number of instances."""

    @property
    def max_capacity(self) -> float:
        """Maximum number of instances."""

    @property
    def target_invocations_per_minute(self) -> float:
        """Target for the number of invocations per instance and minute."""


def least_instances(*, is_asynchronous: bool) -> RangeLimit:
    """Return the limit of a variant's minimum: on asynchronous endpoints,
    requests wait for an instance.
    """
    return MIN_CAPACITY_ASYNC if is_asynchronous else MIN_CAPACITY_REAL_TIME


def check_capacity(min_capacity: float, max_capacity: float, least: RangeLimit) -> None:
    """Check the bounds of a number of instances or copies.

    ``least`` is the limit of the minimum.
    """
    if min_capacity == 0 and least == MIN_CAPACITY_REAL_TIME:
        raise InvalidValueError(
            f"min_capacity: must be {MIN_CAPACITY_REAL_TIME} on a real-time endpoint, got 0; "
            "raise it to 1, or set async_inference on the endpoint"
        )
    check_range("min_capacity", min_capacity, least)
    check_range("max_capacity", max_capacity, replace(least, minimum=1))
    if not (is_token(min_capacity) or is_token(max_capacity)) and min_capacity > max_capacity:
        raise InvalidValueError(
            f"min_capacity: must not be above max_capacity {max_capacity:g}, got {min_capacity:g}; "
            "lower it or raise max_capacity"
        )


def check_initial(
    property: str, count: float | None, min_capacity: float, max_capacity: float
) -> None:
    """Check that a number at the first deployment is within the bounds of scaling; tokens pass."""
    if count is None or any(is_token(each) for each in (count, min_capacity, max_capacity)):
        return
    if not min_capacity <= count <= max_capacity:
        raise InvalidValueError(
            f"{property}: must be within the scaling bounds {min_capacity:g} to {max_capacity:g}, "
            f"got {count:g}; change it, or change min_capacity or max_capacity"
        )


def check_plan(plan: CapacityPlan, instance_types: Sequence[InstanceType]) -> None:
    """Check that a plan was measured on the variant's only instance type."""
    check_has("plan", plan, "target_invocations_per_minute", "cheapest(plan_all(...))")
    if len(instance_types) > 1:
        rates = ", ".join(f'"{each}": ...' for each in instance_types)
        raise InvalidValueError(
            "plan: is for one instance type, and the variant has instance_pools; call "
            "auto_scale_instance_count, then scale_on_invocations_per_instance with "
            f"max_requests_per_second={{{rates}}}"
        )
    instance_type = instance_types[0]
    if is_token(plan.instance_type):
        raise InvalidValueError(
            "instance_type: must be known at synth in a plan, because the plan is for one type, "
            f'got {shown(plan.instance_type)}; write "{instance_type}"'
        )
    if instance_type.is_known and plan.instance_type != instance_type.name:
        raise InvalidValueError(
            f'instance_type: the plan is for "{plan.instance_type}", got "{instance_type}"; '
            f'set instance_type to "{plan.instance_type}", or make a plan for "{instance_type}"'
        )


def gpus_of(instance_type: InstanceType, gpu_count: float | None) -> float:
    """Return the number of GPUs of one instance.

    Raises:
        InvalidValueError: the type has no GPUs, or their number is unknown and ``gpu_count`` is
            ``None``.
    """
    if gpu_count is None and instance_type.gpus == 0:
        raise InvalidValueError(
            f'instance_type: "{instance_type}" has no NVIDIA GPU; '
            "use a GPU instance type, or scale_on_invocations_per_instance"
        )
    return _units("gpu_count", "GPUs", gpu_count, instance_type.gpus, instance_type)


def vcpus_of(instance_type: InstanceType, vcpu_count: float | None) -> float:
    """Return the number of vCPUs of one instance.

    Raises:
        InvalidValueError: their number is unknown and ``vcpu_count`` is ``None``.
    """
    return _units("vcpu_count", "vCPUs", vcpu_count, instance_type.vcpus, instance_type)


def _units(
    property: str, units: str, given: float | None, known: float | None, instance_type: InstanceType
) -> float:
    if given is not None:
        check_range(property, given, RangeLimit(1, None, units))
        if is_token(given):
            raise not_multiplied(property)
        return given
    if is_lookup_dummy(instance_type.name):
        return 1  # the next synthesis has the type
    if known is None:
        name = instance_type.name
        got = "a value that is known only at deployment" if is_token(name) else name
        raise InvalidValueError(
            f"{property}: the instance type must be known for the number of {units}, got {got}; "
            f"set {property} to the {units} of one instance"
        )
    return known


def utilization_target(percent: float, units: float) -> float:
    """Return the target of a metric whose range is 0 to 100 times ``units``.

    Raises:
        InvalidValueError: not a percentage, or a fraction such as 0.6.
    """
    if not is_token(percent) and percent == 0:
        raise InvalidValueError(
            f"target_utilization_percent: must be {_PERCENT}, got 0; write for example 60"
        )
    check_range("target_utilization_percent", percent, _PERCENT)
    return product("target_utilization_percent", percent, units)


def invocations_target(
    per_minute: float | None, per_second: float | None, safety_factor: float
) -> float:
    """Return the target for invocations per instance and minute.

    It is ``per_minute``, or ``per_second`` times ``safety_factor`` times 60.

    Raises:
        InvalidValueError: both or neither are set, or a value is out of range.
    """
    if per_minute is not None and per_second is None:
        check_positive("target_invocations_per_minute", per_minute)
        return per_minute
    if per_second is not None and per_minute is None:
        check_positive("max_requests_per_second", per_second)
        check_positive("safety_factor", safety_factor)
        if not is_token(safety_factor) and 1 < safety_factor <= 100:
            raise InvalidValueError(
                f"safety_factor: must be {SAFETY_FACTOR}, got {safety_factor:g}; "
                f"did you mean {safety_factor / 100:g}?"
            )
        check_range("safety_factor", safety_factor, SAFETY_FACTOR)
        if is_token(safety_factor):
            raise not_multiplied("safety_factor")
        return product("max_requests_per_second", per_second, safety_factor * 60)
    if per_minute is None:
        raise InvalidValueError(
            "target_invocations_per_minute: is required; set it, or set max_requests_per_second"
        )
    raise InvalidValueError(
        "target_invocations_per_minute: cannot be combined "
        "with max_requests_per_second; remove one of them"
    )


def microseconds(property: str, duration: Duration) -> float:
    """Convert a duration to microseconds, the unit in which SageMaker publishes latencies.

    Raises:
        InvalidValueError: not a duration, a token, or not above 0.
    """
    check_type(property, duration, (Duration, "Duration.millis(300)"))
    milliseconds = milliseconds_of(duration)
    if milliseconds is None:
        raise not_multiplied(property)
    value = milliseconds * 1000
    check_positive(property, value)
    return value


def check_positive(property: str, value: float) -> None:
    """Check that a number is above 0. CDK tokens pass."""
    check_range(property, value, RangeLimit(None, None))
    if not is_token(value) and not value > 0:
        raise InvalidValueError(f"{property}: must be above 0, got {value:g}; raise it")


def product(property: str, value: float, factor: float) -> float:
    """Multiply two numbers.

    Raises:
        InvalidValueError: one of them is a CDK token, which CloudFormation cannot multiply.
    """
    if factor == 1 or (not is_token(value) and not is_token(factor)):
        return value * factor
    raise not_multiplied(property)


def not_multiplied(property: str) -> InvalidValueError:
    """Return the error for a token that CloudFormation would have to multiply."""
    return InvalidValueError(
        f"{property}: has to be multiplied, which CloudFormation cannot do, got a value that is "
        "known only at deployment; set a number"
    )
