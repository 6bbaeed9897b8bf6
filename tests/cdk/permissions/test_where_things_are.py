"""Things of another Region or account: an error or a warning, for each construct and property.

The properties are found by their types, so a new one is asked too.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from cdk_apps import add_repository, warnings, write_repository

import constructs_triton as library
from constructs_triton import (
    AsyncInferenceConfig,
    ContainerInferenceComponent,
    CoreDump,
    DataCapture,
    InstanceType,
    ModelSource,
    ServingImage,
    TritonComponentEndpoint,
    TritonEndpoint,
    TritonEnsembleEndpoint,
    TritonImage,
    TritonInferenceComponent,
    TritonModel,
    TritonModelRepository,
    TritonMultiModelEndpoint,
)
from constructs_triton.cdk.permissions.places import account_rules, region_rules
from constructs_triton_core.errors import InvalidValueError

HERE, THERE = "eu-west-1", "us-east-1"
ACCOUNT, OTHER = "123456789012", "210987654321"
GPU = InstanceType.of("ml.g5.xlarge")
KEY_ID = "11111111-2222-3333-4444-555555555555"
VLLM = f"{ACCOUNT}.dkr.ecr.{HERE}.amazonaws.com/vllm:1"

THINGS: dict[str, Callable[[cdk.Stack, str, str], Any]] = {
    "IBucket": lambda stack, region, account: s3.Bucket.from_bucket_attributes(
        stack, "Thing", bucket_name="elsewhere", region=region, account=account
    ),
    "IKey": lambda stack, region, account: kms.Key.from_key_arn(
        stack, "Thing", f"arn:aws:kms:{region}:{account}:key/{KEY_ID}"
    ),
    "ITopic": lambda stack, region, account: sns.Topic.from_topic_arn(
        stack, "Thing", f"arn:aws:sns:{region}:{account}:elsewhere"
    ),
    "IRepository": lambda stack, region, account: ecr.Repository.from_repository_arn(
        stack, "Thing", f"arn:aws:ecr:{region}:{account}:repository/elsewhere"
    ),
    "IRole": lambda stack, _, account: iam.Role.from_role_arn(
        stack, "Thing", f"arn:aws:iam::{account}:role/elsewhere"
    ),
}
"""An import of each kind of thing, by the interface that properties take."""

RIGHT = {("IRole", THERE, ACCOUNT): "roles belong to no Region"}
"""What is right elsewhere, with the reason."""


def places() -> Iterator[tuple[Any, str, str, str]]:
    """Owner, function, parameter and interface of each property that takes such a thing."""
    for name in library.__all__:
        owner = getattr(library, name)
        functions = ["__init__", *(each for each in dir(owner) if each.startswith("from_"))]
        for function in functions:
            if not isinstance(owner, type) or not callable(getattr(owner, function, None)):
                continue
            target = owner if hasattr(owner, "__signature__") else getattr(owner, function)
            if function != "__init__":
                target = getattr(owner, function)
            for parameter in inspect.signature(target).parameters.values():
                found = re.search(rf"\b({'|'.join(THINGS)})\b", str(parameter.annotation))
                if found:
                    yield owner, function, parameter.name, found[1]


FOUND = list(dict.fromkeys(places()))
OPTIONS = {
    AsyncInferenceConfig: "async_inference",
    DataCapture: "data_capture",
    CoreDump: "core_dump",
}
KEYS = {"from_bucket": "m.tar.gz", "from_s3_prefix": "m/", "from_archive_prefix": "m/"}
Use = Callable[[cdk.Stack, Path], object]


def good_bucket(stack: cdk.Stack) -> s3.IBucket:
    return s3.Bucket.from_bucket_attributes(
        stack, "Good", bucket_name="here", region=HERE, account=ACCOUNT
    )


def local(stack: cdk.Stack, path: Path) -> TritonModelRepository:
    return add_repository(stack, write_repository(path / "models"))


def host(stack: cdk.Stack) -> TritonComponentEndpoint:
    return TritonComponentEndpoint(
        stack, "Host", instance_type=GPU, min_instance_count=1, max_instance_count=1
    )


COMPONENT: dict[str, Any] = {
    "min_memory": cdk.Size.gibibytes(1),
    "number_of_accelerator_devices": 1,
}
DIRECT: dict[Any, Callable[[cdk.Stack, Path, dict[str, Any]], object]] = {
    TritonEndpoint: lambda stack, path, given: TritonEndpoint(
        stack, "E", model_repository=local(stack, path), model="other", instance_type=GPU, **given
    ),
    TritonEnsembleEndpoint: lambda stack, path, given: TritonEnsembleEndpoint(
        stack,
        "E",
        model_repository=local(stack, path),
        ensemble="pipeline",
        instance_type=GPU,
        **given,
    ),
    TritonMultiModelEndpoint: lambda stack, path, given: TritonMultiModelEndpoint(
        stack, "E", model_repository=local(stack, path), instance_type=GPU, **given
    ),
    TritonModel: lambda stack, path, given: TritonModel(
        stack,
        "E",
        model_repository=local(stack, path),
        model="other",
        instance_type=GPU,
        **given,
    ),
    TritonComponentEndpoint: lambda stack, _, given: TritonComponentEndpoint(
        stack, "E", instance_type=GPU, min_instance_count=1, max_instance_count=1, **given
    ),
    TritonModelRepository: lambda stack, path, given: TritonMultiModelEndpoint(
        stack,
        "E",
        model_repository=add_repository(stack, write_repository(path / "models"), **given),
        instance_type=GPU,
    ),
}
"""How each construct is created with one property."""


def of_source(source: ModelSource, function: str) -> list[Use]:
    """Each construct that loads models from a source in S3."""

    def repository(stack: cdk.Stack) -> TritonModelRepository:
        return TritonModelRepository(stack, "Models", source=source)

    def adapter(stack: cdk.Stack, _: Path) -> object:
        base = ContainerInferenceComponent(
            stack,
            "Base",
            endpoint=host(stack),
            image=ServingImage.from_registry(VLLM, cuda_version="12.4"),
            environment={
                "SM_VLLM_ENABLE_LORA": "true",
                "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "true",
            },
            **COMPONENT,
        )
        return base.add_adapter("Adapter", source=source)

    many: Use = lambda stack, _: TritonMultiModelEndpoint(  # noqa: E731
        stack, "E", model_repository=repository(stack), instance_type=GPU
    )
    if function == "from_archive_prefix":
        return [many]
    uses: list[Use] = [
        lambda stack, _: TritonEndpoint(
            stack, "E", model_repository=repository(stack), model="m", instance_type=GPU
        ),
        lambda stack, _: TritonModel(
            stack, "E", model_repository=repository(stack), model="m", instance_type=GPU
        ),
        lambda stack, _: TritonInferenceComponent(
            stack,
            "E",
            endpoint=host(stack),
            model_repository=repository(stack),
            model="m",
            **COMPONENT,
        ),
        lambda stack, _: ContainerInferenceComponent(
            stack,
            "E",
            endpoint=host(stack),
            image=ServingImage.from_registry(VLLM, cuda_version="12.4"),
            model_data=source,
            **COMPONENT,
        ),
    ]
    return [*uses, adapter] if function == "from_bucket" else uses


def of_image(image: Any) -> list[Use]:
    """Each construct that takes an image of Triton, or one of another server."""
    if isinstance(image, ServingImage):
        return [
            lambda stack, _: ContainerInferenceComponent(
                stack, "E", endpoint=host(stack), image=image, **COMPONENT
            )
        ]
    kinds = (TritonEndpoint, TritonEnsembleEndpoint, TritonMultiModelEndpoint, TritonModel)
    uses: list[Use] = [
        lambda stack, path, kind=kind: DIRECT[kind](stack, path, {"image": image})  # type: ignore[misc]
        for kind in kinds
    ]
    return [
        *uses,
        lambda stack, path: TritonInferenceComponent(
            stack,
            "E",
            endpoint=host(stack),
            model_repository=local(stack, path),
            model="other",
            image=image,
            **COMPONENT,
        ),
    ]


def uses_of(owner: Any, function: str, name: str, thing: Any, stack: cdk.Stack) -> list[Use]:
    """How constructs use a property."""
    if owner is ModelSource:
        return of_source(getattr(owner, function)(thing, KEYS[function]), function)
    if owner in (TritonImage, ServingImage):
        versions = (
            {"cuda_version": "12.4"} if owner is ServingImage else {"triton_version": "25.09"}
        )
        return of_image(getattr(owner, function)(thing, "1", **versions))
    value = [thing] if name.startswith("previous") else thing
    if owner in OPTIONS:
        needed = {} if name == "bucket" else {"bucket": good_bucket(stack)}
        given = {OPTIONS[owner]: owner(**needed, **{name: value})}
        return [lambda stack, path: DIRECT[TritonEndpoint](stack, path, given)]
    return [lambda stack, path: DIRECT[owner](stack, path, {name: value})]


def test_every_kind_of_thing_is_found() -> None:
    """The search finds options, sources, images, repositories and endpoints."""
    found = {(owner.__name__, name) for owner, _, name, _ in FOUND}
    assert {
        ("TritonModelRepository", "asset_encryption_key"),
        ("ModelSource", "bucket"),
        ("TritonImage", "repository"),
        ("AsyncInferenceConfig", "error_topic"),
        ("TritonModel", "role"),
    } <= found


@pytest.mark.parametrize(
    ("region", "account"), [(THERE, ACCOUNT), (HERE, OTHER)], ids=["Region", "account"]
)
@pytest.mark.parametrize(
    "found",
    FOUND,
    ids=[f"{owner.__name__}.{function}.{name}" for owner, function, name, _ in FOUND],
)
def test_thing_of_elsewhere_is_an_error_or_a_warning(
    tmp_path: Path, found: tuple[Any, str, str, str], region: str, account: str
) -> None:
    """Each construct that uses the thing says that it is elsewhere, and where; the same thing
    here is right.
    """
    owner, function, name, kind = found
    elsewhere = region if region != HERE else account
    stack = empty()
    count = len(uses_of(owner, function, name, THINGS[kind](stack, HERE, ACCOUNT), stack))
    for position in range(count):
        said = []
        for place in ((region, account), (HERE, ACCOUNT)):
            stack = empty()
            use = uses_of(owner, function, name, THINGS[kind](stack, *place), stack)[position]
            try:
                use(stack, tmp_path / f"{position}{place[0]}{place[1]}")
            except InvalidValueError as error:
                said.append([str(error)])
            else:
                said.append(warnings(stack.node.root))
        there, here = ([each for each in texts if f"got {elsewhere}" in each] for texts in said)
        assert there or (kind, region, account) in RIGHT
        assert not here


def empty() -> cdk.Stack:
    """A stack of a known account and Region in an app of its own."""
    environment = cdk.Environment(account=ACCOUNT, region=HERE)
    return cdk.Stack(cdk.App(), "Test", env=environment)


def test_image_by_its_address_is_checked(tmp_path: Path) -> None:
    """The address of an image in ECR says its Region."""
    uses = of_image(TritonImage.from_registry(VLLM.replace(HERE, THERE)))
    for number, use in enumerate(uses):
        stack = empty()
        with pytest.raises(
            InvalidValueError, match=rf"^image: SageMaker pulls .*got {THERE} \({ACCOUNT}"
        ):
            use(stack, tmp_path / str(number))


def test_model_package_of_another_region_is_a_warning() -> None:
    """No source says whether SageMaker reads it."""
    stack = empty()
    arn = f"arn:aws:sagemaker:{THERE}:{OTHER}:model-package/group/1"
    models = TritonModelRepository(stack, "M", source=ModelSource.from_model_package(arn))
    TritonEndpoint(stack, "E", model_repository=models, model="m", instance_type=GPU)
    found = " ".join(warnings(stack))
    assert f"got {THERE}" in found
    assert f"got {OTHER}" in found


def test_images_of_aws_are_no_warning(tmp_path: Path) -> None:
    """Everyone may pull the images of AWS's accounts."""
    stack = empty()
    arn = f"arn:aws:ecr:{HERE}:763104351884:repository/sagemaker-tritonserver"
    repository = ecr.Repository.from_repository_arn(stack, "Dlc", arn)
    image = TritonImage.from_ecr_repository(repository, "26.05-py3", triton_version="26.05")
    DIRECT[TritonEndpoint](stack, tmp_path, {"image": image})
    assert not [each for each in warnings(stack) if "another account" in each]


@pytest.mark.parametrize("environment", [None, "there"])
def test_unknown_region_passes(tmp_path: Path, environment: str | None) -> None:
    """An environment-agnostic stack, and a thing whose Region is a token, are not refused."""
    app = cdk.App()
    known = cdk.Environment(account=ACCOUNT, region=HERE)
    stack = cdk.Stack(app, "Test", env=known if environment else None)
    region = cdk.Aws.REGION if environment else THERE
    bucket = s3.Bucket.from_bucket_attributes(
        stack, "B", bucket_name="elsewhere", region=region, account=ACCOUNT
    )
    for use in of_source(ModelSource.from_bucket(bucket, "m.tar.gz"), "from_bucket")[:1]:
        use(stack, tmp_path)


def test_every_rule_has_a_source() -> None:
    """A rule names its source, or says that there is none."""
    for rule in (*region_rules().values(), *account_rules().values()):
        assert rule.source
