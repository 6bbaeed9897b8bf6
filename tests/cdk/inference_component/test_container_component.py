"""Components whose container is not Triton, beside components of Triton."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import Duration, RemovalPolicy, Size
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from cdk_apps import flat, make_stack, only, resources, statement_list, statements, synthesize
from component_apps import CPU, G5, add_component, add_endpoint, warnings_of

from constructs_triton import (
    ContainerInferenceComponent,
    InferenceAmi,
    ModelSource,
    ServingImage,
    TritonComponentEndpoint,
    TritonImage,
)
from constructs_triton_core.cloud_assembly.endpoints import NOT_TRITON
from constructs_triton_core.errors import InvalidValueError

CONFIG, COMPONENT, MODEL = (
    f"AWS::SageMaker::{each}" for each in ("EndpointConfig", "InferenceComponent", "Model")
)
VLLM = "763104351884.dkr.ecr.{}.amazonaws.com/vllm:0.20.2-gpu-py312-cu130-ubuntu22.04-sagemaker"
CUDA_12, CUDA_13 = "al2-ami-sagemaker-inference-gpu-3-1", "al2023-ami-sagemaker-inference-gpu-4-1"


def short_id(value: Any) -> str:
    """A readable id of a case."""
    return str(value)[:40]


def image(**options: Any) -> ServingImage:
    """AWS's image of vLLM for CUDA 13, unless ``options`` say otherwise."""
    return ServingImage.from_registry(
        VLLM.format("eu-west-1"), **(options or {"cuda_version": "13.0"})
    )


def add_chat(endpoint: Any, id: str = "Chat", **options: Any) -> ContainerInferenceComponent:
    """Add a container with one GPU, unless ``options`` say otherwise."""
    given = {
        "image": image(),
        "min_memory": Size.gibibytes(16),
        "number_of_accelerator_devices": 1,
        "environment": {"SM_VLLM_MODEL": "Qwen/Qwen3-8B"},
        **options,
    }
    return ContainerInferenceComponent(cdk.Stack.of(endpoint), id, endpoint=endpoint, **given)


def ami_of(stack: cdk.Stack) -> str | None:
    """The AMI of the only endpoint of a stack."""
    (variant,) = only(synthesize(stack), CONFIG)["ProductionVariants"]
    found: str | None = variant.get("InferenceAmiVersion")
    return found


def test_container_has_what_was_set(stack: cdk.Stack) -> None:
    """Image, files, variables and timeouts are on its model and component,
    and the role may read both.
    """
    key = kms.Key.from_key_arn(stack, "Key", "arn:aws:kms:eu-west-1:123456789012:key/1")
    bucket = s3.Bucket.from_bucket_attributes(
        stack, "Weights", bucket_name="weights", encryption_key=key
    )
    add_chat(
        add_endpoint(stack, min_instance_count=1, max_instance_count=3),
        model_data=ModelSource.from_s3_prefix(bucket, "qwen/"),
        environment={"SM_VLLM_MAX_MODEL_LEN": "8192"},
        container_startup_health_check_timeout=Duration.minutes(20),
        inference_component_name="chat",
        copy_count=2,
    )
    template = synthesize(stack)
    (model,) = resources(template, MODEL).values()
    assert model["Metadata"][NOT_TRITON] is True
    assert model["Properties"]["PrimaryContainer"] == {
        "Image": VLLM.format("eu-west-1"),
        "Environment": {"SM_VLLM_MAX_MODEL_LEN": "8192"},
        "ModelDataSource": {
            "S3DataSource": {
                "S3Uri": "s3://weights/qwen/",
                "S3DataType": "S3Prefix",
                "CompressionType": "None",
            }
        },
    }
    component = only(template, COMPONENT)
    assert component["RuntimeConfig"] == {"CopyCount": 2}
    assert component["Specification"]["StartupParameters"] == {
        "ContainerStartupHealthCheckTimeoutInSeconds": 1200,
        "ModelDataDownloadTimeoutInSeconds": 3600,
    }
    assert component["Specification"]["ComputeResourceRequirements"] == {
        "MinMemoryRequiredInMb": 16384,
        "NumberOfAcceleratorDevicesRequired": 1,
    }
    found = statements(template)
    assert {
        "LoadModel",
        "ListModel",
        "DecryptModel",
        "PullImage",
        "LogInToRegistry",
    } <= found.keys()
    assert "repository/vllm" in flat(found["PullImage"]["Resource"])


