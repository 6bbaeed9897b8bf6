"""Stacks with an endpoint for inference components, for the tests of the simulated account."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from cdk_rehearse import SimulatedAccount
from cdk_rehearse.behaviour import CALM
from cdk_rehearse.stacks.stack import Stack
from constructs_triton_core.cloud_assembly.template import Template

IMAGE = "763104351884.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:26.05-py3"
ROLE = {"Fn::GetAtt": ["Role", "Arn"]}
READS = (
    ("s3:GetObject", "arn:aws:s3:::models/*"),
    ("s3:ListBucket", "arn:aws:s3:::models"),
    ("ecr:*", "*"),
)


def trust(service: str) -> dict[str, Any]:
    """Return the trust policy of a role for a service of AWS."""
    principal = {"Service": f"{service}.amazonaws.com"}
    statement = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": principal}
    return {"Version": "2012-10-17", "Statement": [statement]}


TRUST = trust("sagemaker")
NAME = {"Fn::Select": [1, {"Fn::Split": ["inference-component/", {"Ref": "One"}]}]}
Resources = dict[str, Any]


def policy(*actions_and_resources: tuple[str, str]) -> dict[str, Any]:
    statements = [
        {"Effect": "Allow", "Action": action, "Resource": resource}
        for action, resource in actions_and_resources
    ]
    document = {"Version": "2012-10-17", "Statement": statements}
    properties = {"PolicyName": "read", "PolicyDocument": document, "Roles": [{"Ref": "Role"}]}
    return {"Type": "AWS::IAM::Policy", "Properties": properties}


def model(archive: str = "one.tar.gz", bucket: str = "models") -> dict[str, Any]:
    container = {"Image": IMAGE, "ModelDataUrl": f"s3://{bucket}/{archive}"}
    properties = {"ExecutionRoleArn": ROLE, "PrimaryContainer": container}
    return {"Type": "AWS::SageMaker::Model", "Properties": properties, "DependsOn": ["Policy"]}


def component(
    model: str, *, copies: int = 1, accelerators: int = 1, memory: int = 8192
) -> dict[str, Any]:
    properties = {
        "EndpointName": {"Fn::GetAtt": ["Endpoint", "EndpointName"]},
        "VariantName": "AllTraffic",
        "Specification": {
            "ModelName": {"Fn::GetAtt": [model, "ModelName"]},
            "ComputeResourceRequirements": {
                "MinMemoryRequiredInMb": memory,
                "NumberOfAcceleratorDevicesRequired": accelerators,
            },
        },
        "RuntimeConfig": {"CopyCount": copies},
    }
    return {"Type": "AWS::SageMaker::InferenceComponent", "Properties": properties}


def shared(maximum: int = 1, **more: Any) -> Resources:
    """An endpoint for components with four GPUs on each instance, one component,
    and more resources.
    """
    variant = {
        "VariantName": "AllTraffic",
        "InstanceType": "ml.g5.12xlarge",
        "InitialInstanceCount": 1,
        "ManagedInstanceScaling": {
            "Status": "ENABLED",
            "MinInstanceCount": 0,
            "MaxInstanceCount": maximum,
        },
    }
    config = {"ExecutionRoleArn": ROLE, "ProductionVariants": [variant]}
    name = {"Fn::GetAtt": ["Config", "EndpointConfigName"]}
    return {
        "Role": {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": TRUST}},
        "Policy": policy(*READS),
        "Model": model(),
        "Config": {
            "Type": "AWS::SageMaker::EndpointConfig",
            "Properties": config,
            "DependsOn": ["Policy"],
        },
        "Endpoint": {
            "Type": "AWS::SageMaker::Endpoint",
            "Properties": {"EndpointConfigName": name},
        },
        "One": component("Model"),
        **more,
    }


def scaled() -> Resources:
    """A scalable target with a minimum of zero,
    and the policy and alarm that wake the component.
    """
    resource = {"Fn::Join": ["", ["inference-component/", NAME]]}
    target = {
        "MinCapacity": 0,
        "MaxCapacity": 2,
        "ResourceId": resource,
        "ScalableDimension": "sagemaker:inference-component:DesiredCopyCount",
        "ServiceNamespace": "sagemaker",
    }
    step = {
        "PolicyName": "wake",
        "PolicyType": "StepScaling",
        "ScalingTargetId": {"Ref": "Target"},
        "StepScalingPolicyConfiguration": {
            "AdjustmentType": "ChangeInCapacity",
            "StepAdjustments": [{"MetricIntervalLowerBound": 0, "ScalingAdjustment": 1}],
        },
    }
    alarm = {
        "Namespace": "AWS/SageMaker",
        "MetricName": "NoCapacityInvocationFailures",
        "Dimensions": [{"Name": "InferenceComponentName", "Value": NAME}],
        "Statistic": "Sum",
        "Period": 60,
        "EvaluationPeriods": 1,
        "Threshold": 1,
        "ComparisonOperator": "GreaterThanOrEqualToThreshold",
        "AlarmActions": [{"Ref": "Wake"}],
    }
    return {
        "Target": {"Type": "AWS::ApplicationAutoScaling::ScalableTarget", "Properties": target},
        "Wake": {"Type": "AWS::ApplicationAutoScaling::ScalingPolicy", "Properties": step},
        "Alarm": {"Type": "AWS::CloudWatch::Alarm", "Properties": alarm},
    }


def served(
    archive: str,
    *reads: tuple[str, str],
    retains: bool = False,
    count: int = 1,
    instance_type: str = "ml.g5.xlarge",
    bucket: str = "models",
) -> Resources:
    """An endpoint of one archive, and a role whose only policy is changed in place."""
    variant = {
        "ModelName": {"Fn::GetAtt": ["Model", "ModelName"]},
        "VariantName": "AllTraffic",
        "InstanceType": instance_type,
        "InitialInstanceCount": count,
        "InitialVariantWeight": 1,
    }
    config = {"EndpointConfigName": {"Fn::GetAtt": ["Config", "EndpointConfigName"]}}
    kept = {"RetainAllVariantProperties": True} if retains else {}
    return {
        "Role": {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": TRUST}},
        "Policy": policy(*(reads or READS)),
        "Model": model(archive, bucket),
        "Config": {
            "Type": "AWS::SageMaker::EndpointConfig",
            "Properties": {"ProductionVariants": [variant]},
        },
        "Endpoint": {"Type": "AWS::SageMaker::Endpoint", "Properties": {**config, **kept}},
    }


def endpoint_with_a_model() -> Resources:
    resources = shared()
    variant = resources["Config"]["Properties"]["ProductionVariants"][0]
    del variant["ManagedInstanceScaling"]
    variant["ModelName"] = {"Fn::GetAtt": ["Model", "ModelName"]}
    return resources


@pytest.fixture(scope="module")
def account() -> Iterator[SimulatedAccount]:
    with SimulatedAccount() as aws:
        aws.client("s3").create_bucket(Bucket="models")
        for key in ("one.tar.gz", "two.tar.gz"):
            aws.client("s3").put_object(Bucket="models", Key=key, Body=b"x")
        yield aws


@pytest.fixture
def aws(account: SimulatedAccount) -> Iterator[SimulatedAccount]:
    """The account, calm and without stacks after each test."""
    yield account
    account.behaviour = CALM
    for stack in account.stacks.all:
        if stack.status != "DELETE_COMPLETE":
            settle(account)
            account.deployer.delete(stack)
    account.components.all.clear()
    account.fleets.forget()


_NUMBERS = itertools.count()


def deploy(aws: SimulatedAccount, resources: Resources, name: str | None = None) -> Stack:
    """Create a stack of these resources, or update the one with this name."""
    name = name or f"Shared{next(_NUMBERS)}"
    stack = aws.stacks.find(name) or aws.stacks.add(name)
    aws.deployer.deploy(stack, Template({"Resources": resources}), {})
    return stack


def settle(aws: SimulatedAccount) -> None:
    """Let every operation on a component come to its end."""
    for each in list(aws.components.all.values()):
        while each.operation is not None:
            each.step()


def name_of(stack: Stack, logical_id: str = "One") -> str:
    return stack.resources[logical_id].physical.id.partition("inference-component/")[2]


def described(aws: SimulatedAccount, name: str) -> dict[str, Any]:
    found: dict[str, Any] = aws.client("sagemaker").describe_inference_component(
        InferenceComponentName=name
    )
    return found


def refusal(call: Any, **arguments: Any) -> str:
    """The message with which a request is refused."""
    with pytest.raises(ClientError) as refused:
        call(**arguments)
    return str(refused.value.response["Error"]["Message"])
