"""Values that are known only at deployment pass through every property."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_kms as kms
from cdk_apps import add_repository, make_stack, only, resources, synthesize, write_repository

from constructs_triton import (
    InstanceType,
    TritonEnsembleEndpoint,
    TritonImage,
    TritonMultiModelEndpoint,
)
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.tokens import is_token


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
        encryption_key=kms.Key.from_key_arn(
            stack, "Key", f"arn:aws:kms:eu-west-1:1:key/{text(stack, 'Id')}"
        ),
    )
    count = endpoint.auto_scale_instance_count(
        min_capacity=number(stack, "Min"), max_capacity=number(stack, "Max")
    )
    count.scale_on_gpu_utilization(
        "Gpu", gpu_count=1, target_utilization_percent=number(stack, "Target")
    )
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


def test_instance_type_token_gets_the_gpu_image(stack: cdk.Stack, tmp_path: Path) -> None:
    """The GPU image also starts on a CPU; the CPU image would not use GPUs."""
    make_endpoint(stack, tmp_path, instance_type=InstanceType.of(text(stack, "Type")))
    container = only(synthesize(stack), "AWS::SageMaker::Model")["PrimaryContainer"]
    assert container["Image"]["Fn::Join"][1][-1] == "/sagemaker-tritonserver:26.05-py3"


def test_bucket_and_prefix_of_the_repository(stack: cdk.Stack, tmp_path: Path) -> None:
    """The bucket name and the prefix may be tokens."""
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


def test_number_token_that_must_be_multiplied_is_refused(stack: cdk.Stack, tmp_path: Path) -> None:
    """CloudFormation cannot multiply, so a token for such a number raises an error."""
    endpoint = make_endpoint(stack, tmp_path, instance_type=InstanceType.of("ml.g5.12xlarge"))
    count = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=2)
    with pytest.raises(InvalidValueError, match="target_utilization_percent: has to be multiplied"):
        count.scale_on_gpu_utilization("Gpu", target_utilization_percent=number(stack, "Target"))
    with pytest.raises(InvalidValueError, match="has to be multiplied"):
        count.scale_on_invocations_per_instance(
            "Calls", max_requests_per_second=number(stack, "Rate")
        )


PLAIN: tuple[object, ...] = (
    "",
    "eu-west-1",
    "#{Token[X.1]}",
    1.5,
    0,
    -1e300,
    True,
    [],
    ["a"],
    ["${Token[X.1]}", "a"],
)
# Values that jsii cannot pass to the CDK: infinity ends its process.
NOT_FOR_JSII = (float("-inf"), float("nan"), 10**400, ("a", "b"), {"a": "b"}, Path("models"), None)


@pytest.mark.parametrize("value", [*PLAIN, *NOT_FOR_JSII], ids=str)
def test_plain_values_are_not_tokens(value: object) -> None:
    """A value that is known at synth is not a token."""
    assert not is_token(value)


def test_plain_values_are_resolved_for_the_cdk() -> None:
    """The CDK agrees that plain values are not tokens."""
    assert [value for value in PLAIN if cdk.Token.is_unresolved(value)] == []


def test_tokens_are_what_the_cdk_calls_unresolved(stack: cdk.Stack) -> None:
    """Strings, parts of strings, numbers, lists and resolvable objects are tokens,
    and the CDK agrees.
    """
    names = cdk.CfnParameter(stack, "List", type="CommaDelimitedList")
    key = kms.Key(stack, "Key")
    tokens = [
        text(stack, "T"),
        f"x-{text(stack, 'U')}",
        cdk.Aws.REGION,
        key.key_arn,
        number(stack, "N"),
        cdk.Token.as_number(cdk.Fn.ref("Other")),
        names.value_as_list,
        cdk.Fn.split(",", text(stack, "V")),
        cdk.Token.as_any({"a": text(stack, "W")}),
        cdk.Fn.condition_equals("a", "b"),
    ]
    assert [is_token(token) for token in tokens] == [True] * len(tokens)
    assert [cdk.Token.is_unresolved(token) for token in tokens] == [True] * len(tokens)


def test_amounts_of_tokens_are_tokens(stack: cdk.Stack) -> None:
    """A duration or size is a token exactly if the number in it is."""
    count = number(stack, "N")
    assert is_token(cdk.Duration.minutes(count))
    assert is_token(cdk.Size.gibibytes(count))
    assert not is_token(cdk.Duration.minutes(1))
    assert not is_token(cdk.Size.gibibytes(1))