def test_container_without_model_data_downloads_its_model(stack: cdk.Stack) -> None:
    """It gets the longest timeout to start and none for a download;
    with isolation it is warned about.
    """
    own = ServingImage.from_registry("registry.example.com/chat:1", cuda_version="13.0")
    add_chat(add_endpoint(stack, enable_network_isolation=True), image=own, environment=None)
    template = synthesize(stack)
    parameters = only(template, COMPONENT)["Specification"]["StartupParameters"]
    assert parameters == {"ContainerStartupHealthCheckTimeoutInSeconds": 3600}
    assert "LoadModel" not in statements(template)
    assert only(template, MODEL)["EnableNetworkIsolation"] is True
    assert "constructs-triton:container-cannot-download" in warnings_of(stack)


@pytest.mark.parametrize(
    ("source", "is_pulled"),
    [
        (
            lambda _: ServingImage.from_registry(VLLM.format(cdk.Aws.REGION), cuda_version="13.0"),
            True,
        ),
        (
            lambda _: ServingImage.from_registry(
                "registry.example.com/vllm:1", cuda_version="13.0"
            ),
            False,
        ),
        (
            lambda stack: ServingImage.from_ecr_repository(
                ecr.Repository.from_repository_name(stack, "Images", "own"),
                "1",
                cuda_version="13.0",
            ),
            True,
        ),
    ],
    ids=["region is a token", "not in ECR", "own repository"],
)
def test_role_may_pull_what_is_in_ecr(stack: cdk.Stack, source: Any, is_pulled: bool) -> None:
    """The URI of an image in ECR names the repository; nothing is known of other registries."""
    add_chat(add_endpoint(stack), image=source(stack))
    assert ("PullImage" in statements(synthesize(stack))) is is_pulled


def test_image_may_be_built_from_a_folder(stack: cdk.Stack, tmp_path: Path) -> None:
    """A Dockerfile becomes an asset, as for Triton."""
    (tmp_path / "Dockerfile").write_text("FROM scratch\n")
    add_chat(add_endpoint(stack), image=ServingImage.from_asset(tmp_path, cuda_version="12.9"))
    assert "container-assets" in flat(only(synthesize(stack), MODEL)["PrimaryContainer"]["Image"])


@pytest.mark.parametrize(
    ("triton", "other", "expected", "warned"),
    [
        ("26.05", {"cuda_version": "13.0"}, CUDA_13, False),
        # AWS reports containers of CUDA 12 that do not start on the AMI for CUDA 13.
        ("26.05", {"cuda_version": "12.4"}, CUDA_13, True),
        ("25.04", {"cuda_version": "13.0"}, CUDA_13, True),
        ("25.04", {"cuda_version": "11.8"}, CUDA_12, False),
        (None, {"cuda_version": "12.9"}, CUDA_12, False),
        ("26.05", {"inference_ami_version": InferenceAmi.of(CUDA_12)}, CUDA_13, True),
        ("26.05", {"inference_ami_version": "al2023-ami-sagemaker-inference-gpu-5-1"}, None, True),
    ],
    ids=short_id,
)
def test_newest_driver_that_an_image_needs_decides_the_ami(
    tmp_path: Path, triton: str | None, other: dict[str, str], expected: str | None, warned: bool
) -> None:
    """The AMI of Triton stays, unless the other container needs a newer driver."""
    stack = make_stack()
    endpoint = add_endpoint(stack, max_instance_count=4)
    if triton is not None:
        add_component(endpoint, tmp_path, image=TritonImage.dlc(triton))
    add_chat(endpoint, image=image(**other))
    assert ami_of(stack) == (expected or other["inference_ami_version"])
    assert (
        "constructs-triton:component-images-need-different-amis" in warnings_of(stack)
    ) is warned


