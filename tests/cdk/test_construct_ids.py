"""The construct IDs of endpoints, components and repositories:
a changed ID replaces a deployed resource.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_logs as logs
from cdk_apps import ENVIRONMENT, add_repository, make_app, make_stack, write_repository
from constructs import Construct

from constructs_triton import (
    CompressionType,
    InstanceType,
    TritonComponentEndpoint,
    TritonEndpoint,
    TritonEnsembleEndpoint,
    TritonInferenceComponent,
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
POLICY = "AWS::ApplicationAutoScaling::ScalingPolicy"
COMPONENT = "AWS::SageMaker::InferenceComponent"
CPU = InstanceType.of("ml.c5.4xlarge")


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
    endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=2).scale_on_gpu_utilization(
        "Gpu"
    )
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
            "AllTrafficInstanceCount/Resource/Resource": (
                "AWS::ApplicationAutoScaling::ScalableTarget"
            ),
            "AllTrafficInstanceCount/Resource/Gpu/Resource": (
                "AWS::ApplicationAutoScaling::ScalingPolicy"
            ),
        },
    ),
]


def ids_of(construct: Construct) -> dict[str, str]:
    """The path of each CloudFormation resource below a construct, and its type."""
    return {
        each.node.path.removeprefix(f"{construct.node.path}/"): each.cfn_resource_type
        for each in construct.node.find_all()
        if isinstance(each, cdk.CfnResource)
    }


@pytest.mark.parametrize(("make", "own"), KINDS, ids=[make.__name__ for make, _ in KINDS])
def test_construct_ids_of_an_endpoint(tmp_path: Path, make: Any, own: dict[str, str]) -> None:
    """The path and type of every CloudFormation resource below the endpoint are as recorded."""
    stack = make_stack()
    repository = add_repository(stack, write_repository(tmp_path / "models"))
    endpoint = make(
        stack, model_repository=repository, instance_type=InstanceType.of("ml.g5.xlarge")
    )
    found = ids_of(endpoint)
    assert found == {**COMMON, **own}


# Inference components.


def add_shared(stack: cdk.Stack, **options: Any) -> TritonComponentEndpoint:
    given = {"min_instance_count": 0, "max_instance_count": 2, **options}
    return TritonComponentEndpoint(stack, "Shared", instance_type=CPU, **given)


def add_component(
    stack: cdk.Stack, endpoint: TritonComponentEndpoint, path: Path, **options: Any
) -> TritonInferenceComponent:
    repository = add_repository(stack, write_repository(path / "models"))
    given = {"ensemble": "pipeline", "min_memory": cdk.Size.gibibytes(2), **options}
    return TritonInferenceComponent(
        stack, "Component", endpoint=endpoint, model_repository=repository, **given
    )


def test_construct_ids_of_a_component_endpoint() -> None:
    """Its resources have the same ids as those of other endpoints, without a model."""
    assert ids_of(add_shared(make_stack())) == COMMON
    in_vpc = make_stack()
    shared = add_shared(in_vpc, vpc=ec2.Vpc(in_vpc, "Vpc"))
    assert ids_of(shared) == {**COMMON, "SecurityGroup/Resource": "AWS::EC2::SecurityGroup"}


def test_construct_ids_of_a_component(stack: cdk.Stack, tmp_path: Path) -> None:
    """The id of the component contains a digest of what SageMaker cannot change;
    a name is part of it.
    """
    component = add_component(stack, add_shared(stack), tmp_path)
    assert ids_of(component) == {"Model": MODEL, "Componentb119e929": COMPONENT}


def test_construct_ids_of_a_component_with_all_parts(tmp_path: Path) -> None:
    """Scaling from zero, a log group, and the policy of a component in another
    stack than its endpoint.
    """
    app = make_app()
    first, second = (cdk.Stack(app, name, env=ENVIRONMENT) for name in ("First", "Second"))
    component = add_component(
        second,
        add_shared(first),
        tmp_path,
        inference_component_name="pipeline",
        log_retention=logs.RetentionDays.ONE_MONTH,
    )
    component.auto_scale_copy_count(
        min_capacity=0, max_capacity=2
    ).scale_on_concurrent_requests_per_copy("Requests", target_concurrent_requests=4)
    assert ids_of(component) == {
        "ExecutionPolicy/Resource/Resource": "AWS::IAM::ManagedPolicy",
        "Model": MODEL,
        "Componente5c6525d": COMPONENT,
        "LogGroup/Resource": "AWS::Logs::LogGroup",
        "CopyCount/Resource/Resource": "AWS::ApplicationAutoScaling::ScalableTarget",
        "CopyCount/Resource/Requests/Resource": POLICY,
        "CopyCount/WakeUp/Resource": POLICY,
        "CopyCount/WakeUp/Alarm/Resource": "AWS::CloudWatch::Alarm",
    }


# Repositories.

BUCKET = {"Bucket/Resource": "AWS::S3::Bucket", "Bucket/Policy/Resource": "AWS::S3::BucketPolicy"}


def function_ids(scope: str, resource_type: str) -> dict[str, str]:
    """The ids of a custom resource with its function."""
    return {
        f"{scope}/Function/LogGroup/Resource": "AWS::Logs::LogGroup",
        f"{scope}/Function/Role/Resource": "AWS::IAM::Role",
        f"{scope}/Function/Role/DefaultPolicy/Resource": "AWS::IAM::Policy",
        f"{scope}/Function/Resource/Resource": "AWS::Lambda::Function",
        f"{scope}/Function/Continuation/Resource": "AWS::IAM::Policy",
        f"{scope}/Policy/Resource/Resource": "AWS::IAM::ManagedPolicy",
        f"{scope}/Resource/Default": resource_type,
    }


def test_construct_ids_of_a_repository_of_a_multi_model_endpoint(
    stack: cdk.Stack, tmp_path: Path
) -> None:
    """The first endpoint creates the bucket and the custom resource that copies the archives."""
    repository = add_repository(stack, write_repository(tmp_path / "models"))
    assert ids_of(repository) == {}
    multi_model(stack, model_repository=repository, instance_type=CPU)
    assert ids_of(repository) == {**BUCKET, **function_ids("Sync", "Custom::TritonModelSync")}


def test_construct_ids_of_a_repository_of_files(stack: cdk.Stack, tmp_path: Path) -> None:
    """The custom resource that places a model as files has the name of the model in its id."""
    repository = add_repository(stack, write_repository(tmp_path / "models"))
    single(
        stack, model_repository=repository, instance_type=CPU, compression_type=CompressionType.NONE
    )
    assert ids_of(repository) == {
        **BUCKET,
        **function_ids("Files-other", "Custom::TritonModelFiles"),
    }
