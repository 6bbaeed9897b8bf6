"""The container image of an endpoint."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ecr as ecr
from aws_cdk.assertions import Annotations, Match
from cdk_apps import add_endpoint, flat, make_stack, primary_container, statements, synthesize

from constructs_triton import ModelSource, ServingImage, TritonImage
from constructs_triton_core.errors import FactNotFoundError, InvalidValueError
from triton_model_check.facts import images


def in_region(region: str | None) -> cdk.Stack:
    if region is None:
        return make_stack(None)
    return make_stack(cdk.Environment(account="123456789012", region=region))


def make_endpoint(
    stack: cdk.Stack, path: Path, image: TritonImage | None, id: str = "Endpoint"
) -> None:
    add_endpoint(stack, path, id, image=image)


def image_of(template: dict[str, Any]) -> str:
    return flat(primary_container(template)["Image"])


@pytest.mark.parametrize(
    ("region", "version", "uri"),
    [
        (
            "us-east-1",
            "26.05",
            "763104351884.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:26.05-py3",
        ),
        (
            "il-central-1",
            "24.09",
            "780543022126.dkr.ecr.il-central-1.amazonaws.com/sagemaker-tritonserver:24.09-py3",
        ),
        (
            "cn-north-1",
            "25.04",
            "727897471807.dkr.ecr.cn-north-1.amazonaws.com.cn/sagemaker-tritonserver:25.04-py3",
        ),
    ],
)
def test_account_and_suffix_by_region(tmp_path: Path, region: str, version: str, uri: str) -> None:
    """The URI is correct in Regions that the CDK's table lacks, and in China."""
    stack = in_region(region)
    make_endpoint(stack, tmp_path, TritonImage.dlc(version))
    assert image_of(synthesize(stack)) == uri


def test_default_is_the_constant_version(tmp_path: Path) -> None:
    """Without a version, the newest version that this library knows is used."""
    stack = in_region("eu-west-1")
    make_endpoint(stack, tmp_path, None)
    assert image_of(synthesize(stack)).endswith(f":{images.DEFAULT_VERSION}-py3")


def test_agnostic_stack_maps_only_regions_that_have_the_version(tmp_path: Path) -> None:
    """The mapping has no entry for a Region without the image,
    so a deployment there fails at once.
    """
    stack = in_region(None)
    make_endpoint(stack, tmp_path, TritonImage.dlc("24.09"))
    template = synthesize(stack)
    rows = template["Mappings"]["TritonImageAccounts2409"]
    assert tuple(sorted(rows)) == images.regions("24.09")
    assert rows["af-south-1"] == {"account": "626614931356"}
    assert image_of(template) == (
        "<TritonImageAccounts2409[<AWS::Region>][account]>.dkr.ecr.<AWS::Region>.<AWS::URLSuffix>"
        "/sagemaker-tritonserver:24.09-py3"
    )


def test_two_versions_in_one_agnostic_stack(tmp_path: Path) -> None:
    """Each version has one mapping, also if it is used twice."""
    stack = in_region(None)
    for index, version in enumerate(("26.05", "24.09", "26.05")):
        make_endpoint(stack, tmp_path, TritonImage.dlc(version), f"E{index}")
    assert set(synthesize(stack)["Mappings"]) == {
        "TritonImageAccounts2409",
        "TritonImageAccounts2605",
    }


def test_region_without_the_version_is_refused(tmp_path: Path) -> None:
    """The error names the newest version of the Region, and nothing is added to the tree."""
    stack = in_region("cn-north-1")
    with pytest.raises(FactNotFoundError, match=r'26\.05.*use "25\.04", the newest in that Region'):
        make_endpoint(stack, tmp_path, None)
    assert stack.node.try_find_child("Endpoint") is None