def test_older_ami_of_an_unknown_name_is_warned_about(stack: cdk.Stack) -> None:
    """Nothing is known of two AMIs that are not in the table, so the second one may not fit."""
    endpoint = add_endpoint(stack, max_instance_count=4)
    for name in ("6-1", "5-1"):
        ami = f"al2023-ami-sagemaker-inference-gpu-{name}"
        add_chat(endpoint, f"Chat{name[0]}", image=image(inference_ami_version=ami))
    assert ami_of(stack) == "al2023-ami-sagemaker-inference-gpu-6-1"
    assert "constructs-triton:component-images-need-different-amis" in warnings_of(stack)


def test_triton_image_without_a_version_does_not_drop_the_ami(
    stack: cdk.Stack, tmp_path: Path
) -> None:
    """It runs on the AMI that the known images need, or alone on SageMaker's;
    the warning says which.
    """
    for other, expected in ((make_stack(), None), (stack, CUDA_13)):
        endpoint = add_endpoint(other, max_instance_count=4)
        own = TritonImage.from_registry("registry.example.com/own:1")
        add_component(endpoint, tmp_path, "Own", image=own)
        if expected is not None:
            add_component(endpoint, tmp_path, image=TritonImage.dlc("26.05"))
        assert ami_of(other) == expected
        warned = warnings_of(other)["constructs-triton:inference-ami-unsourced"]
        assert (expected or "using SageMaker's default") in warned


@pytest.mark.parametrize(
    "options",
    [{"instance_type": CPU}, {"inference_ami_version": None}, {}],
    ids=["CPU", "AMI of the endpoint", "no GPU"],
)
def test_cuda_version_is_needed_for_the_ami_only(stack: cdk.Stack, options: dict[str, Any]) -> None:
    """An image without it runs where no AMI is chosen: without GPUs,
    or with an AMI that was set.
    """
    gpus = {"instance_type": None, "inference_ami_version": 1}.get(next(iter(options), ""), 0)
    endpoint = add_endpoint(stack, **options)
    plain = ServingImage.from_registry(VLLM.format("eu-west-1"))
    add_chat(
        endpoint, image=plain, number_of_accelerator_devices=gpus, min_memory=Size.gibibytes(2)
    )
    assert ami_of(stack) == (CUDA_13 if not options else None)


REFUSALS: list[tuple[dict[str, Any], str]] = [
    (
        {"image": ServingImage.from_registry("example.com/a:1")},
        'image: its CUDA .*cuda_version="13.0"',
    ),
    ({"image": TritonImage.dlc()}, "image: must be of type ServingImage"),
    (
        {"environment": {"SM_VLLM_PORT": 1}},
        'environment."SM_VLLM_PORT".: must be a string, got 1; write "1"',
    ),
    (
        {"environment": {"SAGEMAKER_TRITON_LOG_INFO": "1"}},
        "is a variable of Triton; .*TritonInferenceComp",
    ),
    ({"environment": {"A": "x" * 2000}}, "environment.*1024"),
    (
        {"model_data": ModelSource.from_directory("models")},
        "model_data: .*aws s3 sync .*from_s3_prefix",
    ),
    ({"copy_count": 0}, "copy_count: .*at least 1 copy"),
    ({"copy_count": 99}, "first copies of its components need more GPUs"),
    ({"instance_type": CPU}, "instance_type: .*TritonComponentEndpoint"),
]


@pytest.mark.parametrize(("options", "said"), REFUSALS, ids=short_id)
def test_container_refuses(stack: cdk.Stack, options: dict[str, Any], said: str) -> None:
    """Each value that cannot work is an error, and the id can be used again."""
    endpoint = add_endpoint(stack)
    with pytest.raises(InvalidValueError, match=said):
        add_chat(endpoint, **options)
    add_chat(endpoint)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"cuda_version": "thirteen"}, 'cuda_version: .*got "thirteen"; write it as "13.0"'),
        (
            {"cuda_version": "99.0"},
            "cuda_version: no known inference AMI .*; set inference_ami_version",
        ),
        ({"cuda_version": "13.0", "inference_ami_version": CUDA_13}, "cannot be combined"),
        ({"cuda_version": 13.0}, "cuda_version: must be of type str"),
        ({"inference_ami_version": "gpu"}, "inference_ami_version: must be the name"),
    ],
    ids=short_id,
)
def test_image_refuses(options: dict[str, Any], said: str) -> None:
    """A CUDA version without an AMI, or both of them, is an error that says what to write."""
    with pytest.raises(InvalidValueError, match=said):
        image(**options)


