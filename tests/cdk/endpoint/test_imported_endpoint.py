"""Imported endpoints have metrics, grants and scaling."""

from __future__ import annotations

from pathlib import Path

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam
from aws_cdk import aws_stepfunctions_tasks as tasks
from cdk_apps import add_endpoint, flat, only, resources, synthesize

from constructs_triton import (
    InstanceType,
    ITritonEndpoint,
    TritonEndpoint,
    TritonMultiModelEndpoint,
)
from constructs_triton_core.errors import InvalidValueError

ARN = "arn:aws:sagemaker:us-east-1:210987654321:endpoint/digits"


def test_by_name(stack: cdk.Stack) -> None:
    """The endpoint belongs to the account and Region of the stack, and has metrics."""
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
    """Account and Region are those of the ARN, and a grant names that ARN, also with the name."""
    endpoint = TritonEndpoint.from_endpoint_arn(stack, "Imported", ARN)
    caller = iam.User(stack, "Caller")
    endpoint.grant_invoke(caller)
    both = TritonEndpoint.from_endpoint_attributes(
        stack, "Both", endpoint_name="Digits", endpoint_arn=ARN
    )
    both.grant_invoke(caller)
    assert both.endpoint_name == "Digits"
    assert endpoint.env.account == "210987654321"
    (statement,) = only(synthesize(stack), "AWS::IAM::Policy")["PolicyDocument"]["Statement"]
    assert statement["Resource"] == ARN


def test_by_attributes_scaling_works(stack: cdk.Stack) -> None:
    """Variants given by name and instance type can scale; the endpoint itself is not changed."""
    variants = {"blue": InstanceType.of("ml.g5.12xlarge"), "green": None}
    endpoint = TritonEndpoint.from_endpoint_attributes(
        stack, "Imported", endpoint_name="digits", variants=variants
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
    """A GPU policy needs ``gpu_count`` if the instance type is not given."""
    endpoint = TritonEndpoint.from_endpoint_name(stack, "Imported", "digits")
    count = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=3)
    with pytest.raises(InvalidValueError, match="got the unknown type of an imported endpoint"):
        count.scale_on_gpu_utilization("Gpu")
    with pytest.raises(
        InvalidValueError, match=r"cfn_model: the model of .* imported endpoint is unknown"
    ):
        _ = endpoint.variants[0].cfn_model


def test_imported_multi_model_endpoint_supports_target_models(stack: cdk.Stack) -> None:
    """An imported multi-model endpoint supports target models, and no streaming."""
    caller = iam.User(stack, "Caller")
    many = TritonMultiModelEndpoint.from_endpoint_name(stack, "Many", "catalog")
    many.grant_invoke(caller, target_models=["tenant-a/*"])
    with pytest.raises(InvalidValueError, match="do not support response streaming"):
        many.grant_invoke_with_response_stream(caller)
    (statement,) = only(synthesize(stack), "AWS::IAM::Policy")["PolicyDocument"]["Statement"]
    assert statement["Condition"] == {"StringLike": {"sagemaker:TargetModel": ["tenant-a/*"]}}


def test_import_needs_a_name_or_an_arn(stack: cdk.Stack) -> None:
    """Neither of them, or the ARN of another resource, raise an error, and nothing is added."""
    with pytest.raises(InvalidValueError, match="is required; set it, or set endpoint_arn"):
        TritonEndpoint.from_endpoint_attributes(stack, "Imported")
    with pytest.raises(InvalidValueError, match="must be the ARN of an endpoint"):
        TritonEndpoint.from_endpoint_arn(stack, "Imported", "arn:aws:s3:::bucket")
    with pytest.raises(InvalidValueError, match="endpoint_name: must match"):
        TritonEndpoint.from_endpoint_name(stack, "Imported", "no_underscore")
    assert stack.node.try_find_child("Imported") is None


def test_arn_may_be_a_token(stack: cdk.Stack) -> None:
    """The ARN and the name may be parameters."""
    arn, name = (cdk.CfnParameter(stack, each).value_as_string for each in ("Arn", "Name"))
    endpoint = TritonEndpoint.from_endpoint_attributes(
        stack, "Imported", endpoint_name=name, endpoint_arn=arn
    )
    assert stack.resolve(endpoint.endpoint_name) == {"Ref": "Name"}
    assert stack.resolve(endpoint.endpoint_arn) == {"Ref": "Arn"}


def test_step_functions_accept_created_and_imported_endpoints(
    stack: cdk.Stack, tmp_path: Path
) -> None:
    """A state machine in JavaScript accepts created and imported endpoints as IEndpoint."""
    made = add_endpoint(stack, tmp_path, "Made")
    imported = TritonEndpoint.from_endpoint_attributes(
        stack, "Imported", endpoint_name="digits", endpoint_arn=ARN
    )
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
