"""Scaling of imported endpoints, with a plan, and with all policies together."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_applicationautoscaling as appscaling
from cdk_apps import add_endpoint, import_endpoint, only, only_variant, resources, synthesize
from syrupy.assertion import SnapshotAssertion

from constructs_triton import InstanceType
from constructs_triton.testing import TritonTemplateExtension, stable_template
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.planning import Measurement, Plan, Requirement, plan_all

POLICY, TARGET = (
    "AWS::ApplicationAutoScaling::ScalingPolicy",
    "AWS::ApplicationAutoScaling::ScalableTarget",
)


def make_plan(instance_type: str = "ml.g5.xlarge") -> Plan:
    measured = Measurement(
        configuration="base",
        instance_type=instance_type,
        invocations_per_minute=1200,
        latency_ms=80,
        price_per_hour=1,
    )
    (plan,) = plan_all([measured], Requirement(requests_per_second=50))
    return plan


def test_plan_for_streams_scales_on_concurrent_requests(stack: cdk.Stack) -> None:
    """Invocations per minute say little where streams hold their places for long."""
    measured = Measurement(
        configuration="decoder",
        instance_type="ml.g5.xlarge",
        invocations_per_minute=240,
        latency_ms=1100,
        price_per_hour=1,
        concurrency=8,
    )
    (plan,) = plan_all([measured], Requirement(concurrent_streams=30))
    endpoint = import_endpoint(stack, variants={"blue": InstanceType.of("ml.g5.xlarge")})
    endpoint.apply_plan(plan)
    template = synthesize(stack)
    assert only(template, TARGET)["MaxCapacity"] == 8
    policy = only(template, POLICY)["TargetTrackingScalingPolicyConfiguration"]
    assert policy["TargetValue"] == 4
    name = policy["PredefinedMetricSpecification"]["PredefinedMetricType"]
    assert name == "SageMakerVariantConcurrentRequestsPerModelHighResolution"


def test_endpoint_accepts_a_plan(stack: cdk.Stack, tmp_path: Path) -> None:
    """Count, bounds and target are those of a plan for 50 requests a second."""
    plan = make_plan()
    endpoint = add_endpoint(stack, tmp_path, initial_instance_count=plan.initial_instance_count)
    endpoint.apply_plan(plan).scale_on_gpu_utilization("Gpu")
    template = synthesize(stack)
    target = only(template, TARGET)
    policies = [each["Properties"] for each in resources(template, POLICY).values()]
    assert only_variant(template)["InitialInstanceCount"] == 3
    assert (target["MinCapacity"], target["MaxCapacity"]) == (1, 5)
    assert policies[0]["TargetTrackingScalingPolicyConfiguration"]["TargetValue"] == 600


def test_plan_of_another_type_is_refused(stack: cdk.Stack) -> None:
    """A plan for one instance type does not apply to another."""
    endpoint = import_endpoint(stack, variants={"blue": InstanceType.of("ml.g5.xlarge")})
    with pytest.raises(
        InvalidValueError, match=r'the plan is for "ml\.g5\.2xlarge", got "ml\.g5\.xlarge"'
    ):
        endpoint.apply_plan(make_plan("ml.g5.2xlarge"))


def test_all_policies_of_a_real_time_endpoint(
    stack: cdk.Stack, snapshot: SnapshotAssertion
) -> None:
    """The scaling resources of a real-time endpoint with every policy are as recorded."""
    endpoint = import_endpoint(stack, id="E", variants={"blue": InstanceType.of("ml.g5.12xlarge")})
    count = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=8)
    count.scale_on_gpu_utilization("Gpu")
    count.scale_on_gpu_memory_utilization("GpuMemory", target_utilization_percent=80)
    count.scale_on_cpu_utilization("Cpu")
    count.scale_on_invocations_per_instance("Calls", max_requests_per_second=20)
    count.scale_on_concurrent_requests("Busy", target_concurrent_requests=8)
    count.scale_on_model_latency(
        "Latency", target_latency=cdk.Duration.millis(100), statistic="p90"
    )
    count.scale_on_schedule(
        "Night", schedule=appscaling.Schedule.cron(hour="22", minute="0"), max_capacity=2
    )
    assert shown(stable_template(stack)) == snapshot(extension_class=TritonTemplateExtension)


def test_all_policies_of_an_asynchronous_endpoint(
    stack: cdk.Stack, snapshot: SnapshotAssertion
) -> None:
    """The scaling resources of an endpoint that scales to zero instances are as recorded."""
    endpoint = import_endpoint(stack, id="E", is_asynchronous=True)
    count = endpoint.auto_scale_instance_count(min_capacity=0, max_capacity=4)
    count.scale_on_backlog("Backlog", target_backlog_per_instance=5)
    assert shown(stable_template(stack)) == snapshot(extension_class=TritonTemplateExtension)


def shown(template: dict[str, Any]) -> dict[str, Any]:
    """Return the scaling resources by logical ID."""
    types = (TARGET, POLICY, "AWS::CloudWatch::Alarm")
    return {resource_type: resources(template, resource_type) for resource_type in types}
