"""Endpoints that exist already: metrics, grants and scaling stay."""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam
from aws_cdk import aws_stepfunctions_tasks as tasks
from cdk_apps import add_repository, flat, make_stack, only, resources, synthesize, write_model

from constructs_triton import (
    InstanceType,
    ITritonEndpoint,
    TritonEndpoint,
    TritonMultiModelEndpoint,
)
from constructs_triton.errors import InvalidValueError

ARN = "arn:aws:sagemaker:us-east-1:210987654321:endpoint/digits"


@pytest.fixture
def stack() -> cdk.Stack:
    return make_stack()


def test_by_name(stack: cdk.Stack) -> None:
    """It is taken for one of this account and Region, and is an endpoint in every respect."""
    endpoint = TritonEndpoint.from_endpoint_name(stack, "Imported", "digits")
    assert isinstance(endpoint, ITritonEndpoint)
    assert endpoint.endpoint_name == "digits"
    assert flat(stack.resolve(endpoint.endpoint_arn)) == (
        "arn:<AWS::Partition>:sagemaker:eu-west-1:123456789012:endpoint/digits"
    )
    assert stack.resolve(endpoint.metric_invocations().dimensions) == {
        "EndpointName": "digits",
        "VariantName": "AllTraffic",
    }


def test_by_arn(stack: cdk.Stack) -> None:
    """Account and Region are those of the ARN; a caller is granted that very endpoint."""
    endpoint = TritonEndpoint.from_endpoint_arn(stack, "Imported", ARN)
    caller = iam.User(stack, "Caller")
    endpoint.grant_invoke(caller)
    assert endpoint.endpoint_name == "digits"
    assert endpoint.env.account == "210987654321"
    (statement,) = only(synthesize(stack), "AWS::IAM::Policy")["PolicyDocument"]["Statement"]
    assert statement["Resource"] == ARN


def test_by_attributes_scaling_works(stack: cdk.Stack) -> None:
    """Variants by name and instance type scale like any other; the endpoint itself is left alone."""
    endpoint = TritonEndpoint.from_endpoint_attributes(
        stack,
        "Imported",
        endpoint_name="digits",
        variants={"blue": InstanceType.of("ml.g5.12xlarge"), "green": None},
    )
    for name, gpus in (("blue", None), ("green", 1)):
        count = endpoint.variant(name).auto_scale_instance_count(min_capacity=1, max_capacity=3)
        count.scale_on_gpu_utilization("Gpu", gpu_count=gpus)
    template = synthesize(stack)
    targets = resources(template, "AWS::ApplicationAutoScaling::ScalableTarget").values()
    assert {each["Properties"]["ResourceId"] for each in targets} == {
        "endpoint/digits/variant/blue",
        "endpoint/digits/variant/green",
    }
    policies = resources(template, "AWS::ApplicationAutoScaling::ScalingPolicy").values()
    tracked = [each["Properties"]["TargetTrackingScalingPolicyConfiguration"] for each in policies]
    assert sorted(each["TargetValue"] for each in tracked) == [60, 240]


def test_unknown_instance_type_needs_its_gpus(stack: cdk.Stack) -> None:
    """What nobody said is not guessed."""
    endpoint = TritonEndpoint.from_endpoint_name(stack, "Imported", "digits")
    count = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=3)
    with pytest.raises(InvalidValueError, match="not known for an imported endpoint"):
        count.scale_on_gpu_utilization("Gpu")
    with pytest.raises(InvalidValueError, match=r"cfn_model: the model of .* imported endpoint is unknown"):
        _ = endpoint.variants[0].cfn_model


def test_kind_of_the_import_decides_about_target_models(stack: cdk.Stack) -> None:
    """An imported multi-model endpoint supports target models, and no streaming."""
    caller = iam.User(stack, "Caller")
    many = TritonMultiModelEndpoint.from_endpoint_name(stack, "Many", "catalog")
    many.grant_invoke(caller, target_models=["tenant-a/*"])
    with pytest.raises(InvalidValueError, match="do not support response streaming"):
        many.grant_invoke_with_response_stream(caller)
    (statement,) = only(synthesize(stack), "AWS::IAM::Policy")["PolicyDocument"]["Statement"]
    assert statement["Condition"] == {"StringLike": {"sagemaker:TargetModel": ["tenant-a/*"]}}


def test_import_is_one_of_two_ways(stack: cdk.Stack) -> None:
    """Name or ARN, and an ARN has to be one of an endpoint; nothing joins the tree otherwise."""
    with pytest.raises(InvalidValueError, match="got neither"):
        TritonEndpoint.from_endpoint_attributes(stack, "Imported")
    with pytest.raises(InvalidValueError, match="got both"):
        TritonEndpoint.from_endpoint_attributes(stack, "Imported", endpoint_name="digits", endpoint_arn=ARN)
    with pytest.raises(InvalidValueError, match="must be the ARN of an endpoint"):
        TritonEndpoint.from_endpoint_arn(stack, "Imported", "arn:aws:s3:::bucket")
    with pytest.raises(InvalidValueError, match="endpoint_name: must match"):
        TritonEndpoint.from_endpoint_name(stack, "Imported", "no_underscore")
    assert stack.node.try_find_child("Imported") is None


def test_arn_may_be_a_token(stack: cdk.Stack) -> None:
    """CloudFormation then takes it apart."""
    arn = cdk.CfnParameter(stack, "Arn").value_as_string
    endpoint = TritonEndpoint.from_endpoint_arn(stack, "Imported", arn)
    assert "Fn::Select" in str(stack.resolve(endpoint.endpoint_name))
    assert stack.resolve(endpoint.endpoint_arn) == {"Ref": "Arn"}


def test_step_functions_take_both_kinds_of_endpoint(stack: cdk.Stack, tmp_path: Path) -> None:
    """What is made here and what is imported both satisfy CDK's own IEndpoint, called from JavaScript."""
    write_model(tmp_path, "model")
    made = TritonEndpoint(
        stack,
        "Made",
        model_repository=add_repository(stack, tmp_path),
        model="model",
        instance_type=InstanceType.of("ml.c5.xlarge"),
    )
    imported = TritonEndpoint.from_endpoint_arn(stack, "Imported", ARN)
    caller = iam.User(stack, "Caller")
    for endpoint in (made, imported):
        assert endpoint.grant_invoke(caller).success
        task = tasks.CallAwsService(
            stack,
            f"Call{endpoint.node.id}",
            service="sagemakerruntime",
            action="invokeEndpoint",
            iam_resources=[endpoint.endpoint_arn],
            parameters={"EndpointName": endpoint.endpoint_name},
        )
        assert task.id == f"Call{endpoint.node.id}"
