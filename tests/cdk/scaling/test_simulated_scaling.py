"""The scaling of a construct and of its template is simulated."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_applicationautoscaling as appscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from cdk_apps import make_stack, synthesize

from constructs_triton import InstanceType, TritonMultiModelEndpoint, TritonScalableInstanceCount
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.planning import Fleet, Traffic, read_scaling, simulate
from constructs_triton_tools.planning.scaling import (
    Scaling,
    ScheduledAction,
    StepScaling,
    TargetTracking,
)
from constructs_triton_tools.planning.template_scaling import scaling_of_resources

FLEET = Fleet(invocations_per_minute=1000, latency_ms=100)
TRAFFIC = Traffic((500,) * 5)


def scaled(stack: cdk.Stack, name: str = "many", **variants: str) -> Any:
    """An imported endpoint and the scaling of its first variant."""
    types = {
        key: InstanceType.of(value) for key, value in (variants or {"A": "ml.g5.12xlarge"}).items()
    }
    endpoint = TritonMultiModelEndpoint.from_endpoint_attributes(
        stack, name, endpoint_name=name, variants=types
    )
    return endpoint.variant(next(iter(types))).auto_scale_instance_count(
        min_capacity=2, max_capacity=10
    )


def steps(count: TritonScalableInstanceCount) -> None:
    metric = cloudwatch.Metric(
        namespace="AWS/SageMaker",
        metric_name="Invocations",
        statistic="Sum",
        period=cdk.Duration.minutes(5),
    )
    interval = appscaling.ScalingInterval
    count.scale_on_metric(
        "Steps",
        metric=metric,
        scaling_steps=[interval(upper=10, change=-1), interval(lower=5000, change=2)],
        cooldown=cdk.Duration.minutes(2),
    )


def test_every_policy_is_read(stack: cdk.Stack, tmp_path: Path) -> None:
    """Policies, cooldowns, steps and schedules are read from the construct
    and from its template.
    """
    count = scaled(stack)
    count.scale_on_invocations_per_instance(
        "Calls", target_invocations_per_minute=600, scale_out_cooldown=cdk.Duration.seconds(60)
    )
    count.scale_on_gpu_utilization("Gpu", disable_scale_in=True)
    count.scale_on_concurrent_requests("Burst", target_concurrent_requests=8)
    steps(count)
    schedule = appscaling.Schedule.cron(week_day="MON-FRI", hour="8", minute="0")
    count.scale_on_schedule(
        "Morning", schedule=schedule, min_capacity=6, time_zone=cdk.TimeZone.EUROPE_BERLIN
    )
    scaling = count.simulate(TRAFFIC, FLEET).scaling
    assert scaling == Scaling(
        min_capacity=2,
        max_capacity=10,
        policies=(
            TargetTracking(target=600, scale_out_cooldown_seconds=60),
            TargetTracking(
                target=240,
                metric="GPUUtilization",
                units=4,
                scale_out_cooldown_seconds=200,
                scale_in_cooldown_seconds=600,
                disable_scale_in=True,
            ),
            TargetTracking(target=8, metric="ConcurrentRequestsPerModel"),
            StepScaling(
                threshold=10,
                above=False,
                steps=((None, 0, -1),),
                metric="Invocations",
                period_minutes=5,
                is_sum=True,
                cooldown_seconds=120,
            ),
            StepScaling(
                threshold=5000,
                steps=((0, None, 2),),
                metric="Invocations",
                period_minutes=5,
                is_sum=True,
                cooldown_seconds=120,
            ),
        ),
        schedules=(
            ScheduledAction(
                schedule="cron(0 8 ? * MON-FRI *)", min_capacity=6, time_zone="Europe/Berlin"
            ),
        ),
    )
    path = tmp_path / "Stack.template.json"
    path.write_text(json.dumps(synthesize(stack)))
    assert read_scaling(path, "many", instance_type="ml.g5.12xlarge") == scaling
    with pytest.raises(
        InvalidValueError, match=r"GPUUtilization needs an instance type .* set --instance-ty"
    ):
        read_scaling(path)


def test_users_can_assert_on_a_simulation() -> None:
    """A step of the load fails requests with one minimum, and none with another."""
    count = scaled(make_stack())
    count.scale_on_invocations_per_instance("Calls", target_invocations_per_minute=500)
    step = Traffic.pattern("step", low=1500, high=9000)
    result = count.simulate(step, FLEET)
    assert result.failed > 0
    again = replace(result.scaling, min_capacity=9)
    assert simulate(step, again, FLEET).failed == 0


def test_metric_that_traffic_does_not_determine_is_refused() -> None:
    """The message has the policy's id and the metric."""
    count = scaled(make_stack())
    count.scale_on_model_latency("Slow", target_latency=cdk.Duration.millis(300))
    with pytest.raises(
        InvalidValueError, match=r'Slow.*: metric: cannot be derived .* got "ModelLatency"'
    ):
        count.simulate(TRAFFIC, FLEET)


