"""The requests of scaling and CloudWatch resources, checked against botocore's service models."""

from __future__ import annotations

import json
from typing import Any

import aws_cdk as cdk
import botocore.session
import pytest
from aws_cdk import aws_applicationautoscaling as appscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns
from aws_cdk.assertions import Template
from botocore.model import StringShape
from service_shapes import check_call
from template_requests import Call, calls_of

from constructs_triton import (
    InstanceType,
    TritonDashboard,
    TritonEndpoint,
    TritonMultiModelEndpoint,
    TritonScalableInstanceCount,
)
from constructs_triton.cdk.scaling.customized_metric import customized_metric, metric_value

pytestmark = pytest.mark.xdist_group("examples")  # the process with the CDK's validation rules

# The calls of AWS's Triton example for multi-model endpoints.
VARIANT = {
    "ServiceNamespace": "sagemaker",
    "ResourceId": "endpoint/resnet/variant/AllTraffic",
    "ScalableDimension": "sagemaker:variant:DesiredInstanceCount",
}
REGISTER_SCALABLE_TARGET = {**VARIANT, "MinCapacity": 1, "MaxCapacity": 5}
PUT_SCALING_POLICY = {
    "PolicyName": "GPUUtil-ScalingPolicy",
    **VARIANT,
    "PolicyType": "TargetTrackingScaling",
    "TargetTrackingScalingPolicyConfiguration": {
        "TargetValue": 60.0,
        "CustomizedMetricSpecification": {
            "MetricName": "GPUUtilization",
            "Namespace": "/aws/sagemaker/Endpoints",
            "Dimensions": [
                {"Name": "EndpointName", "Value": "resnet"},
                {"Name": "VariantName", "Value": "AllTraffic"},
            ],
            "Statistic": "Average",
            "Unit": "Percent",
        },
        "ScaleInCooldown": 600,
        "ScaleOutCooldown": 200,
    },
}


@pytest.fixture
def stack() -> cdk.Stack:
    app = cdk.App(context={"@aws-cdk/core:validateAgainstDefaultRules": True})
    return cdk.Stack(app, "Test", env=cdk.Environment(account="123456789012", region="eu-west-1"))


def calls(stack: cdk.Stack) -> list[Call]:
    return list(calls_of(Template.from_stack(stack).to_json()))


def test_policy_equals_the_published_example(stack: cdk.Stack) -> None:
    """Target, limits and policy become the same calls as in the example,
    with the service-linked role.
    """
    count = TritonScalableInstanceCount(
        stack,
        "Count",
        endpoint_name="resnet",
        variant_name="AllTraffic",
        instance_type=InstanceType.of("ml.g5.xlarge"),
        min_capacity=1,
        max_capacity=5,
    )
    count.scale_on_gpu_utilization("Gpu", policy_name="GPUUtil-ScalingPolicy")
    register, put = calls(stack)
    assert register.request.pop("RoleARN").endswith(
        "AWSServiceRoleForApplicationAutoScaling_SageMakerEndpoint"
    )
    assert (register.operation, register.request) == (
        "RegisterScalableTarget",
        REGISTER_SCALABLE_TARGET,
    )
    assert (put.operation, put.request) == ("PutScalingPolicy", PUT_SCALING_POLICY)


def add_every_policy(count: TritonScalableInstanceCount) -> None:
    """All policies of a real-time variant, with all their options."""
    options: dict[str, Any] = {
        "scale_in_cooldown": cdk.Duration.minutes(5),
        "scale_out_cooldown": cdk.Duration.minutes(1),
        "disable_scale_in": True,
    }
    custom = cloudwatch.Metric(
        namespace="App", metric_name="Waiting", unit=cloudwatch.Unit.BYTES_PER_SECOND
    )
    math = cloudwatch.MathExpression(expression="waiting / 2", using_metrics={"waiting": custom})
    count.scale_on_gpu_utilization("Gpu", policy_name="gpu", **options)
    count.scale_on_gpu_memory_utilization("GpuMemory", **options)
    count.scale_on_cpu_utilization("Cpu", **options)
    count.scale_on_invocations_per_instance("Calls", max_requests_per_second=20, **options)
    count.scale_on_concurrent_requests("Busy", target_concurrent_requests=8, **options)
    latency = cdk.Duration.millis(100)
    count.scale_on_model_latency("Latency", target_latency=latency, statistic="p90", **options)
    count.scale_to_track_metric("Custom", metric=custom, target_value=3, **options)
    count.scale_to_track_metric("Math", metric=math, target_value=3, **options)
    steps = [
        appscaling.ScalingInterval(upper=1, change=-1),
        appscaling.ScalingInterval(lower=9, change=2),
    ]
    count.scale_on_metric(
        "Steps", metric=custom, scaling_steps=steps, cooldown=cdk.Duration.minutes(1)
    )
    daily = appscaling.Schedule.cron(hour="7", minute="0")
    count.scale_on_schedule(
        "Morning",
        schedule=daily,
        min_capacity=2,
        max_capacity=6,
        time_zone=cdk.TimeZone.EUROPE_PARIS,
    )
    count.suspend(dynamic_scaling_in=False)


