"""Reservations, model packages, logs, networks, merged environments and values that AWS may add."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from cdk_apps import (
    add_endpoint,
    add_many,
    make_stack,
    only_variant,
    primary_container,
    resources,
    synthesize,
    warnings,
    write_model,
)

from constructs_triton import (
    CapacityReservationConfig,
    DataCapture,
    InstanceType,
    ModelSource,
    TritonEnvironment,
    TritonImage,
    TritonModelRepository,
    TritonVariant,
    TritonVpcEndpoints,
)
from constructs_triton_core.errors import InvalidValueError, RepositoryError
from triton_model_check.facts.images import published_versions

NEWEST = published_versions()[0]
ARN = "arn:aws:sagemaker:eu-west-1:123456789012:training-plan/plan"


CPU = InstanceType.of("ml.c6i.xlarge")
make = partial(add_endpoint, model="other", instance_type=CPU)


def has_warning(stack: cdk.Stack, text: str) -> bool:
    """Whether a warning of a stack contains a text."""
    return any(text in warning for warning in warnings(stack))


def test_reservation_reaches_the_variant(stack: cdk.Stack, path: Path) -> None:
    """The variant uses a reservation; a malformed ARN raises an error."""
    make(stack, path, capacity_reservation=CapacityReservationConfig(ml_reservation_arn=ARN))
    assert only_variant(synthesize(stack))["CapacityReservationConfig"] == {
        "CapacityReservationPreference": "capacity-reservations-only",
        "MlReservationArn": ARN,
    }
    with pytest.raises(InvalidValueError, match="must be the ARN of a reservation"):
        CapacityReservationConfig(ml_reservation_arn="plan")


def test_model_package_contains_image_and_models(stack: cdk.Stack) -> None:
    """Only the package and the user's variables are in the template; ``image`` raises an error."""
    source = ModelSource.from_model_package(f"{ARN.rpartition(':')[0]}:model-package/ranking/3")
    repository = TritonModelRepository(stack, "Models", source=source)
    with pytest.raises(InvalidValueError, match=r"^image: a model package contains its image"):
        make(stack, repository, model="ranking", image=TritonImage.dlc())
    with pytest.raises(InvalidValueError, match="a multi-model endpoint"):
        add_many(stack, repository, "Many")
    make(stack, repository, model="ranking")
    assert list(primary_container(synthesize(stack))) == ["ModelPackageName"]
    with pytest.raises(InvalidValueError, match="must be the ARN of a model package version"):
        ModelSource.from_model_package("-")


@pytest.mark.parametrize(
    ("account", "is_isolated", "warned"),
    [("865070037744", None, True), ("865070037744", True, False), ("123456789012", None, False)],
)
def test_package_of_the_marketplace_needs_isolation(
    stack: cdk.Stack, account: str, is_isolated: bool | None, warned: bool
) -> None:
    """AWS requires network isolation for models of AWS Marketplace, so its absence is a warning."""
    arn = (
        f"arn:aws:sagemaker:us-east-1:{account}:model-package/iris-8f00905c1f927a512b73ea29dd09ae30"
    )
    repository = TritonModelRepository(stack, "Models", source=ModelSource.from_model_package(arn))
    make(stack, repository, model="iris", enable_network_isolation=is_isolated)
    assert has_warning(stack, "AWS Marketplace need network isolation") == warned


def test_log_group_is_created_before_the_endpoint(stack: cdk.Stack, path: Path) -> None:
    """With a literal name the group has its retention and the endpoint depends on it."""
    endpoint = make(stack, path, endpoint_name="scores", log_retention=logs.RetentionDays.ONE_WEEK)
    template = synthesize(stack)
    ((name, group),) = resources(template, "AWS::Logs::LogGroup").items()
    assert group["Properties"] == {
        "LogGroupName": "/aws/sagemaker/Endpoints/scores",
        "RetentionInDays": 7,
    }
    (resource,) = resources(template, "AWS::SageMaker::Endpoint").values()
    assert name in resource["DependsOn"]
    assert stack.resolve(endpoint.log_group_name) == {
        "Fn::Join": ["", ["/aws/sagemaker/Endpoints/", stack.resolve(endpoint.endpoint_name)]]
    }
    with pytest.raises(InvalidValueError, match=r"^log_retention: needs an endpoint_name"):
        make(make_stack(), path, log_retention=logs.RetentionDays.ONE_WEEK)


