"""Auto scaling of instance counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Annotations, Match
from cdk_apps import CPU, add_endpoint, only, synthesize

from constructs_triton import InstanceType
from constructs_triton_core.errors import InvalidValueError


def policy(stack: cdk.Stack) -> dict[str, Any]:
    properties = only(synthesize(stack), "AWS::ApplicationAutoScaling::ScalingPolicy")
    result: dict[str, Any] = properties["TargetTrackingScalingPolicyConfiguration"]
    return result


@pytest.mark.parametrize(("percent", "warnings"), [(9, 1), (10, 0)])
def test_low_utilization_target_is_a_warning(
    stack: cdk.Stack, tmp_path: Path, percent: float, warnings: int
) -> None:
    """A target below 10 percent is allowed with a warning; 10 percent has none."""
    count = add_endpoint(stack, tmp_path).auto_scale_instance_count(min_capacity=1, max_capacity=5)
    count.scale_on_cpu_utilization("Cpu", target_utilization_percent=percent)
    found = Annotations.from_stack(stack).find_warning("*", Match.string_like_regexp("almost idle"))
    assert len(found) == warnings


def test_unknown_type_needs_gpu_count(stack: cdk.Stack, tmp_path: Path) -> None:
    """An instance type newer than the table is accepted with its number of GPUs."""
    endpoint = add_endpoint(stack, tmp_path, instance_type=InstanceType.of("ml.g99.4xlarge"))
    count = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=5)
    with pytest.raises(
        InvalidValueError,
        match=r"gpu_count: the instance type must be known for the number of GPUs, got ml\.g99",
    ):
        count.scale_on_gpu_utilization("Gpu")
    count.scale_on_gpu_utilization("Gpu", gpu_count=2)
    assert policy(stack)["TargetValue"] == 120


@pytest.mark.parametrize(
    ("percent", "message"),
    [
        (0, "got 0; write for example 60"),
        (
            0.6,
            r"^target_utilization_percent: must be from 1 to 100 percent, got 0\.6; "
            r"did you mean 60\?$",
        ),
        (160, "got 160; lower it to 100"),
    ],
)
def test_utilization_out_of_range_is_refused(
    stack: cdk.Stack, tmp_path: Path, percent: float, message: str
) -> None:
    """The hint for 0 is a usual value, for a fraction the percentage that is meant,
    which is accepted.
    """
    count = add_endpoint(stack, tmp_path).auto_scale_instance_count(min_capacity=1, max_capacity=2)
    with pytest.raises(InvalidValueError, match=message):
        count.scale_on_gpu_utilization("Gpu", target_utilization_percent=percent)
    count.scale_on_gpu_utilization("Gpu", target_utilization_percent=60)


def test_gpu_policy_needs_a_gpu(stack: cdk.Stack, tmp_path: Path) -> None:
    """A policy on a metric that is never published would never act."""
    endpoint = add_endpoint(stack, tmp_path, instance_type=CPU)
    count = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=2)
    with pytest.raises(InvalidValueError, match="has no NVIDIA GPU"):
        count.scale_on_gpu_utilization("Gpu")


@pytest.mark.parametrize(
    ("given", "target"),
    [
        ({"target_invocations_per_minute": 900}, 900),
        ({"max_requests_per_second": 20}, 600),
        ({"max_requests_per_second": 20, "safety_factor": 0.8}, 960),
    ],
)
def test_invocations_target(
    stack: cdk.Stack, tmp_path: Path, given: dict[str, Any], target: float
) -> None:
    """Requests per second become invocations per minute, times the safety factor."""
    count = add_endpoint(stack, tmp_path).auto_scale_instance_count(min_capacity=1, max_capacity=2)
    count.scale_on_invocations_per_instance("Calls", **given)
    configuration = policy(stack)
    assert configuration["TargetValue"] == target
    assert configuration["PredefinedMetricSpecification"] == {
        "PredefinedMetricType": "SageMakerVariantInvocationsPerInstance"
    }


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "is required; set it, or set max_requests"),
        ({"target_invocations_per_minute": 1, "max_requests_per_second": 1}, "cannot be combined"),
        (
            {"max_requests_per_second": 1, "safety_factor": 150},
            "safety_factor: must be from 0 to 1, got 150; lo",
        ),
        ({"max_requests_per_second": 1, "safety_factor": 50}, r"got 50; did you mean 0\.5\?$"),
        ({"max_requests_per_second": 1, "safety_factor": 0}, "safety_factor: must be above 0"),
        ({"target_invocations_per_minute": 0}, "must be above 0"),
    ],
)
def test_invocations_target_is_refused(
    stack: cdk.Stack, tmp_path: Path, given: dict[str, Any], message: str
) -> None:
    """The target must be above 0 and set in one way only."""
    count = add_endpoint(stack, tmp_path).auto_scale_instance_count(min_capacity=1, max_capacity=2)
    with pytest.raises(InvalidValueError, match=message):
        count.scale_on_invocations_per_instance("Calls", **given)


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ((0, 2), "min_capacity: must be at least 1"),
        ((3, 2), "min_capacity: must not be above max_capacity 2, got 3"),
        ((2, 3), "initial_instance_count: must be within the scaling bounds 2 to 3, got 1"),
    ],
)
def test_bounds_are_checked(
    stack: cdk.Stack, tmp_path: Path, bounds: tuple[int, int], message: str
) -> None:
    """The bounds have at least one instance and contain the initial count."""
    endpoint = add_endpoint(stack, tmp_path)
    with pytest.raises(InvalidValueError, match=message):
        endpoint.auto_scale_instance_count(min_capacity=bounds[0], max_capacity=bounds[1])


def test_second_scaling_of_a_variant_is_refused(stack: cdk.Stack, tmp_path: Path) -> None:
    """A variant has one scalable target; the error says where to add further policies."""
    endpoint = add_endpoint(stack, tmp_path)
    count = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=2)
    with pytest.raises(InvalidValueError, match="add policies to the result of the first call"):
        endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=2)
    assert endpoint.variants[0].scalable_instance_count is count
