"""What the guard reads and writes in Application Auto Scaling, with its API on loopback."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from constructs_triton_functions.scaling import (
    DIMENSION,
    NAMESPACE,
    Scaling,
    ScalingError,
)
from constructs_triton_functions.scaling_guard import stack

BLUE = "endpoint/digits/variant/blue"
KEY = {"ServiceNamespace": NAMESPACE, "ResourceId": BLUE, "ScalableDimension": DIMENSION}
# As CloudFormation passes it: every scalar is a string.
TARGET = {
    "MinCapacity": "1",
    "MaxCapacity": "4",
    "SuspendedState": {"DynamicScalingInSuspended": "true"},
}
POLICY = {
    "PolicyName": "gpu",
    "PolicyType": "TargetTrackingScaling",
    "TargetTrackingScalingPolicyConfiguration": {
        "TargetValue": "60",
        "ScaleInCooldown": "600",
        "DisableScaleIn": "false",
        "CustomizedMetricSpecification": {
            "MetricName": "GPUUtilization",
            "Namespace": "/aws/sagemaker/Endpoints",
            "Dimensions": [{"Name": "VariantName", "Value": "blue"}],
            "Statistic": "Average",
        },
    },
}
NIGHT = {
    "ScheduledActionName": "night",
    "Schedule": "cron(0 1 * * ? *)",
    "ScalableTargetAction": {"MinCapacity": "1", "MaxCapacity": "2"},
}


@pytest.fixture
def api(aws_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("AWS_ENDPOINT_URL_APPLICATION_AUTO_SCALING", aws_url)
    client = boto3.client("application-autoscaling")
    yield client
    if client.describe_scalable_targets(ServiceNamespace=NAMESPACE, ResourceIds=[BLUE])[
        "ScalableTargets"
    ]:
        client.deregister_scalable_target(**KEY)
    for each in client.describe_scaling_policies(**KEY)["ScalingPolicies"]:
        client.delete_scaling_policy(PolicyName=each["PolicyName"], **KEY)
    for each in client.describe_scheduled_actions(**KEY)["ScheduledActions"]:
        client.delete_scheduled_action(ScheduledActionName=each["ScheduledActionName"], **KEY)
    client.close()


@pytest.fixture
def scaling(api: Any) -> Scaling:
    """A variant with auto scaling."""
    scaling = Scaling()
    scaling.register(BLUE, TARGET)
    scaling.put_policy(BLUE, POLICY)
    scaling.set_actions(BLUE, [NIGHT])
    return scaling


def test_strings_become_the_types_of_the_api(scaling: Scaling, api: Any) -> None:
    """Numbers and booleans, which a custom resource receives as strings, get their types."""
    (target,) = api.describe_scalable_targets(ServiceNamespace=NAMESPACE, ResourceIds=[BLUE])[
        "ScalableTargets"
    ]
    assert (target["MinCapacity"], target["MaxCapacity"]) == (1, 4)
    assert target["SuspendedState"]["DynamicScalingInSuspended"] is True
    assert target["SuspendedState"]["ScheduledScalingSuspended"] is False
    (policy,) = api.describe_scaling_policies(ServiceNamespace=NAMESPACE, ResourceId=BLUE)[
        "ScalingPolicies"
    ]
    configuration = policy["TargetTrackingScalingPolicyConfiguration"]
    assert configuration["TargetValue"] == 60
    assert configuration["DisableScaleIn"] is False


def test_restored_scaling_equals_the_described(scaling: Scaling, api: Any) -> None:
    """Target, suspension, policies and schedules are the same again;
    a second time changes nothing.
    """
    saved = scaling.describe(BLUE)
    assert saved is not None
    scaling.deregister(BLUE)
    scaling.delete_policy(BLUE, "gpu")
    scaling.set_actions(BLUE, [])
    assert scaling.describe(BLUE) is None
    for _ in range(2):
        scaling.restore(saved)
        assert scaling.describe(BLUE) == saved


def test_restoring_does_not_overwrite_newer_values(scaling: Scaling) -> None:
    """Only what is missing is restored: limits and policies that exist are newer."""
    saved = scaling.describe(BLUE)
    assert saved is not None
    scaling.register(BLUE, {"MinCapacity": 2, "MaxCapacity": 9})
    scaling.delete_policy(BLUE, "gpu")
    scaling.restore(saved)
    now = scaling.describe(BLUE)
    assert now is not None
    assert now["Target"]["MaxCapacity"] == 9
    assert now["Policies"] == saved["Policies"]


def test_other_schedules_are_deleted(scaling: Scaling) -> None:
    """A variant has exactly the scheduled actions that are declared."""
    scaling.set_actions(BLUE, [{**NIGHT, "ScheduledActionName": "noon"}])
    described = scaling.describe(BLUE)
    assert described is not None
    assert [each["ScheduledActionName"] for each in described["ScheduledActions"]] == ["noon"]


def test_step_scaling_policy_is_an_error(scaling: Scaling, api: Any) -> None:
    """A policy that cannot be restored with its alarms is not deregistered."""
    api.put_scaling_policy(
        **KEY,
        PolicyName="steps",
        PolicyType="StepScaling",
        StepScalingPolicyConfiguration={
            "AdjustmentType": "ChangeInCapacity",
            "StepAdjustments": [{"MetricIntervalLowerBound": 0, "ScalingAdjustment": 1}],
        },
    )
    with pytest.raises(ScalingError, match="policy steps is of type StepScaling"):
        scaling.describe(BLUE)


def test_missing_scaling_can_be_removed(api: Any) -> None:
    """Removing twice is no error, because CloudFormation may repeat a request."""
    scaling = Scaling()
    scaling.deregister(BLUE)
    scaling.delete_policy(BLUE, "gpu")
    assert scaling.describe(BLUE) is None


def test_endpoint_is_found_in_a_stack_of_many_resources(monkeypatch: pytest.MonkeyPatch) -> None:
    """The endpoint may be on a later page, and its ARN has its name in lower case."""
    arn = "arn:aws:sagemaker:eu-west-1:123456789012:endpoint/digits"
    row = {
        "LogicalResourceId": "Endpoint",
        "PhysicalResourceId": arn,
        "ResourceType": "AWS::SageMaker::Endpoint",
        "ResourceStatus": "CREATE_COMPLETE",
        "LastUpdatedTimestamp": "2026-01-01T00:00:00Z",
    }
    cloudformation = boto3.client("cloudformation")
    described = {
        "EndpointName": "Digits",
        "EndpointArn": arn,
        "EndpointConfigName": "config",
        "EndpointStatus": "Updating",
        "CreationTime": "2026-01-01T00:00:00Z",
        "LastModifiedTime": "2026-01-01T00:00:00Z",
    }
    sagemaker = boto3.client("sagemaker")
    clients = {"cloudformation": cloudformation, "sagemaker": sagemaker}
    monkeypatch.setattr(stack, "make_client", clients.__getitem__)
    with Stubber(sagemaker) as answers, Stubber(cloudformation) as stub:
        first = {"StackResourceSummaries": [], "NextToken": "more"}
        stub.add_response("list_stack_resources", first, {"StackName": "stack"})
        rest = {"StackName": "stack", "NextToken": "more"}
        stub.add_response("list_stack_resources", {"StackResourceSummaries": [row]}, rest)
        answers.add_response("describe_endpoint", described, {"EndpointName": "digits"})
        assert stack.endpoint_name("stack", "Endpoint") == "Digits"