@pytest.mark.parametrize(
    ("tag_or_digest", "separator"),
    [("prod", ":"), ("sha256:" + "0" * 64, "@")],
    ids=["tag", "digest"],
)
def test_own_ecr_repository(tmp_path: Path, tag_or_digest: str, separator: str) -> None:
    """Your own image has a tag or digest, and the role may pull only from its ECR repository."""
    stack = in_region("eu-west-1")
    repository = ecr.Repository.from_repository_name(stack, "Repository", "triton")
    image = TritonImage.from_ecr_repository(
        repository, tag_or_digest=tag_or_digest, triton_version="26.05"
    )
    make_endpoint(stack, tmp_path, image)
    template = synthesize(stack)
    assert image_of(template).endswith(f"/triton{separator}{tag_or_digest}")
    assert flat(statements(template)["PullImage"]["Resource"]).endswith(":repository/triton")


@pytest.mark.parametrize(
    ("name", "is_moving"),
    [
        ("triton", True),
        ("triton:latest", True),
        ("triton:26.05-1", False),
        (f"triton@sha256:{'0' * 64}", False),
    ],
)
def test_tag_latest_is_a_warning(tmp_path: Path, name: str, is_moving: bool) -> None:
    """A new image under the tag "latest" changes no template; a version or a digest does."""
    stacks = [in_region("eu-west-1"), in_region("eu-west-1")]
    repository = ecr.Repository.from_repository_name(stacks[0], "Repository", "triton")
    reference = name.removeprefix("triton").lstrip(":@")
    images = [
        TritonImage.from_ecr_repository(repository, *filter(None, [reference])),
        TritonImage.from_registry(f"123456789012.dkr.ecr.eu-west-1.amazonaws.com/{name}"),
    ]
    for stack, image in zip(stacks, images, strict=True):
        make_endpoint(stack, tmp_path, image)
        found = Annotations.from_stack(stack).find_warning(
            "*", Match.string_like_regexp('.*tag is "latest"')
        )
        assert len(found) == is_moving


def test_registry_uri_is_used_unchanged(tmp_path: Path) -> None:
    """A full URI is used unchanged, without any permission."""
    stack = in_region("eu-west-1")
    make_endpoint(stack, tmp_path, TritonImage.from_registry("registry.example.com/triton:1"))
    template = synthesize(stack)
    assert image_of(template) == "registry.example.com/triton:1"
    assert "PullImage" not in statements(template)


def test_docker_asset(tmp_path: Path) -> None:
    """A folder with a Dockerfile becomes an image asset, which the role may pull."""
    (tmp_path / "docker").mkdir()
    (tmp_path / "docker" / "Dockerfile").write_text("FROM scratch\n")
    stack = in_region("eu-west-1")
    make_endpoint(stack, tmp_path / "models", TritonImage.from_asset(tmp_path / "docker"))
    template = synthesize(stack)
    assert "/cdk-hnb659fds-container-assets-123456789012-eu-west-1:" in image_of(template)
    assert "container-assets" in flat(statements(template)["PullImage"]["Resource"])


@pytest.mark.parametrize("version", ["26.5", "latest", "26.13"])
def test_malformed_version_is_refused(version: str) -> None:
    """A version consists of a year and a month."""
    with pytest.raises(InvalidValueError, match="must be a Triton release"):
        TritonImage.dlc(version)


@pytest.mark.parametrize(
    ("version", "reason"), [("26.04", "does not list its Regions"), ("24.07", "publishes no")]
)
def test_agnostic_stack_refuses_a_version_without_a_region(
    tmp_path: Path, version: str, reason: str
) -> None:
    """A version that no Region has raises an error, because the mapping would be empty."""
    with pytest.raises(FactNotFoundError, match=f'{reason}.*got "{version}"; use "26.05"'):
        make_endpoint(in_region(None), tmp_path, TritonImage.dlc(version))


def test_version_must_not_be_a_token() -> None:
    """The account and the host AMI depend on the version, so a token raises an error."""
    parameter = cdk.CfnParameter(make_stack(None), "Version")
    with pytest.raises(InvalidValueError, match=r"must be known at synth.*from_registry"):
        TritonImage.dlc(parameter.value_as_string)


@pytest.mark.parametrize("uri", ["", "my image:1", "x" * 256])
def test_registry_image_keeps_the_limits_of_the_api(uri: str) -> None:
    """A URI that CreateModel rejects raises an error."""
    with pytest.raises(InvalidValueError, match=r"^image: must"):
        TritonImage.from_registry(uri)


