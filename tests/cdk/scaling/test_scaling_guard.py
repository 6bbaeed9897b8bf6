"""The scaling guard in the template."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_applicationautoscaling as appscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_s3 as s3
from aws_cdk.assertions import Annotations, Match
from cdk_apps import add_endpoint, flat, make_stack, resources, statements, synthesize

from constructs_triton import AsyncInferenceConfig
from constructs_triton.cdk.scaling.scalable_instance_count import tracked_metrics
from constructs_triton.testing import assert_scales
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.planning import read_scaling

NATIVE = "AWS::ApplicationAutoScaling::"


def by_type(template: dict[str, Any], kind: str) -> dict[str, Any]:
    """The only resource of a type, with its logical id."""
    ((name, resource),) = resources(template, kind).items()
    return {"LogicalId": name, **resource}


def test_without_the_guard_there_is_no_function(stack: cdk.Stack, tmp_path: Path) -> None:
    """Scaling is CloudFormation's own unless the guard was asked for."""
    endpoint = add_endpoint(stack, tmp_path)
    endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=5).scale_on_gpu_utilization(
        "Gpu"
    )
    template = synthesize(stack)
    kinds = {each["Type"] for each in template["Resources"].values()}
    assert {f"{NATIVE}ScalableTarget", f"{NATIVE}ScalingPolicy"} <= kinds
    assert not [kind for kind in kinds if kind.startswith("Custom::TritonScal")]


def test_guarded_scaling_is_asserted_and_simulated_as_any_other(tmp_path: Path) -> None:
    """``assert_scales`` and ``simulate --template`` read the same targets,
    policies and schedules.
    """
    read = []
    for guard in (False, True):
        stack = make_stack()
        endpoint = add_endpoint(stack, tmp_path / str(guard), scaling_guard=guard)
        count = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=5)
        count.scale_on_gpu_utilization("Gpu", target_utilization_percent=60)
        morning = appscaling.Schedule.cron(hour="8", minute="0")
        count.scale_on_schedule("Morning", schedule=morning, min_capacity=3)
        assert_scales(stack, on="GPUUtilization", target=60, between=(1, 5), of="AllTraffic")
        template = tmp_path / f"{guard}.template.json"
        template.write_text(json.dumps(synthesize(stack)))
        read.append(read_scaling(template, "Endpoint", "AllTraffic"))
    without, guarded = read
    assert guarded == without
    assert (len(guarded.policies), len(guarded.schedules)) == (1, 1)


def test_guard_may_do_what_scaling_needs(stack: cdk.Stack, tmp_path: Path) -> None:
    """The guard's role has the rights with which Application Auto Scaling acts, and no others.

    The service calls CloudWatch and SageMaker with the rights of its caller.
    """
    endpoint = add_endpoint(stack, tmp_path, scaling_guard=True)
    found = statements(synthesize(stack))
    sids = ("ScaleEndpoint", "TrackMetrics", "CreateServiceLinkedRole")
    scaled, tracked, role = (found[sid] for sid in sids)
    assert scaled["Action"] == "sagemaker:UpdateEndpointWeightsAndCapacities"
    assert scaled["Resource"] == stack.resolve(endpoint.endpoint_arn)
    assert set(tracked["Action"]) == {
        "cloudwatch:PutMetricAlarm",
        "cloudwatch:DescribeAlarms",
        "cloudwatch:DeleteAlarms",
    }
    here = "<AWS::Region>:<AWS::AccountId>"
    alarms = f"arn:<AWS::Partition>:cloudwatch:{here}:alarm:TargetTracking-endpoint/*"
    assert flat(tracked["Resource"]) == alarms
    assert role["Action"] == "iam:CreateServiceLinkedRole"
    service = "sagemaker.application-autoscaling.amazonaws.com"
    assert role["Condition"] == {"StringEquals": {"iam:AWSServiceName": service}}
    assert flat(role["Resource"]).endswith(
        f":role/aws-service-role/{service}/AWSServiceRoleForApplicationAutoScaling_SageMakerEndpoint"
    )


@pytest.mark.parametrize(
    ("sid", "operations"),
    [
        (
            "Register",
            [
                "RegisterScalableTarget",
                "PutScalingPolicy",
                "DeleteScalingPolicy",
                "PutScheduledAction",
                "DeleteScheduledAction",
            ],
        ),
        ("Deregister", ["DeregisterScalableTarget"]),
        (
            "LookAtScaling",
            ["DescribeScalableTargets", "DescribeScalingPolicies", "DescribeScheduledActions"],
        ),
    ],
)
def test_guard_may_register_and_deregister(
    stack: cdk.Stack, tmp_path: Path, sid: str, operations: list[str]
) -> None:
    """Each call that the guard's function makes to Application Auto Scaling is allowed."""
    add_endpoint(stack, tmp_path, scaling_guard=True)
    allowed = statements(synthesize(stack))[sid]["Action"]
    given = [allowed] if isinstance(allowed, str) else allowed
    assert given == [f"application-autoscaling:{operation}" for operation in operations]


def test_step_policy_added_past_the_construct_is_an_error(stack: cdk.Stack, tmp_path: Path) -> None:
    """The aspect also finds a step policy that was added to CDK's own scalable target."""
    endpoint = add_endpoint(stack, tmp_path, scaling_guard=True)
    count = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=5)
    action = appscaling.StepScalingAction(count, "Steps", scaling_target=count.scalable_target)
    action.add_adjustment(adjustment=1, lower_bound=0)
    found = Annotations.from_stack(stack).find_error("*", Match.string_like_regexp("StepScaling"))
    assert [each.id for each in found] == [
        "/Test/Endpoint/AllTrafficGuardedInstanceCount/Steps/Resource"
    ]


def test_policies_of_steps_are_refused(stack: cdk.Stack, tmp_path: Path) -> None:
    """Step policies are refused, also for a backlog:
    their alarms would refer to a deleted policy.
    """
    bucket = s3.Bucket(stack, "Bucket")
    endpoint = add_endpoint(
        stack, tmp_path, scaling_guard=True, async_inference=AsyncInferenceConfig(bucket=bucket)
    )
    count = endpoint.auto_scale_instance_count(min_capacity=0, max_capacity=5)
    with pytest.raises(
        InvalidValueError, match="Backlog: scaling_guard does not support step policies"
    ):
        count.scale_on_backlog("Backlog", target_backlog_per_instance=5)
    steps = [
        appscaling.ScalingInterval(upper=10, change=-1),
        appscaling.ScalingInterval(lower=50, change=1),
    ]
    metric = cloudwatch.Metric(namespace="Own", metric_name="Queue")
    with pytest.raises(
        InvalidValueError, match="Queue: scaling_guard does not support step policies"
    ):
        count.scale_on_metric("Queue", metric=metric, scaling_steps=steps)
    assert not tracked_metrics(count)


def test_each_endpoint_has_its_own_function(stack: cdk.Stack, tmp_path: Path) -> None:
    """Two guarded endpoints have two guards and two functions,
    so that no role grows with the stack.
    """
    for name in ("First", "Second"):
        add_endpoint(stack, tmp_path, name, scaling_guard=True)
    template = synthesize(stack)
    kinds = [each["Type"] for each in template["Resources"].values()]
    assert kinds.count("Custom::TritonScalingGate") == 2
    assert kinds.count("AWS::Lambda::Function") == 2
