"""Auto scaling of instance counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Annotations, Match
from cdk_apps import add_endpoint, flat, only, resources, synthesize

from constructs_triton import InstanceType, TritonVariant
from constructs_triton_core.errors import InvalidValueError

PUBLISHED_POLICY = {
    # The parameters of the call in AWS's Triton example for multi-model endpoints.
    "TargetValue": 60,
    "CustomizedMetricSpecification": {
        "MetricName": "GPUUtilization",
        "Namespace": "/aws/sagemaker/Endpoints",
        "Statistic": "Average",
        "Unit": "Percent",
    },
    "ScaleInCooldown": 600,
    "ScaleOutCooldown": 200,
}


def policy(stack: cdk.Stack) -> dict[str, Any]:
    properties = only(synthesize(stack), "AWS::ApplicationAutoScaling::ScalingPolicy")
    result: dict[str, Any] = properties["TargetTrackingScalingPolicyConfiguration"]
    return result


def test_fraction_is_recognized_as_a_percentage(stack: cdk.Stack, tmp_path: Path) -> None:
    """A target of 0.6 raises an error that proposes 60, and 60 is accepted."""
    count = add_endpoint(stack, tmp_path).auto_scale_instance_count(min_capacity=1, max_capacity=5)
    message = r"^target_utilization_percent: must be from 1 to 100 percent, got 0\.6; did you mean 60\?$"
    with pytest.raises(InvalidValueError, match=message):
        count.scale_on_gpu_utilization("Gpu", target_utilization_percent=0.6)
    count.scale_on_gpu_utilization("Gpu", target_utilization_percent=60)


@pytest.mark.parametrize(("percent", "warnings"), [(9, 1), (10, 0)])
def test_low_utilization_target_is_a_warning(
    stack: cdk.Stack, tmp_path: Path, percent: float, warnings: int
) -> None:
    """A target below 10 percent is allowed with a warning; 10 percent has none."""
    count = add_endpoint(stack, tmp_path).auto_scale_instance_count(min_capacity=1, max_capacity=5)
    count.scale_on_cpu_utilization("Cpu", target_utilization_percent=percent)
    found = Annotations.from_stack(stack).find_warning("*", Match.string_like_regexp("almost idle"))
    assert len(found) == warnings


def test_misspelt_keyword_has_a_suggestion(stack: cdk.Stack, tmp_path: Path) -> None:
    """The suggestion comes from the method's keywords and from those of all policies."""
    count = add_endpoint(stack, tmp_path).auto_scale_instance_count(min_capacity=1, max_capacity=5)
    misspelt: dict[str, Any] = {"target_utilization": 60}
    with pytest.raises(
        TypeError, match=r"scale_on_gpu_utilization\(\) got .*mean \"target_utilization_percent"
    ):
        count.scale_on_gpu_utilization("Gpu", **misspelt)
    misspelt = {"scale_in_cooldwn": None}
    with pytest.raises(TypeError, match='did you mean "scale_in_cooldown"'):
        count.scale_on_gpu_utilization("Gpu", **misspelt)


def test_gpu_policy_equals_the_published_example(stack: cdk.Stack, tmp_path: Path) -> None:
    """The default is 60 percent, with cooldowns of 600 s in and 200 s out."""
    endpoint = add_endpoint(stack, tmp_path)
    endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=5).scale_on_gpu_utilization("Gpu")
    configuration = policy(stack)
    dimensions = configuration["CustomizedMetricSpecification"].pop("Dimensions")
    assert {key: configuration[key] for key in PUBLISHED_POLICY} == PUBLISHED_POLICY
    assert [each["Name"] for each in dimensions] == ["EndpointName", "VariantName"]
    assert dimensions[1]["Value"] == "AllTraffic"


def test_scalable_target_has_the_service_linked_role(stack: cdk.Stack, tmp_path: Path) -> None:
    """The target refers to the endpoint, and no role is created for it."""
    endpoint = add_endpoint(stack, tmp_path, variant_name="blue")
    endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=5)
    template = synthesize(stack)
    target = only(template, "AWS::ApplicationAutoScaling::ScalableTarget")
    (logical_id,) = resources(template, "AWS::SageMaker::Endpoint")
    assert flat(target["ResourceId"]) == f"endpoint/<{logical_id}.EndpointName>/variant/blue"
    assert (target["MinCapacity"], target["MaxCapacity"]) == (1, 5)
    assert flat(target["RoleARN"]).endswith(
        ":role/aws-service-role/sagemaker.application-autoscaling.amazonaws.com/"
        "AWSServiceRoleForApplicationAutoScaling_SageMakerEndpoint"
    )