def test_asset_needs_a_dockerfile(tmp_path: Path) -> None:
    """The error names a folder that does not exist or has no Dockerfile."""
    with pytest.raises(
        InvalidValueError, match=r'^image: must be a folder with a Dockerfile, got ".*nope"'
    ):
        TritonImage.from_asset(tmp_path / "nope")


def test_uri_in_ecr_may_be_pulled(tmp_path: Path) -> None:
    """The address of an image in ECR names the repository, which the role may pull."""
    stack = in_region("eu-west-1")
    uri = "123456789012.dkr.ecr.eu-west-1.amazonaws.com/team/triton:1"
    make_endpoint(stack, tmp_path, TritonImage.from_registry(uri))
    resource = flat(statements(synthesize(stack))["PullImage"]["Resource"])
    assert resource.endswith(":ecr:eu-west-1:123456789012:repository/team/triton")


@pytest.mark.parametrize("repository", ["vllm", "djl-inference", "huggingface-pytorch-inference"])
@pytest.mark.parametrize("is_by_uri", [True, False])
def test_other_server_of_aws_is_refused(repository: str, is_by_uri: bool, tmp_path: Path) -> None:
    """A prebuilt image of AWS with another server loads no model, so it is an error."""
    stack = in_region("eu-west-1")
    if is_by_uri:
        uri = f"763104351884.dkr.ecr.eu-west-1.amazonaws.com/{repository}:0.11-gpu"
        image = TritonImage.from_registry(uri)
    else:
        arn = f"arn:aws:ecr:eu-west-1:763104351884:repository/{repository}"
        image = TritonImage.from_ecr_repository(
            ecr.Repository.from_repository_arn(stack, "Images", arn), "0.11"
        )
    with pytest.raises(
        InvalidValueError, match=f'^image: AWS\'s image "{repository}" has no Triton'
    ):
        make_endpoint(stack, tmp_path, image)


@pytest.mark.parametrize(
    "uri",
    [
        "763104351884.dkr.ecr.eu-west-1.amazonaws.com/sagemaker-tritonserver:26.05-py3",
        "111122223333.dkr.ecr.eu-west-1.amazonaws.com/vllm:26.05",
        "nvcr.io/nvidia/tritonserver:26.05-vllm-python-py3",
    ],
)
def test_image_that_may_be_triton_passes(uri: str, tmp_path: Path) -> None:
    """The content of an image of your own is not known by its name."""
    make_endpoint(in_region("eu-west-1"), tmp_path, TritonImage.from_registry(uri))


def test_a_version_is_a_string() -> None:
    """Without quotes, 26.10 would be 26.1."""
    with pytest.raises(InvalidValueError, match=r"image_version: must be .*26\.05"):
        TritonImage.dlc(26.05)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("uri", "is_in_ecr"),
    [
        ("nvcr.io/nvidia/tritonserver:26.05-py3", False),
        ("triton:1", False),
        ("123456789012.dkr.ecr.eu-west-1.amazonaws.com/triton:1", True),
        ("123456789012.dkr-ecr.eu-west-1.on.aws/triton:1", True),
        pytest.param(cdk.Fn.import_value("Image"), True, id="token"),
    ],
)
def test_image_of_another_registry_is_a_warning(
    stack: cdk.Stack, tmp_path: Path, uri: str, is_in_ecr: bool
) -> None:
    """SageMaker pulls from ECR, or from a registry in a VPC, which the L1 model must say."""
    make_endpoint(stack, tmp_path, TritonImage.from_registry(uri))
    warned = Annotations.from_stack(stack).find_warning(
        "*", Match.string_like_regexp(".*pulls images from Amazon ECR")
    )
    assert bool(warned) is not is_in_ecr


@pytest.mark.parametrize("base", [TritonImage, ServingImage, ModelSource])
def test_class_of_functions_names_one_if_it_is_called(base: Callable[[str], object]) -> None:
    """Python alone says that the class takes no arguments."""
    name = base.__name__
    with pytest.raises(InvalidValueError, match=rf'got {name}\("x"\); write {name}\.\w+\("'):
        base("x")
