"""``verify_update``: which endpoints have the check, and what it refers to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_cloudwatch as cloudwatch
from cdk_apps import ENVIRONMENT, add_endpoint, make_app, only, resources, synthesize

from constructs_triton import Deployment, TritonEndpoint

CHECK, ENDPOINT, ALARM = (
    "Custom::TritonUpdateCheck",
    "AWS::SageMaker::Endpoint",
    "AWS::CloudWatch::Alarm",
)


def orders(stack: cdk.Stack) -> cloudwatch.Alarm:
    """An alarm that has nothing to do with the endpoint."""
    metric = cloudwatch.Metric(namespace="Shop", metric_name="Orders")
    return metric.create_alarm(stack, "Orders", threshold=1, evaluation_periods=1)


def errors(stack: cdk.Stack, endpoint: TritonEndpoint, **props: Any) -> cloudwatch.Alarm:
    """An alarm on a metric of the endpoint."""
    metric = endpoint.metric_invocation_5xx_errors()
    return metric.create_alarm(stack, "Errors", threshold=1, evaluation_periods=1, **props)


def test_function_may_only_describe_this_endpoint(stack: cdk.Stack, tmp_path: Path) -> None:
    """Besides writing its log, the function has one permission, which exists before the check."""
    add_endpoint(stack, tmp_path, verify_update=True)
    template = synthesize(stack)
    ((name, policy),) = (
        (name, each)
        for name, each in resources(template, "AWS::IAM::Policy").items()
        if "UpdateCheckPolicy" in name
    )
    (statement,) = policy["Properties"]["PolicyDocument"]["Statement"]
    (endpoint,) = resources(template, ENDPOINT)
    assert statement["Action"] == "sagemaker:DescribeEndpoint"
    assert statement["Resource"] == {"Fn::GetAtt": [endpoint, "EndpointArn"]}
    (check,) = resources(template, CHECK).values()
    assert name in check["DependsOn"]


@pytest.mark.parametrize(
    ("verify_update", "has_alarms", "is_checked"),
    [
        (None, False, False),
        (None, True, True),
        (True, False, True),
        (True, True, True),
        (False, True, False),
    ],
)
def test_endpoints_with_rollback_alarms_are_checked(
    stack: cdk.Stack, tmp_path: Path, verify_update: bool | None, has_alarms: bool, is_checked: bool
) -> None:
    """By default alarms of the deployment and alarms that are added later
    switch the check on, once.
    """
    alarms = [orders(stack)] if has_alarms else []
    deployment = Deployment.all_at_once(alarms=alarms)
    endpoint = add_endpoint(stack, tmp_path, deployment=deployment, verify_update=verify_update)
    if has_alarms:
        endpoint.add_rollback_alarms(*alarms)
    assert len(resources(synthesize(stack), CHECK)) == int(is_checked)


# Alarms before the endpoint.


def test_alarm_of_a_named_endpoint_is_created_first(stack: cdk.Stack, tmp_path: Path) -> None:
    """The alarm uses the literal name, the endpoint refers to the alarm,
    and no alarm name is needed.
    """
    endpoint = add_endpoint(stack, tmp_path, endpoint_name="digits")
    (variant,) = endpoint.variants
    slow = variant.metric_model_latency().create_alarm(
        stack, "Slow", threshold=1, evaluation_periods=1
    )
    endpoint.add_rollback_alarms(errors(stack, endpoint, alarm_name="digits-5xx"), slow)
    template = synthesize(stack)
    alarms = resources(template, ALARM)
    for alarm in alarms.values():
        dimensions = {each["Name"]: each["Value"] for each in alarm["Properties"]["Dimensions"]}
        assert dimensions["EndpointName"] == "digits"
        assert "DependsOn" not in alarm
    rollback = only(template, ENDPOINT)["DeploymentConfig"]["AutoRollbackConfiguration"]
    assert {each["AlarmName"]["Ref"] for each in rollback["Alarms"]} == set(alarms)


@pytest.mark.parametrize(
    ("endpoint_name", "alarm_name"),
    [("digits", "digits-5xx"), ("digits", None), (None, "digits-5xx")],
)
def test_alarm_in_another_stack(
    tmp_path: Path, endpoint_name: str | None, alarm_name: str | None
) -> None:
    """By its name, the endpoint's stack does not wait for the other one; without a name it does."""
    app = make_app()
    serving, watching = (cdk.Stack(app, name, env=ENVIRONMENT) for name in ("Serving", "Watching"))
    endpoint = add_endpoint(serving, tmp_path, endpoint_name=endpoint_name)
    endpoint.add_rollback_alarms(errors(watching, endpoint, alarm_name=alarm_name))
    template = app.synth().get_stack_artifact(serving.artifact_id).template
    assert serving.dependencies == ([] if alarm_name else [watching])
    (alarm,) = only(template, ENDPOINT)["DeploymentConfig"]["AutoRollbackConfiguration"]["Alarms"]
    assert alarm_name in (None, alarm["AlarmName"])


def test_scaling_waits_for_a_named_endpoint(stack: cdk.Stack, tmp_path: Path) -> None:
    """A literal name changes metrics only: the scalable target still refers to the endpoint."""
    endpoint = add_endpoint(stack, tmp_path, endpoint_name="digits")
    endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=2)
    template = synthesize(stack)
    (name,) = resources(template, ENDPOINT)
    target = only(template, "AWS::ApplicationAutoScaling::ScalableTarget")
    assert {"Fn::GetAtt": [name, "EndpointName"]} in target["ResourceId"]["Fn::Join"][1]