def test_imported_endpoint_has_its_own_ami(stack: cdk.Stack) -> None:
    """Nothing chooses the AMI of an endpoint that exists,
    so an image needs no CUDA version for it.
    """
    role = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com"))
    endpoint = TritonComponentEndpoint.from_endpoint_attributes(
        stack, "Known", endpoint_name="known", instance_type=G5, role=role
    )
    add_chat(endpoint, image=ServingImage.from_registry(VLLM.format("eu-west-1")))
    assert only(synthesize(stack), COMPONENT)["EndpointName"] == "known"


def test_openai_path_has_two_actions_and_a_base_url(stack: cdk.Stack) -> None:
    """The call is allowed on endpoint and component, and the token on everything,
    also of an import.
    """
    endpoint = add_endpoint(stack)
    known = ContainerInferenceComponent.from_inference_component_name(
        stack, "Known", "chat", endpoint=endpoint
    )
    for name, component in (("New", add_chat(endpoint)), ("Old", known)):
        role = iam.Role(stack, name, assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        component.grant_invoke_openai(role)
        cdk.CfnOutput(stack, f"{name}Url", value=component.openai_base_url)
    template = synthesize(stack)
    assert flat(template["Outputs"]["OldUrl"]["Value"]) == (
        "https://runtime.sagemaker.eu-west-1.<AWS::URLSuffix>/endpoints/<SharedDACC02AA.EndpointName>/inference-components/chat/openai/v1"
    )
    for policy in ("NewDefaultPolicy", "OldDefaultPolicy"):
        allowed = {each["Action"]: each["Resource"] for each in statement_list(template, policy)}
        assert allowed["sagemaker:CallWithBearerToken"] == "*"
        assert len(allowed["sagemaker:InvokeEndpoint"]) == 2


def test_prefix_routing_is_for_other_containers_only(stack: cdk.Stack, tmp_path: Path) -> None:
    """The endpoint has the prefix and the threshold, takes such a container,
    and no component of Triton.
    """
    endpoint = add_endpoint(
        stack, routing_strategy="PREFIX_AWARE", prefix_length=4096, concurrency_threshold=16
    )
    add_chat(endpoint)
    with pytest.raises(InvalidValueError, match=r"PREFIX_AWARE .*; use LEAST_OUTSTANDING_REQUESTS"):
        add_component(endpoint, tmp_path)
    (variant,) = only(synthesize(stack), CONFIG)["ProductionVariants"]
    assert variant["RoutingConfig"] == {
        "RoutingStrategy": "PREFIX_AWARE",
        "PrefixAwareRoutingConfig": {"PrefixLength": 4096, "ConcurrencyThreshold": 16},
    }


def test_container_shares_the_rest_with_components_of_triton(
    stack: cdk.Stack, tmp_path: Path
) -> None:
    """Room, scaling, alarms and removal are those of every component."""
    endpoint = add_endpoint(stack, max_instance_count=1, removal_policy=RemovalPolicy.RETAIN)
    add_component(endpoint, tmp_path, number_of_accelerator_devices=2)
    chat = add_chat(endpoint, removal_policy=RemovalPolicy.RETAIN, number_of_accelerator_devices=2)
    scaling = chat.auto_scale_copy_count(min_capacity=1, max_capacity=2)
    scaling.scale_on_concurrent_requests_per_copy("Streams", target_concurrent_requests=8)
    chat.add_alarms()
    template = synthesize(stack)
    kept = {
        name
        for name, each in template["Resources"].items()
        if each.get("DeletionPolicy") == "Retain"
    }
    assert {"ChatModel", "ChatComponent"} <= {
        name[:-16] if "Component" in name else name[:-8] for name in kept
    }
    assert {"component-copies-exceed-fleet", "component-update-without-room"} <= {
        each.removeprefix("constructs-triton:") for each in warnings_of(stack)
    }
