"""A plan's numbers are what the constructs take."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aws_cdk as cdk
from aws_cdk.assertions import Template

from constructs_triton.cdk.scaling import TritonScalableInstanceCount
from constructs_triton.facts.instance_types import InstanceType
from constructs_triton.planning import Plan, Requirement, cheapest, plan_all, read_measurements

BENCHMARK = Path(__file__).parent / "bert_benchmark.csv"
PRICES = {"ml.g4dn.xlarge": 0.7364, "ml.g4dn.2xlarge": 0.94, "ml.g4dn.12xlarge": 4.89}


def synthesized(plan: Plan, **target: float) -> tuple[dict[str, Any], dict[str, Any]]:
    """The properties of the scalable target and of its policy."""
    stack = cdk.Stack(cdk.App(), "Stack")
    TritonScalableInstanceCount(
        stack,
        "Scaling",
        endpoint_name="endpoint",
        variant_name="AllTraffic",
        instance_type=InstanceType.of(plan.instance_type),
        min_capacity=plan.min_capacity,
        max_capacity=plan.max_capacity,
    ).scale_on_invocations_per_instance("Invocations", **target)
    template = Template.from_stack(stack)
    kinds = ("ScalableTarget", "ScalingPolicy")
    scalable, policy = (
        next(iter(template.find_resources(f"AWS::ApplicationAutoScaling::{kind}").values()))["Properties"]
        for kind in kinds
    )
    return scalable, policy


def test_target_means_what_the_construct_means() -> None:
    """The planned target is what the construct computes from requests per second and safety factor."""
    requirement = Requirement(requests_per_second=500, latency_ms=500, safety_factor=0.6)
    plan = cheapest(plan_all(read_measurements(BENCHMARK), requirement, PRICES))
    planned = synthesized(plan, target_invocations_per_minute=plan.target_invocations_per_minute)
    computed = synthesized(plan, max_requests_per_second=1335 / 60, safety_factor=0.6)
    assert planned == computed
    scalable, policy = planned
    assert (scalable["MinCapacity"], scalable["MaxCapacity"]) == (1, 38)
    assert policy["TargetTrackingScalingPolicyConfiguration"]["TargetValue"] == 801