@pytest.mark.parametrize(
    ("instance_type", "target"), [("ml.g5.xlarge", 60), ("ml.g5.12xlarge", 240), ("ml.p4d.24xlarge", 480)]
)
def test_gpu_target_counts_the_gpus(
    stack: cdk.Stack, tmp_path: Path, instance_type: str, target: int
) -> None:
    """The maximum of the metric is 100 times the GPUs, so 60 percent of four GPUs is 240."""
    endpoint = add_endpoint(stack, tmp_path, instance_type=InstanceType.of(instance_type))
    endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=5).scale_on_gpu_utilization("Gpu")
    assert policy(stack)["TargetValue"] == target


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
    ("given", "message"),
    [
        ({"target_utilization_percent": 0}, "got 0; write for example 60"),
        ({"target_utilization_percent": 160}, "got 160; lower it to 100"),
    ],
)
def test_utilization_out_of_range_is_refused(
    stack: cdk.Stack, tmp_path: Path, given: dict[str, Any], message: str
) -> None:
    """The hint for 0 is a usual value, because a target of 1 percent would keep instances idle."""
    count = add_endpoint(stack, tmp_path).auto_scale_instance_count(min_capacity=1, max_capacity=2)
    with pytest.raises(InvalidValueError, match=message):
        count.scale_on_gpu_utilization("Gpu", **given)


def test_gpu_policy_needs_a_gpu(stack: cdk.Stack, tmp_path: Path) -> None:
    """A policy on a metric that is never published would never act."""
    count = add_endpoint(
        stack, tmp_path, instance_type=InstanceType.of("ml.c5.xlarge")
    ).auto_scale_instance_count(min_capacity=1, max_capacity=2)
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
def test_invocations_target(stack: cdk.Stack, tmp_path: Path, given: dict[str, Any], target: float) -> None:
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
def test_bounds_are_checked(stack: cdk.Stack, tmp_path: Path, bounds: tuple[int, int], message: str) -> None:
    """The bounds have at least one instance and contain the initial count."""
    endpoint = add_endpoint(stack, tmp_path)
    with pytest.raises(InvalidValueError, match=message):
        endpoint.auto_scale_instance_count(min_capacity=bounds[0], max_capacity=bounds[1])


def test_deployment_keeps_the_count_and_nothing_else(stack: cdk.Stack, tmp_path: Path) -> None:
    """With scaling, a deployment keeps the instance count, and applies a changed weight or capture."""
    endpoint = add_endpoint(stack, tmp_path)
    endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=2)
    properties = only(synthesize(stack), "AWS::SageMaker::Endpoint")
    assert properties["RetainAllVariantProperties"] is True
    assert [each["VariantPropertyType"] for each in properties["ExcludeRetainedVariantProperties"]] == [
        "DesiredWeight",
        "DataCaptureConfig",
    ]


def test_without_scaling_a_deployment_sets_the_count(stack: cdk.Stack, tmp_path: Path) -> None:
    """Without scaling, a deployment sets the instance count of the template."""
    add_endpoint(stack, tmp_path)
    assert "RetainAllVariantProperties" not in only(synthesize(stack), "AWS::SageMaker::Endpoint")


def test_several_policies_and_endpoints(stack: cdk.Stack, tmp_path: Path) -> None:
    """Two endpoints with two policies each are in one stack."""
    for name in ("A", "B"):
        endpoint = add_endpoint(stack, tmp_path, id=name)
        count = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=2)
        count.scale_on_gpu_utilization("Gpu", disable_scale_in=True)
        count.scale_on_invocations_per_instance("Calls", target_invocations_per_minute=100)
    assert len(resources(synthesize(stack), "AWS::ApplicationAutoScaling::ScalingPolicy")) == 4


def test_second_scaling_of_a_variant_is_refused(stack: cdk.Stack, tmp_path: Path) -> None:
    """A variant has one scalable target; the error says where to add further policies."""
    endpoint = add_endpoint(stack, tmp_path)
    count = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=2)
    with pytest.raises(InvalidValueError, match="add policies to the result of the first call"):
        endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=2)
    assert endpoint.variants[0].scalable_instance_count is count


def test_two_variants_of_one_endpoint_scale(stack: cdk.Stack, tmp_path: Path) -> None:
    """Each variant has its own IDs, target and metric dimensions."""
    green = TritonVariant(variant_name="green", instance_type=InstanceType.of("ml.g5.12xlarge"))
    endpoint = add_endpoint(stack, tmp_path, variants=[TritonVariant(variant_name="blue"), green])
    for variant in endpoint.variants:
        count = variant.auto_scale_instance_count(min_capacity=1, max_capacity=2)
        count.scale_on_gpu_utilization("Gpu")
    template = synthesize(stack)
    targets = resources(template, "AWS::ApplicationAutoScaling::ScalableTarget").values()
    policies = resources(template, "AWS::ApplicationAutoScaling::ScalingPolicy").values()
    assert {flat(each["Properties"]["ResourceId"]).rsplit("/", 1)[1] for each in targets} == {"blue", "green"}
    tracked = [each["Properties"]["TargetTrackingScalingPolicyConfiguration"] for each in policies]
    assert sorted(each["TargetValue"] for each in tracked) == [60, 240]
