"""The constructs accept the numbers of a plan."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aws_cdk as cdk
from aws_cdk.assertions import Template
from cdk_apps import add_ensemble, only, only_variant

from constructs_triton import InstanceType
from constructs_triton_tools.planning import (
    Plan,
    Requirement,
    cheapest,
    plan_all,
    read_measurements,
)

BENCHMARK = (
    Path(__file__).parents[3] / "packages" / "tools" / "tests" / "planning" / "bert_benchmark.csv"
)
MODELS = Path(__file__).parents[3] / "assets" / "model_repositories" / "digits"
PRICES = {"ml.g4dn.xlarge": 0.7364, "ml.g4dn.2xlarge": 0.94, "ml.g4dn.12xlarge": 4.89}


def synthesized(plan: Plan, **target: Any) -> dict[str, Any]:
    """Return the template of an endpoint of the plan's size that scales on invocations."""
    stack = cdk.Stack(cdk.App(), "Stack")
    machine, count = InstanceType.of(plan.instance_type), plan.initial_instance_count
    endpoint = add_ensemble(
        stack, MODELS, ensemble="digits", instance_type=machine, initial_instance_count=count
    )
    scaling = endpoint.auto_scale_instance_count(
        min_capacity=plan.min_capacity, max_capacity=plan.max_capacity
    )
    scaling.scale_on_invocations_per_instance("Invocations", **target)
    return dict(Template.from_stack(stack).to_json())


def test_planned_target_equals_that_of_the_construct() -> None:
    """The planned target is what the construct computes from requests per
    second and safety factor.
    """
    requirement = Requirement(requests_per_second=500, latency_ms=500, safety_factor=0.6)
    plan = cheapest(plan_all(read_measurements(BENCHMARK), requirement, PRICES))
    planned = synthesized(plan, target_invocations_per_minute=plan.target_invocations_per_minute)
    assert planned == synthesized(plan, max_requests_per_second=1335 / 60, safety_factor=0.6)
    bounds = only(planned, "AWS::ApplicationAutoScaling::ScalableTarget")
    policy = only(planned, "AWS::ApplicationAutoScaling::ScalingPolicy")
    variant = only_variant(planned)
    assert (bounds["MinCapacity"], bounds["MaxCapacity"]) == (1, 38)
    assert policy["TargetTrackingScalingPolicyConfiguration"]["TargetValue"] == 801
    assert (variant["InstanceType"], variant["InitialInstanceCount"]) == ("ml.g4dn.2xlarge", 23)
