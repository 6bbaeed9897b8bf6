"""Properties of wrong types, and properties for which ``None`` has a meaning."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from cdk_apps import add_endpoint, add_repository, make_stack, only, synthesize, write_model

from constructs_triton import (
    InstanceType,
    TritonEndpoint,
    TritonEnsembleEndpoint,
    TritonImage,
    TritonModelRepository,
    TritonMultiModelEndpoint,
    TritonVariant,
)
from constructs_triton_core.errors import InvalidValueError, RepositoryError

GPU = InstanceType.of("ml.g5.xlarge")


REFUSED: list[tuple[dict[str, Any], str]] = [
    (
        {"instance_type": "ml.g5.xlarge"},
        r'must be of type InstanceType, got "ml.g5.xlarge"; write InstanceType',
    ),
    (
        {"image": "26.05"},
        r'^image: must be of type TritonImage, got "26.05"; write TritonImage\.dlc',
    ),
    (
        {"volume_size": 50},
        r"^volume_size: must be of type Size, got 50; write Size\.gibibytes\(50\)$",
    ),
    ({"model_data_download_timeout": 600}, "must be of type Duration, got 600; write Duration"),
    ({"variants": ["Green"]}, r'^variants: must be of type TritonVariant, got "Green"'),
    ({"environment": ["A=b"]}, "must be of type TritonEnvironment or mapping"),
    ({"initial_instance_count": "2"}, 'must be a number, got "2"; write it without quotes'),
    ({"vpc_config": {"subnets": ["s"]}}, r"^vpc_config: .*; set vpc=ec2\.Vpc\.from_lookup\("),
    ({"kms_key_id": "k"}, r"^kms_key_id: .*; set encryption_key=kms\.Key\.from_key_arn\("),
    ({"endpoint_name": 3}, 'endpoint_name: must be a string, got 3; write "3"'),
]


@pytest.mark.parametrize(
    ("props", "message"), REFUSED, ids=[next(iter(props)) for props, _ in REFUSED]
)
def test_property_of_another_type_shows_an_example(
    path: Path, props: dict[str, Any], message: str
) -> None:
    """A wrong type raises an error with an example, and nothing is added to the tree."""
    stack = make_stack()
    repository = add_repository(stack, path)
    options = {"instance_type": GPU, **props}
    with pytest.raises(InvalidValueError, match=message):
        TritonEnsembleEndpoint(
            stack, "Endpoint", model_repository=repository, ensemble="pipeline", **options
        )
    assert stack.node.try_find_child("Endpoint") is None


def test_misspelt_property_has_a_suggestion(stack: cdk.Stack, path: Path) -> None:
    """As for any keyword in Python, the error is a TypeError; it suggests the right name."""
    typo: dict[str, Any] = {"inference_ami": None}
    repository = add_repository(stack, path)
    with pytest.raises(
        TypeError, match="argument 'inference_ami'; did you mean \"inference_ami_version\""
    ):
        TritonMultiModelEndpoint(stack, "Endpoint", model_repository=repository, **typo)


def test_repository_of_another_type_is_refused() -> None:
    """A folder in place of the construct raises an error that shows how to create the construct."""
    with pytest.raises(
        InvalidValueError, match=r'model_repository: .* TritonModelRepository, got "models"; write'
    ):
        TritonMultiModelEndpoint(
            make_stack(),
            "Endpoint",
            model_repository="models",  # type: ignore[arg-type]
            instance_type=GPU,
        )


@pytest.mark.parametrize(
    ("props", "message"),
    [
        (
            {"source": "models"},
            r'^source: must be of type ModelSource, got "models"; write ModelSource\.from_d',
        ),
        (
            {"check": "off"},
            r'^check: must be of type RepositoryCheck, got "off"; write RepositoryCheck\.off',
        ),
    ],
)
def test_repository_checks_the_types_of_its_properties(props: dict[str, Any], message: str) -> None:
    """A path in place of a source, and a string in place of a check,
    raise errors with an example.
    """
    with pytest.raises(InvalidValueError, match=message):
        TritonModelRepository(make_stack(), "Models", **props)


@pytest.mark.parametrize("name", ["PING_MODE", "OVERRIDE_PING_MODE"])
def test_ping_mode_of_a_plain_mapping_is_checked(stack: cdk.Stack, path: Path, name: str) -> None:
    """A plain mapping, too, may not set a ping mode that one bad model makes
    permanently unhealthy.
    """
    options: dict[str, Any] = {
        "model_repository": add_repository(stack, path),
        "instance_type": GPU,
    }
    variable = f"SAGEMAKER_TRITON_{name}"
    with pytest.raises(
        InvalidValueError, match=rf'"{variable}"\]: .* got "ready"\n +hint: remove it, or set'
    ):
        TritonMultiModelEndpoint(stack, "Endpoint", environment={variable: "ready"}, **options)
    TritonMultiModelEndpoint(stack, "Endpoint", environment={variable: "live"}, **options)


def test_plain_mapping_is_checked_against_the_image(stack: cdk.Stack, path: Path) -> None:
    """A variable that the image does not read raises an error with the first
    release that reads it.
    """
    options: dict[str, Any] = {
        "model_repository": add_repository(stack, path),
        "model": "other",
        "instance_type": GPU,
        "environment": {"SAGEMAKER_TRITON_INFERENCE_TYPE": "generate"},
    }
    with pytest.raises(
        InvalidValueError, match=r"image 24\.09 does not read (?s:.*)use image 25\.04 or later"
    ):
        TritonEndpoint(stack, "Old", image=TritonImage.dlc("24.09"), **options)
    assert stack.node.try_find_child("Old") is None
    TritonEndpoint(stack, "New", image=TritonImage.dlc("25.04"), **options)


@pytest.mark.parametrize(
    ("account", "region"), [("111122223333", "us-east-1"), ("123456789012", "eu-west-1")]
)
def test_repository_of_another_environment_is_refused(
    path: Path, account: str, region: str
) -> None:
    """A multi-model endpoint needs a bucket in its Region;
    a single model becomes an asset in any Region.
    """
    app = cdk.App()
    there = cdk.Stack(app, "There", env=cdk.Environment(account="111122223333", region="eu-west-1"))
    here = cdk.Stack(app, "Here", env=cdk.Environment(account=account, region=region))
    repository = add_repository(there, path)
    options: dict[str, Any] = {"model_repository": repository, "instance_type": GPU}
    message = (
        rf"^model_repository: .*aws://{account}/{region}, got aws://111122223333/eu-west-1; "
        "create a Triton"
    )
    with pytest.raises(InvalidValueError, match=message):
        TritonMultiModelEndpoint(here, "Many", **options)
    assert here.node.try_find_child("Many") is None
    TritonEnsembleEndpoint(here, "One", ensemble="pipeline", **options)
    TritonMultiModelEndpoint(there, "Many", **options)
    app.synth()


def test_models_larger_than_the_given_volume_are_refused(stack: cdk.Stack, tmp_path: Path) -> None:
    """A given volume must be large enough for the models; a token is not checked."""
    write_model(tmp_path, "model")
    with (tmp_path / "model" / "1" / "weights.bin").open("wb") as weights:
        weights.truncate(1_100_000_000)
    options: dict[str, Any] = {
        "model_repository": add_repository(stack, tmp_path),
        "model": "model",
    }
    cpu = InstanceType.of("ml.m5.xlarge")
    with pytest.raises(RepositoryError, match=r"the models need 1\.1 GB of storage, got 1 GB"):
        TritonEndpoint(
            stack, "Small", volume_size=cdk.Size.gibibytes(1), instance_type=cpu, **options
        )
    assert stack.node.try_find_child("Small") is None


def test_host_ami_of_none_is_left_out(path: Path) -> None:
    """``None`` uses SageMaker's default host AMI, for the endpoint or for one variant."""
    variants = [
        TritonVariant(variant_name="Chosen"),
        TritonVariant(variant_name="Bare", inference_ami_version=None),
    ]
    found = []
    for options in ({"inference_ami_version": None}, {"variants": variants}):
        stack = make_stack()
        repository = add_repository(stack, path)
        TritonEnsembleEndpoint(
            stack,
            "Endpoint",
            model_repository=repository,
            ensemble="pipeline",
            instance_type=GPU,
            **options,
        )
        config = only(synthesize(stack), "AWS::SageMaker::EndpointConfig")
        found += ["InferenceAmiVersion" in each for each in config["ProductionVariants"]]
    assert found == [False, True, False]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            lambda _: {"initial_instance_count": 1.5},
            "whole number of instances, got 1.5; round",
        ),
        (
            lambda stack: {"security_groups": ec2.SecurityGroup(stack, "One", vpc=_vpc(stack))},
            r"got a SecurityGroup; write it in brackets, security_groups=\[...\]",
        ),
        (
            lambda stack: {"vpc_subnets": _vpc(stack).private_subnets},
            r"got \[a PrivateSubnet.*write ec2.SubnetSelection\(subnets=...\) with this list",
        ),
        (
            lambda _: {"image": "nvcr.io/nvidia/tritonserver:24.10-py3"},
            r'write TritonImage.dlc\("26.05"\), because AWS has no image of 24.10',
        ),
        (
            lambda _: {"image": "nvcr.io/nvidia/tritonserver:26.05-py3"},
            r'write TritonImage.dlc\("26.05"\)$',
        ),
    ],
)
def test_value_that_people_write_first_has_a_hint_that_works(
    stack: cdk.Stack, tmp_path: Path, options: Callable[[cdk.Stack], dict[str, Any]], message: str
) -> None:
    """A number with a fraction, one object in place of a list, a list in place of a selection, and
    an image that AWS does not have.
    """
    with pytest.raises(InvalidValueError, match=message):
        add_endpoint(stack, tmp_path, **options(stack))


def _vpc(stack: cdk.Stack) -> ec2.Vpc:
    return ec2.Vpc(stack, "Network")


def test_scope_and_id_in_the_wrong_order(stack: cdk.Stack) -> None:
    """The CDK's own error would be that a string has no node."""
    with pytest.raises(InvalidValueError, match=r'got "Models"; write the scope first'):
        TritonModelRepository("Models", stack)  # type: ignore[arg-type]


def test_list_of_grantees(stack: cdk.Stack, tmp_path: Path) -> None:
    """A permission is given to one after the other."""
    with pytest.raises(InvalidValueError, match=r"got .*; write one call for each of them"):
        add_endpoint(stack, tmp_path).grant_invoke([iam.User(stack, "User")])  # type: ignore[arg-type]