def test_bound_that_is_known_at_deployment_is_refused(stack: cdk.Stack) -> None:
    """A parameter of the template has no value at synth."""
    parameter = cdk.CfnParameter(stack, "Maximum", type="Number")
    endpoint = TritonMultiModelEndpoint.from_endpoint_attributes(
        stack, "Many", endpoint_name="many", variants={"A": InstanceType.of("ml.g5.xlarge")}
    )
    count = endpoint.auto_scale_instance_count(
        min_capacity=1, max_capacity=parameter.value_as_number
    )
    with pytest.raises(InvalidValueError, match=r"MaxCapacity: must be a number to be simulated"):
        count.simulate(TRAFFIC, FLEET)


def test_values_of_a_template_are_evaluated(tmp_path: Path) -> None:
    """Defaults of parameters, conditions, and the name of the endpoint;
    a name or a logical id selects.
    """
    endpoint = {
        "Type": "AWS::SageMaker::Endpoint",
        "Properties": {"EndpointName": {"Fn::Sub": "cats-${Stage}"}},
    }
    name = {"Fn::GetAtt": ["Pets1A2B", "EndpointName"]}
    target = {
        "MinCapacity": {"Fn::If": ["IsLive", 2, 1]},
        "MaxCapacity": {"Ref": "Maximum"},
        "ResourceId": {"Fn::Join": ["/", ["endpoint", name, "variant", "A"]]},
    }
    template = {
        "Parameters": {"Stage": {"Default": "live"}, "Maximum": {"Type": "Number", "Default": "7"}},
        "Conditions": {"IsLive": {"Fn::Equals": [{"Ref": "Stage"}, "live"]}},
        "Resources": {
            "Pets1A2B": endpoint,
            "T": {"Type": "AWS::ApplicationAutoScaling::ScalableTarget", "Properties": target},
        },
    }
    path = tmp_path / "Stack.template.json"
    path.write_text(json.dumps(template))
    for given in (None, "cats-live", "Pets"):
        assert read_scaling(path, given) == Scaling(min_capacity=2, max_capacity=7)
    with pytest.raises(InvalidValueError, match=r'got 0 of "cats-live/A"'):
        read_scaling(path, "dogs")


def test_template_with_several_variants_needs_a_choice(stack: cdk.Stack, tmp_path: Path) -> None:
    """The message lists what there is, and a name selects."""
    for name in ("cats", "dogs"):
        scaled(stack, name)
    path = tmp_path / "Stack.template.json"
    path.write_text(json.dumps(synthesize(stack)))
    with pytest.raises(InvalidValueError, match=r'got 2 of "cats/A" and "dogs/A"; set --endpoint'):
        read_scaling(path)
    assert read_scaling(path, "cats").max_capacity == 10
    with pytest.raises(InvalidValueError, match=r"got 0 of"):
        read_scaling(path, "cats", "B")


def test_files_that_are_no_template_are_refused(tmp_path: Path) -> None:
    """A missing file, another JSON file, and a template without scaling."""
    path = tmp_path / "Stack.template.json"
    with pytest.raises(InvalidValueError, match=r"pass a template that `npx cdk synth` wrote"):
        read_scaling(path)
    path.write_text("[]")
    with pytest.raises(InvalidValueError, match=r"pass a template that `npx cdk synth` wrote"):
        read_scaling(path)
    path.write_text('{"Resources": {}}')
    with pytest.raises(
        InvalidValueError, match=r"has no scaled variant; call auto_scale_instance_count"
    ):
        read_scaling(path)


def test_step_policy_without_an_alarm_is_refused() -> None:
    """Nothing would ever trigger it."""
    target = {"MinCapacity": 1, "MaxCapacity": 2, "ResourceId": "endpoint/x/variant/y"}
    policy = {
        "ScalingTargetId": {"Ref": "T"},
        "StepScalingPolicyConfiguration": {"StepAdjustments": []},
    }
    resources = {
        "T": {"Type": "AWS::ApplicationAutoScaling::ScalableTarget", "Properties": target},
        "P": {"Type": "AWS::ApplicationAutoScaling::ScalingPolicy", "Properties": policy},
    }
    with pytest.raises(InvalidValueError, match=r"P: no alarm triggers this policy"):
        scaling_of_resources(resources, "T")
