"""The construct IDs of each type of endpoint: a changed ID replaces a deployed resource."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from cdk_apps import add_repository, make_stack, write_repository

from constructs_triton import (
    InstanceType,
    TritonEndpoint,
    TritonEnsembleEndpoint,
    TritonMultiModelEndpoint,
    TritonVariant,
)

COMMON = {
    "EndpointConfig": "AWS::SageMaker::EndpointConfig",
    "ExecutionPolicy/Resource/Resource": "AWS::IAM::ManagedPolicy",
    "Resource": "AWS::SageMaker::Endpoint",
    "Role/Resource": "AWS::IAM::Role",
}
MODEL = "AWS::SageMaker::Model"


def single(stack: cdk.Stack, **options: Any) -> TritonEndpoint:
    return TritonEndpoint(stack, "Endpoint", model="other", **options)


def ensemble(stack: cdk.Stack, **options: Any) -> TritonEnsembleEndpoint:
    return TritonEnsembleEndpoint(stack, "Endpoint", ensemble="pipeline", **options)


def multi_model(stack: cdk.Stack, **options: Any) -> TritonMultiModelEndpoint:
    return TritonMultiModelEndpoint(stack, "Endpoint", **options)


def variants(stack: cdk.Stack, **options: Any) -> TritonEndpoint:
    names = ("Blue", "Green")
    return single(stack, variants=[TritonVariant(variant_name=name) for name in names], **options)


def shadow(stack: cdk.Stack, **options: Any) -> TritonEndpoint:
    return single(stack, shadow_variant=TritonVariant(variant_name="Next"), **options)


def in_vpc(stack: cdk.Stack, **options: Any) -> TritonEndpoint:
    return single(stack, vpc=ec2.Vpc(stack, "Vpc"), **options)


def scaled(stack: cdk.Stack, **options: Any) -> TritonEndpoint:
    endpoint = single(stack, **options)
    endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=2).scale_on_gpu_utilization("Gpu")
    return endpoint


KINDS: list[tuple[Any, dict[str, str]]] = [
    (single, {"Model": MODEL}),
    (ensemble, {"Model": MODEL}),
    (multi_model, {"Model": MODEL}),
    (variants, {"BlueVariant/Model": MODEL, "GreenVariant/Model": MODEL}),
    (shadow, {"Model": MODEL, "NextVariant/Model": MODEL}),
    (in_vpc, {"Model": MODEL, "SecurityGroup/Resource": "AWS::EC2::SecurityGroup"}),
    (
        scaled,
        {
            "Model": MODEL,
            "AllTrafficInstanceCount/Resource/Resource": "AWS::ApplicationAutoScaling::ScalableTarget",
            "AllTrafficInstanceCount/Resource/Gpu/Resource": "AWS::ApplicationAutoScaling::ScalingPolicy",
        },
    ),
]


@pytest.mark.parametrize(("make", "own"), KINDS, ids=[make.__name__ for make, _ in KINDS])
def test_construct_ids_of_an_endpoint(tmp_path: Path, make: Any, own: dict[str, str]) -> None:
    """The path and type of every CloudFormation resource below the endpoint are as recorded."""
    stack = make_stack()
    repository = add_repository(stack, write_repository(tmp_path / "models"))
    endpoint = make(stack, model_repository=repository, instance_type=InstanceType.of("ml.g5.xlarge"))
    found = {
        each.node.path.removeprefix("Test/Endpoint/"): each.cfn_resource_type
        for each in endpoint.node.find_all()
        if isinstance(each, cdk.CfnResource)
    }
    assert found == {**COMMON, **own}
