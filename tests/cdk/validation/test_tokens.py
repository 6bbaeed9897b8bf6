"""Values that only CloudFormation knows pass through every property."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_kms as kms
from cdk_apps import add_repository, make_stack, only, resources, synthesize, write_repository

from constructs_triton import InstanceType, TritonEnsembleEndpoint, TritonImage, TritonMultiModelEndpoint
from constructs_triton.cdk.validation.tokens import is_concrete
from constructs_triton.errors import InvalidValueError


@pytest.fixture
def stack() -> cdk.Stack:
    return make_stack(None)


def text(stack: cdk.Stack, name: str) -> str:
    return cdk.CfnParameter(stack, name).value_as_string


def number(stack: cdk.Stack, name: str) -> float:
    return cdk.CfnParameter(stack, name, type="Number").value_as_number


def make_endpoint(stack: cdk.Stack, path: Path, **props: Any) -> TritonEnsembleEndpoint:
    options = {"instance_type": InstanceType.of("ml.g5.xlarge"), **props}
    repository = add_repository(stack, write_repository(path / "models"))
    return TritonEnsembleEndpoint(
        stack, "Endpoint", model_repository=repository, ensemble="pipeline", **options
    )


def test_parameters_reach_every_property(stack: cdk.Stack, tmp_path: Path) -> None:
    """Names, types, counts, weights, sizes and durations may all be parameters of the template."""
    endpoint = make_endpoint(
        stack,
        tmp_path,
        instance_type=InstanceType.of(text(stack, "Type")),
        endpoint_name=text(stack, "Name"),
        variant_name=text(stack, "Variant"),
        initial_instance_count=number(stack, "Count"),
        initial_variant_weight=number(stack, "Weight"),
        volume_size=cdk.Size.gibibytes(number(stack, "Volume")),
        container_startup_health_check_timeout=cdk.Duration.seconds(number(stack, "Startup")),
        model_data_download_timeout=cdk.Duration.seconds(number(stack, "Download")),
        inference_ami_version=text(stack, "Ami"),
        environment={"SAGEMAKER_TRITON_THREAD_COUNT": text(stack, "Threads")},
        encryption_key=kms.Key.from_key_arn(stack, "Key", f"arn:aws:kms:eu-west-1:1:key/{text(stack, 'Id')}"),
    )
    count = endpoint.auto_scale_instance_count(
        min_capacity=number(stack, "Min"), max_capacity=number(stack, "Max")
    )
    count.scale_on_gpu_utilization("Gpu", gpu_count=1, target_utilization_percent=number(stack, "Target"))
    template = synthesize(stack)
    (variant,) = only(template, "AWS::SageMaker::EndpointConfig")["ProductionVariants"]
    assert variant == {
        "VariantName": {"Ref": "Variant"},
        "ModelName": variant["ModelName"],
        "InstanceType": {"Ref": "Type"},
        "InitialInstanceCount": {"Ref": "Count"},
        "InitialVariantWeight": {"Ref": "Weight"},
        "InferenceAmiVersion": {"Ref": "Ami"},
        "VolumeSizeInGB": {"Ref": "Volume"},
        "ContainerStartupHealthCheckTimeoutInSeconds": {"Ref": "Startup"},
        "ModelDataDownloadTimeoutInSeconds": {"Ref": "Download"},
        "RoutingConfig": {"RoutingStrategy": "LEAST_OUTSTANDING_REQUESTS"},
    }
    assert only(template, "AWS::SageMaker::Endpoint")["EndpointName"] == {"Ref": "Name"}
    target = only(template, "AWS::ApplicationAutoScaling::ScalableTarget")
    assert (target["MinCapacity"], target["MaxCapacity"]) == ({"Ref": "Min"}, {"Ref": "Max"})


def test_type_known_at_deployment_gets_the_image_that_runs_anywhere(stack: cdk.Stack, tmp_path: Path) -> None:
    """The GPU image also starts on a CPU; the CPU image would leave GPUs idle."""
    make_endpoint(stack, tmp_path, instance_type=InstanceType.of(text(stack, "Type")))
    container = only(synthesize(stack), "AWS::SageMaker::Model")["PrimaryContainer"]
    assert container["Image"]["Fn::Join"][1][-1] == "/sagemaker-tritonserver:26.05-py3"


def test_bucket_and_prefix_of_the_repository(stack: cdk.Stack, tmp_path: Path) -> None:
    """The prefix may be made of tokens as well."""
    repository = add_repository(
        stack, write_repository(tmp_path / "models"), prefix=f"{text(stack, 'Prefix')}/models/"
    )
    TritonMultiModelEndpoint(
        stack,
        "Endpoint",
        model_repository=repository,
        instance_type=InstanceType.of("ml.g5.xlarge"),
        image=TritonImage.from_registry(text(stack, "Image")),
    )
    template = synthesize(stack)
    assert only(template, "Custom::TritonModelSync")["DestinationPrefix"] == {
        "Fn::Join": ["", [{"Ref": "Prefix"}, "/models/"]]
    }
    assert resources(template, "AWS::SageMaker::Endpoint")


def test_number_that_would_have_to_be_multiplied_is_refused(stack: cdk.Stack, tmp_path: Path) -> None:
    """CloudFormation cannot multiply: a token times four would be garbage, so that it is an error."""
    endpoint = make_endpoint(stack, tmp_path, instance_type=InstanceType.of("ml.g5.12xlarge"))
    count = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=2)
    with pytest.raises(InvalidValueError, match="has to be multiplied"):
        count.scale_on_gpu_utilization("Gpu", target_utilization_percent=number(stack, "Target"))
    with pytest.raises(InvalidValueError, match="has to be multiplied"):
        count.scale_on_invocations_per_instance("Calls", max_requests_per_second=number(stack, "Rate"))


@pytest.mark.parametrize("value", ["eu-west-1", 1.5, 0, ["a"], True])
def test_plain_values_are_concrete(value: object) -> None:
    """Only tokens are not."""
    assert is_concrete(value)


def test_tokens_are_not_concrete(stack: cdk.Stack) -> None:
    """Neither alone nor inside a text, nor as a number or list."""
    parameter = cdk.CfnParameter(stack, "List", type="CommaDelimitedList")
    tokens = (text(stack, "T"), f"x-{text(stack, 'U')}", number(stack, "N"), parameter.value_as_list)
    assert [is_concrete(token) for token in tokens] == [False] * 4
