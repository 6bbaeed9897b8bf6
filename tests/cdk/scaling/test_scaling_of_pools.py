"""Scaling, plans, metrics and the scaling guard of a variant with several instance types."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk.assertions import Annotations, Match
from cdk_apps import add_endpoint, make_stack, only, resources, synthesize

from constructs_triton import InstancePool, InstanceType, TritonDashboard, TritonEndpoint
from constructs_triton.cdk.scaling.scalable_instance_count import TritonScalableInstanceCount
from constructs_triton_core.errors import InvalidValueError

L4 = InstanceType.of("ml.g6.2xlarge")
A10G = InstanceType.of("ml.g5.2xlarge")
FOUR = InstanceType.of("ml.g5.12xlarge")
LOADS = {"ml.g6.2xlarge": 7, "ml.g5.2xlarge": 12}


def make_endpoint(path: Path, *types: InstanceType, **props: Any) -> TritonEndpoint:
    pools = [InstancePool(each) for each in types or (L4, A10G)]
    return add_endpoint(make_stack(), path, instance_type=None, instance_pools=pools, **props)


def scaled(path: Path, *types: InstanceType, **props: Any) -> TritonScalableInstanceCount:
    return make_endpoint(path, *types, **props).auto_scale_instance_count(
        min_capacity=1, max_capacity=4
    )


def template_of(construct: Any) -> dict[str, Any]:
    return synthesize(cdk.Stack.of(construct))


def test_load_of_the_busiest_type_is_tracked(tmp_path: Path) -> None:
    """The expression is the maximum over the types, each by its own capacity;
    a silent type counts as 0.
    """
    count = scaled(tmp_path)
    count.scale_on_concurrent_requests_by_type("Load", max_concurrent_requests=LOADS)
    template = template_of(count)
    policy = only(template, "AWS::ApplicationAutoScaling::ScalingPolicy")
    tracking = policy["TargetTrackingScalingPolicyConfiguration"]
    assert tracking["TargetValue"] == 70
    *metrics, result = tracking["CustomizedMetricSpecification"]["Metrics"]
    assert result == {
        "Id": "result",
        "Expression": "100 * MAX([FILL(load0, 0) / 7, FILL(load1, 0) / 12])",
        "ReturnData": True,
    }
    dimensions = [
        {each["Name"]: each["Value"] for each in one["MetricStat"]["Metric"]["Dimensions"]}
        for one in metrics
    ]
    assert [each["InstanceType"] for each in dimensions] == ["ml.g6.2xlarge", "ml.g5.2xlarge"]
    assert set(dimensions[0]) == {"EndpointName", "VariantName", "InstanceType"}


def test_lost_metrics_have_an_alarm(tmp_path: Path) -> None:
    """FILL turns lost metrics into no load, so an alarm watches that some type publishes values."""
    count = scaled(tmp_path)
    count.scale_on_concurrent_requests_by_type("Load", max_concurrent_requests=LOADS)
    (alarm,) = count.missing_data_alarms
    properties = only(template_of(count), "AWS::CloudWatch::Alarm")
    assert alarm.node.path.endswith("LoadMissingData")
    assert properties["TreatMissingData"] == "breaching"
    assert (properties["Threshold"], properties["ComparisonOperator"]) == (1, "LessThanThreshold")
    assert properties["Metrics"][0]["Expression"] == "FILL(samples0, 0) + FILL(samples1, 0)"


@pytest.mark.parametrize(
    ("loads", "message"),
    [
        ({"ml.g6.2xlarge": 7}, 'has none for "ml.g5.2xlarge"'),
        (
            {**LOADS, "ml.g4dn.xlarge": 3},
            'must have the instance types of the variant, got "ml.g4dn.xlarge"',
        ),
        (
            {**LOADS, "ml.g5.2xlarge": 0},
            r'max_concurrent_requests\["ml.g5.2xlarge"\]: must be above 0, got 0',
        ),
        ({**LOADS, "ml.g5.2xlarge": "12"}, r'\["ml.g5.2xlarge"\]: must be a number, got "12"'),
        ({**LOADS, "ml.g5.2xlarge": cdk.Token.as_number({"Ref": "P"})}, "has to be multiplied"),
    ],
)
def test_load_of_each_type_is_required(loads: dict[str, Any], message: str, tmp_path: Path) -> None:
    """A type without its capacity, or a capacity of no type, is an error."""
    with pytest.raises(InvalidValueError, match=message):
        scaled(tmp_path).scale_on_concurrent_requests_by_type("Load", max_concurrent_requests=loads)


def test_loads_by_type_need_pools(tmp_path: Path) -> None:
    """With one instance type, SageMaker publishes no metrics by type."""
    count = scaled(tmp_path, L4)
    with pytest.raises(
        InvalidValueError, match="use a policy without them, such as scale_on_concurrent_req"
    ):
        count.scale_on_concurrent_requests_by_type(
            "Load", max_concurrent_requests={"ml.g6.2xlarge": 7}
        )


def test_invocations_are_those_of_the_slowest_type(tmp_path: Path) -> None:
    """InvocationsPerInstance is one number for all types, so the slowest decides."""
    count = scaled(tmp_path)
    rates = {"ml.g6.2xlarge": 10.0, "ml.g5.2xlarge": 20.0}
    count.scale_on_invocations_per_instance("Calls", max_requests_per_second=rates)
    stack = cdk.Stack.of(count)
    policy = only(synthesize(stack), "AWS::ApplicationAutoScaling::ScalingPolicy")
    assert policy["TargetTrackingScalingPolicyConfiguration"]["TargetValue"] == 10 * 0.5 * 60
    assert not Annotations.from_stack(stack).find_warning("*", Match.any_value())


@pytest.mark.parametrize(
    ("types", "is_warned"), [((L4, A10G), True), ((A10G, FOUR), True), ((L4,), False)]
)
def test_one_target_for_different_types_is_a_warning(
    types: tuple[InstanceType, ...], is_warned: bool, tmp_path: Path
) -> None:
    """A target that is not given by type may be too high for one of them."""
    count = scaled(tmp_path, *types)
    count.scale_on_invocations_per_instance("Calls", target_invocations_per_minute=600)
    stack = cdk.Stack.of(count)
    synthesize(stack)
    found = Annotations.from_stack(stack).find_warning("*", Match.any_value())
    assert is_warned == any("instance-pools-one-load" in str(each.entry.data) for each in found)


def test_utilization_needs_equal_numbers_of_gpus(tmp_path: Path) -> None:
    """The range of GPU utilization is 0 to 100 times the GPUs, also when their number is given."""
    count = scaled(tmp_path, A10G, FOUR)
    for policy in (count.scale_on_gpu_utilization, count.scale_on_gpu_memory_utilization):
        with pytest.raises(
            InvalidValueError, match=r"got ml\.g5\.2xlarge: 1, ml\.g5\.12xlarge: 4; use scale_on"
        ):
            policy("Gpu", gpu_count=1)
    with pytest.raises(InvalidValueError, match=r"^CPUUtilization: .*different numbers of vCPUs"):
        count.scale_on_cpu_utilization("Cpu")


def test_utilization_of_types_with_one_gpu_each(tmp_path: Path) -> None:
    """Types with the same number of GPUs have one target."""
    count = scaled(tmp_path)
    count.scale_on_gpu_utilization("Gpu", target_utilization_percent=60)
    policy = only(template_of(count), "AWS::ApplicationAutoScaling::ScalingPolicy")
    assert policy["TargetTrackingScalingPolicyConfiguration"]["TargetValue"] == 60


def test_plan_of_one_type_is_not_applied_to_several(tmp_path: Path) -> None:
    """The error shows the policy to use, with the types to fill in."""
    plan: Any = SimpleNamespace(
        instance_type="ml.g6.2xlarge",
        min_capacity=1,
        max_capacity=2,
        target_invocations_per_minute=60,
    )
    (variant,) = make_endpoint(tmp_path).variants
    with pytest.raises(
        InvalidValueError, match=r'max_requests_per_second=\{"ml\.g6\.2xlarge": \.\.\., "ml'
    ):
        variant.apply_plan(plan)


def test_guard_treats_pools_as_a_type(tmp_path: Path) -> None:
    """The guard's resources have all types in order of priority,
    so another order is another type.
    """
    count = scaled(tmp_path, scaling_guard=True)
    count.scale_on_concurrent_requests_by_type("Load", max_concurrent_requests=LOADS)
    template = template_of(count)
    (gate,) = resources(template, "Custom::TritonScalingGate").values()
    assert gate["Properties"]["InstanceTypes"] == {"AllTraffic": "ml.g6.2xlarge,ml.g5.2xlarge"}
    assert json.dumps(template).count('"InstanceType": "ml.g6.2xlarge,ml.g5.2xlarge"') == 2


def test_dashboard_has_a_row_by_type(tmp_path: Path) -> None:
    """Utilization and latency of each type are beside those of the variant."""
    endpoint = make_endpoint(tmp_path, A10G, FOUR)
    stack = cdk.Stack.of(endpoint)
    TritonDashboard(stack, "Dashboard", endpoints=[endpoint])
    body = json.dumps(only(synthesize(stack), "AWS::CloudWatch::Dashboard"))
    assert "AllTraffic: GPUUtilization by instance type" in body
    assert '\\"InstanceType\\",\\"ml.g5.12xlarge\\"' in body
    assert "m1 / 4" in body