@pytest.mark.parametrize(("strategy", "is_unknown"), [("NEAREST_FIRST", True), ("RANDOM", False)])
def test_unknown_value_is_a_warning(path: Path, strategy: Any, is_unknown: bool) -> None:
    """The service may add a routing strategy later."""
    stack = make_stack()
    make(stack, path, routing_strategy=strategy)
    assert has_warning(stack, "unknown value") == is_unknown
    if not is_unknown:
        synthesize(stack)


def test_misspelled_and_wrong_values_are_errors(stack: cdk.Stack, path: Path) -> None:
    """A typing error and a value of other containers raise errors;
    a new capture mode is a warning.
    """
    with pytest.raises(InvalidValueError, match=r'got "random"; did you mean "RANDOM"\?$'):
        make(make_stack(), path, routing_strategy="random")
    with pytest.raises(InvalidValueError, match="only containers for language models"):
        make(make_stack(), path, routing_strategy="KV_AWARE")
    wrong: Any = ["output"]
    newer: Any = ["Trace"]
    bucket = s3.Bucket.from_bucket_name(stack, "Bucket", "captured")
    with pytest.raises(InvalidValueError, match=r'did you mean "Output"\?$'):
        DataCapture(bucket=bucket, capture_modes=wrong)
    make(stack, path, data_capture=DataCapture(bucket=bucket, capture_modes=newer))
    assert has_warning(stack, "data_capture.capture_modes")


SUBNETS = ec2.SubnetSelection(subnet_type=ec2.SubnetType.PUBLIC)


def test_public_subnets_without_s3_endpoint_are_a_warning(path: Path) -> None:
    """The network interfaces have no public address; an endpoint for S3 removes the warning."""
    for has_endpoint in (False, True):
        stack = make_stack()
        vpc = ec2.Vpc(stack, "Vpc", max_azs=2, nat_gateways=0)
        if has_endpoint:
            TritonVpcEndpoints(stack, "Routes", vpc=vpc)
        make(stack, path, vpc=vpc, vpc_subnets=SUBNETS)
        assert has_warning(stack, "no public address") != has_endpoint


def test_one_zone_is_a_warning_and_too_many_subnets_an_error(path: Path) -> None:
    """Two zones print nothing; more than 16 subnets raise an error before CloudFormation does."""
    for zones in (1, 2):
        stack = make_stack()
        make(stack, path, vpc=ec2.Vpc(stack, "Vpc", max_azs=zones))
        assert has_warning(stack, "one Availability Zone") == (zones == 1)

    stack = make_stack()
    names = [f"subnet-{number:08x}" for number in range(17)]
    vpc = ec2.Vpc.from_vpc_attributes(
        stack, "Vpc", vpc_id="vpc-1", availability_zones=["a"], private_subnet_ids=names
    )
    with pytest.raises(
        InvalidValueError, match=r"^vpc_subnets: must have 1 to 16 subnets, got 17; remove 1$"
    ):
        make(stack, path, vpc=vpc)