def test_every_policy_is_a_valid_request(stack: cdk.Stack) -> None:
    """All scaling calls match the members, types, enumerations,
    ranges and patterns of the model.
    """
    for model, endpoint in (
        ("single", TritonEndpoint.from_endpoint_name(stack, "Single", "single")),
        ("many", TritonMultiModelEndpoint.from_endpoint_name(stack, "Many", "many")),
    ):
        count = TritonScalableInstanceCount(
            stack,
            f"{model}Count",
            endpoint_name=endpoint.endpoint_name,
            variant_name="AllTraffic",
            instance_type=InstanceType.of("ml.g5.48xlarge"),
            min_capacity=1,
            max_capacity=8,
        )
        add_every_policy(count)
    made = calls(stack)
    assert {each.operation for each in made} == {
        "RegisterScalableTarget",
        "PutScheduledAction",
        "PutScalingPolicy",
        "PutMetricAlarm",
    }
    assert len([each for each in made if each.operation == "PutScalingPolicy"]) == 20
    assert [
        found for each in made for found in check_call(each.service, each.operation, each.request)
    ] == []


def test_backlog_alarms_and_dashboard_are_valid_requests(stack: cdk.Stack) -> None:
    """Asynchronous policies, all alarms and the dashboard match the service models."""
    types = {"blue": InstanceType.of("ml.g5.12xlarge"), "green": None}
    topic = actions.SnsAction(sns.Topic(stack, "Topic"))
    queued = TritonEndpoint.from_endpoint_attributes(
        stack,
        "Queued",
        endpoint_name="queued",
        variants={"blue": types["blue"]},
        is_asynchronous=True,
    )
    many = TritonMultiModelEndpoint.from_endpoint_attributes(
        stack, "Many", endpoint_name="many", variants=types
    )
    count = queued.auto_scale_instance_count(min_capacity=0, max_capacity=3)
    count.scale_on_backlog("Backlog", target_backlog_per_instance=5)
    many.variants[0].auto_scale_instance_count(
        min_capacity=1, max_capacity=3
    ).scale_on_gpu_utilization("Gpu")
    for endpoint in (queued, many):
        endpoint.add_alarms(
            actions=[topic],
            alarm_name_prefix=endpoint.endpoint_name,
            model_latency_objective=cdk.Duration.millis(80),
        )
    TritonDashboard(stack, "Dashboard", endpoints=[queued, many], dashboard_name="serving")
    made = calls(stack)
    assert {"PutMetricAlarm", "PutDashboard", "PutScalingPolicy"} < {
        each.operation for each in made
    }
    assert [
        found for each in made for found in check_call(each.service, each.operation, each.request)
    ] == []
    (board,) = (each.request for each in made if each.operation == "PutDashboard")
    assert json.loads(board["DashboardBody"])["widgets"]


def test_alarms_stay_within_their_evaluation_limits(stack: cdk.Stack) -> None:
    """An alarm evaluates at most a day, or a week with periods of an hour;
    the models lack this rule.
    """
    endpoint = TritonMultiModelEndpoint.from_endpoint_name(stack, "Many", "many")
    endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=3)
    endpoint.add_alarms(
        at_max_capacity_for=cdk.Duration.hours(23), no_invocations_for=cdk.Duration.days(7)
    )
    for call in calls(stack):
        if call.operation == "PutMetricAlarm":
            metrics = call.request.get("Metrics", [])
            periods = [each["MetricStat"]["Period"] for each in metrics if "MetricStat" in each]
            period = max([call.request.get("Period", 0), *periods])
            longest = 7 * 86400 if period >= 3600 else 86400
            assert 60 <= period * call.request["EvaluationPeriods"] <= longest


@pytest.mark.parametrize("unit", cloudwatch.Unit)
def test_units_are_those_of_cloudwatch(unit: cloudwatch.Unit) -> None:
    """Units of scaling policies are valid; a policy with a wrong unit would find no data."""
    metric = cloudwatch.Metric(namespace="App", metric_name="Waiting", unit=unit)
    found = customized_metric(metric_value(metric)).unit
    model = botocore.session.get_session().get_service_model("cloudwatch")
    shape = model.shape_for("StandardUnit")
    assert isinstance(shape, StringShape)
    assert found in shape.enum