@pytest.mark.parametrize(
    ("endpoint", "variant"),
    [
        (TritonEnvironment(thread_count=4, log_info=True), TritonEnvironment(thread_count=8)),
        (
            {"SAGEMAKER_TRITON_THREAD_COUNT": "4", "SAGEMAKER_TRITON_LOG_INFO": "true"},
            {"SAGEMAKER_TRITON_THREAD_COUNT": "8"},
        ),
        (TritonEnvironment(thread_count=4, log_info=True), {"SAGEMAKER_TRITON_THREAD_COUNT": "8"}),
        (
            {"SAGEMAKER_TRITON_THREAD_COUNT": "4", "SAGEMAKER_TRITON_LOG_INFO": "true"},
            TritonEnvironment(thread_count=8),
        ),
    ],
)
def test_environment_of_a_variant_is_merged(path: Path, endpoint: Any, variant: Any) -> None:
    """A variable of the variant replaces the endpoint's, and the others are kept."""
    stack = make_stack()
    variants = [
        TritonVariant(variant_name="A"),
        TritonVariant(variant_name="B", environment=variant),
    ]
    make(stack, path, environment=endpoint, variants=variants)

    counts = []
    for model in resources(synthesize(stack), "AWS::SageMaker::Model").values():
        variables = model["Properties"]["PrimaryContainer"]["Environment"]
        assert variables["SAGEMAKER_TRITON_LOG_INFO"] == "true"
        counts.append(variables["SAGEMAKER_TRITON_THREAD_COUNT"])
    assert sorted(counts) == ["4", "8"]


@pytest.mark.parametrize("name", ["ml.inf2.xlarge", "ml.trn1.2xlarge", "ml.inf1.xlarge"])
def test_inferentia_needs_an_image_of_your_own(path: Path, name: str) -> None:
    """AWS's Triton images are refused, and the error names ``from_ecr_repository``."""
    with pytest.raises(InvalidValueError, match=r"TritonImage\.from_ecr_repository"):
        make(make_stack(), path, instance_type=InstanceType.of(name))
    image = TritonImage.from_registry("123456789012.dkr.ecr.eu-west-1.amazonaws.com/neuron:1")
    make(make_stack(), path, instance_type=InstanceType.of(name), image=image)


def test_backend_of_another_image_is_an_error(tmp_path: Path) -> None:
    """``backend: "vllm"`` needs an image of your own, which the error names."""
    write_model(tmp_path, "other", config='backend: "vllm"')
    (tmp_path / "other" / "1" / "model.json").write_text('{"model": "Qwen/Qwen3-0.6B"}')
    with pytest.raises(
        RepositoryError, match=r"nvcr\.io/nvidia/tritonserver:26\.05-vllm-python-py3"
    ):
        make(make_stack(), tmp_path)
    image = TritonImage.from_registry("registry/vllm:1", triton_version="26.05")
    make(make_stack(), tmp_path, image=image)


@pytest.mark.parametrize(("version", "count"), [("99.12", 1), (NEWEST, 0)])
def test_image_newer_than_the_table_is_one_warning(path: Path, version: str, count: int) -> None:
    """The annotation says where the table ends and what is not known;
    two variants do not repeat it.
    """
    stack = make_stack()
    image = TritonImage.from_registry("registry/triton:1", triton_version=version)
    variants = [TritonVariant(variant_name="A"), TritonVariant(variant_name="B")]
    make(stack, path, image=image, variants=variants)

    found = [text for text in warnings(stack) if "target-image-unknown" in text]

    assert len(found) == count
    said = f"which ends at {NEWEST}; its backends, Python and ONNX Runtime are not known"
    assert all(said in text for text in found)


def test_shared_memory_counts_the_configured_region(path: Path) -> None:
    """Ten instances of 1 GiB do not fit into half of 16 GiB."""
    config = path / "other" / "config.pbtxt"
    config.write_text(config.read_text().replace("kind: KIND_CPU", "kind: KIND_CPU count: 10"))
    for size, is_warned in ((None, False), (cdk.Size.gibibytes(1), True)):
        stack = make_stack()
        instance_type = InstanceType.of("ml.c6i.2xlarge")
        environment = TritonEnvironment(shm_default_byte_size=size)
        make(stack, path, instance_type=instance_type, environment=environment)
        assert has_warning(stack, "GiB of /dev/shm") == is_warned
