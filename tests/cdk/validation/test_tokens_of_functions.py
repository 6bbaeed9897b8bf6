"""Each argument of the functions and options of the library with each kind of token.

The functions come from the public classes, so a new one is asked too. What a function returns is
used by a construct.
"""

from __future__ import annotations

import inspect
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_iam as iam
from cdk_apps import write_repository
from check_examples import EXAMPLES, write
from check_examples.onnx_models import relu
from constructs import Construct
from parts import part
from test_tokens_everywhere import (
    GPU,
    KINDS,
    MODELS,
    Use,
    bucket,
    component,
    container,
    endpoint,
    host,
    outcome,
    repository,
)

import constructs_triton as library
from constructs_triton import (
    CapacityReservationConfig,
    CapacitySize,
    ComponentDeployment,
    CopySize,
    Deployment,
    InferenceAmi,
    InstancePool,
    InstanceType,
    MetricsConfig,
    ModelSource,
    RepositoryCheck,
    ServingImage,
    TritonComponentDashboard,
    TritonComponentEndpoint,
    TritonDashboard,
    TritonEndpoint,
    TritonEnsembleEndpoint,
    TritonEnvironment,
    TritonImage,
    TritonModelRepository,
    TritonMultiModelEndpoint,
    TritonVpcEndpoints,
)
from constructs_triton.cdk import DeployTimeFunctionOptions, DeployTimeFunctions
from constructs_triton.cdk.endpoint.imported_endpoint import ImportedTritonEndpoint


@pytest.fixture(scope="module", autouse=True)
def models(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The models of all endpoints, written once."""
    MODELS[:] = [write_repository(tmp_path_factory.mktemp("tokens") / "models")]


def dockerfile() -> str:
    """Return a folder with a Dockerfile."""
    folder = MODELS[0].parent / "image"
    folder.mkdir(exist_ok=True)
    (folder / "Dockerfile").write_text("FROM scratch\n")
    return str(folder)


def model_file() -> str:
    """Return a model file, whose configuration is derived."""
    path = MODELS[0].parent / "other.onnx"
    path.write_bytes(relu(("n", 3, 8, 8)))
    return str(path)


class Builder:
    """Writes the models that the endpoints serve."""

    def write_to(self, directory: Path) -> None:
        shutil.copytree(MODELS[0], directory)


def compiled() -> str:
    """Return a folder of compiled plans for the GPU of the endpoints."""
    folder = MODELS[0].parent / "compiled"
    if not folder.exists():
        write(EXAMPLES["plan-gpu"].failing, folder / "A10G")
    return str(folder)


def with_source(stack: cdk.Stack, source: Any) -> object:
    models = TritonModelRepository(stack, "Source", source=source)
    return TritonEndpoint(stack, "E", model_repository=models, model="other", instance_type=GPU)


def with_check(stack: cdk.Stack, check: Any) -> object:
    source = ModelSource.from_directory(MODELS[0])
    models = TritonModelRepository(stack, "Source", source=source, check=check)
    return TritonEndpoint(stack, "E", model_repository=models, model="other", instance_type=GPU)


def with_size(stack: cdk.Stack, size: Any) -> object:
    wait = cdk.Duration.minutes(5)
    deployment = Deployment.rolling(maximum_batch_size=size, wait_interval=wait)
    return endpoint(stack, deployment=deployment)


def with_copies(stack: cdk.Stack, size: Any) -> object:
    wait = cdk.Duration.minutes(5)
    deployment = ComponentDeployment.rolling(maximum_batch_size=size, wait_interval=wait)
    return component(stack, deployment=deployment)


def granted(stack: cdk.Stack, imported: Any) -> object:
    """Use an endpoint or a component that was imported."""
    caller = iam.Role(stack, "Caller", assumed_by=iam.AccountRootPrincipal())
    if isinstance(imported, ImportedTritonEndpoint):
        for variant in imported.variants:
            cdk.CfnOutput(stack, f"Variant{len(variant.variant_name)}", value=variant.variant_name)
    if hasattr(imported, "inference_component_name"):
        cdk.CfnOutput(stack, "Name", value=imported.inference_component_name)
    return imported.grant(caller, "sagemaker:Describe")


USERS: dict[type, Any] = {
    TritonImage: lambda stack, image: endpoint(stack, image=image),
    ServingImage: lambda stack, image: container(stack, image=image),
    ModelSource: with_source,
    InstanceType: lambda stack, instance_type: endpoint(stack, instance_type=instance_type),
    InferenceAmi: lambda stack, ami: endpoint(stack, inference_ami_version=ami),
    Deployment: lambda stack, deployment: endpoint(stack, deployment=deployment),
    CapacitySize: with_size,
    ComponentDeployment: lambda stack, deployment: component(stack, deployment=deployment),
    CopySize: with_copies,
    RepositoryCheck: with_check,
}
"""Who uses what the functions of a class return."""

SPECIAL_USERS: dict[str, Any] = {
    "from_archive_prefix": lambda stack, source: TritonMultiModelEndpoint(
        stack,
        "E",
        model_repository=TritonModelRepository(stack, "Source", source=source),
        instance_type=GPU,
    ),
}

ARGUMENTS: dict[str, Any] = {
    "alarms": [],
    "bucket": bucket,
    "builder": lambda _: Builder(),
    "canary_size": lambda _: CapacitySize.percent(10),
    "step_size": lambda _: CapacitySize.percent(20),
    "maximum_batch_size": lambda _: CapacitySize.percent(20),
    "count": 1,
    "cuda_version": "12.4",
    "directory": lambda _: dockerfile(),
    "endpoint": host,
    "endpoint_arn": "arn:aws:sagemaker:eu-west-1:123456789012:endpoint/digits",
    "endpoint_name": "digits",
    "inference_component_arn": "arn:aws:sagemaker:eu-west-1:123456789012:inference-component/a",
    "inference_component_name": "a",
    "instance_type": GPU,
    "key": "model.tar.gz",
    "model_package_arn": "arn:aws:sagemaker:eu-west-1:123456789012:model-package/digits/1",
    "name": "other",
    "path": lambda _: MODELS[0],
    "prefix": "models/",
    "repository": lambda stack: ecr.Repository.from_repository_name(stack, "Ecr", "triton"),
    "tag_or_digest": "1",
    "triton_version": "24.09",
    "uri": "example.com/triton:1",
    "value": 10,
    "version": "24.09",
    "wait_interval": lambda _: cdk.Duration.minutes(5),
}
"""What required arguments are, where they are not asked."""

OPEN = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
NAMED = {
    "count": ["maximum_batch_size"],
    "value": ["maximum_batch_size"],
    "uri": ["image"],
    "model": ["model", "instance_pools"],
    "name": ["instance_type", "name"],
    "default_model_name": ["environment"],
}
"""What messages name in place of an argument: the property that it is for, or its own word."""


PATHS = {"from_model_file": model_file, "from_compiled": compiled}


def value_of(owner: type, function: str, name: str, stack: cdk.Stack) -> Any:
    if name == "path" and function in PATHS:
        return PATHS[function]()
    if owner is ComponentDeployment and name == "maximum_batch_size":
        return CopySize.percent(20)
    if owner is InstanceType and name == "name":
        return "ml.g5.xlarge"
    value = ARGUMENTS.get(name)
    return value(stack) if callable(value) else value


def functions(owner: type) -> Iterator[str]:
    """Yield the names of the public class methods and static functions of a class."""
    for name, static in inspect.getmembers_static(owner):
        if isinstance(static, classmethod | staticmethod) and not name.startswith("_"):
            module = str(getattr(getattr(owner, name), "__module__", ""))
            if module.startswith(("constructs_triton", "triton_model_check")):
                yield name


def function_cases() -> list[Any]:
    cases = []
    for owner in (getattr(library, name) for name in library.__all__):
        if not inspect.isclass(owner):
            continue
        for function in functions(owner):
            for name, parameter in inspect.signature(getattr(owner, function)).parameters.items():
                is_asked = name not in ("scope", "id", "cls") and parameter.kind not in OPEN
                is_component = owner is TritonComponentEndpoint and name == "variant_name"
                if is_asked and not is_component:
                    case = f"{owner.__name__}.{function}.{name}"
                    cases.append(pytest.param(owner, function, name, id=case))
    return cases


def use_of_function(owner: type, function: str) -> Use:
    """Return what calls a function with one argument, and uses its result."""

    def use(stack: cdk.Stack, given: dict[str, Any]) -> object:
        target = getattr(owner, function)
        positional: list[Any] = []
        named: dict[str, Any] = {}
        for each, parameter in inspect.signature(target).parameters.items():
            value: Any
            if each in given:
                value = given[each]
            elif each == "scope":
                value = stack
            elif each == "id":
                value = "Imported"
            elif each == "cuda_version" and "inference_ami_version" not in given:
                value = "12.4"
            elif each == "endpoint_name" and "endpoint_arn" not in given:
                value = "digits"
            elif parameter.default is not parameter.empty or parameter.kind in OPEN:
                continue
            else:
                value = value_of(owner, function, each, stack)
            if parameter.kind is parameter.KEYWORD_ONLY:
                named[each] = value
            else:
                positional.append(value)
        user = SPECIAL_USERS.get(function, USERS.get(owner, granted))
        return user(stack, target(*positional, **named))

    return use


@pytest.mark.parametrize(("owner", "function", "name"), part(function_cases()))
def test_token_of_a_function_is_in_the_template_or_refused(
    owner: type, function: str, name: str
) -> None:
    """A token of any kind reaches the template, or an error names the argument and what to write;
    the error of another program or silence is wrong.
    """
    check_kinds(use_of_function(owner, function), name)


@pytest.mark.parametrize("field", ["backend", "default_model_filename", "parameters"])
def test_token_of_a_configuration_is_refused(field: str) -> None:
    """A configuration is written at synth, so a token in any of its fields is an error."""

    def use(stack: cdk.Stack, given: dict[str, Any]) -> object:
        value = {"key": given["fields"]} if field == "parameters" else given["fields"]
        source: Any = ModelSource.from_model_file
        return with_source(stack, source(model_file(), name="other", **{field: value}))

    for kind in ("string", "lazy"):
        assert outcome(use, "fields", kind) == ""


def test_token_of_a_builder_is_refused() -> None:
    """A builder writes its configurations at synth, so a token in one of them is an error."""

    class TokenBuilder(Builder):
        def __init__(self, value: str) -> None:
            self.value = value

        def write_to(self, directory: Path) -> None:
            super().write_to(directory)
            with (directory / "other" / "config.pbtxt").open("a") as config:
                config.write(f'parameters {{ key: "a" value {{ string_value: "{self.value}" }} }}')

    def use(stack: cdk.Stack, given: dict[str, Any]) -> object:
        return with_source(stack, ModelSource.from_builder(TokenBuilder(given["builder"])))

    assert outcome(use, "builder", "string") == ""


def check_kinds(use: Use, name: str) -> None:
    found = [outcome(use, name, kind, named=NAMED.get(name, [name])) for kind in KINDS]
    assert [each for each in found if each] == []


def configured(stack: cdk.Stack, given: dict[str, Any]) -> object:
    needed = {} if "vpc" in given else {"vpc": cdk.aws_ec2.Vpc(stack, "Net")}
    if {"vpc_subnets", "security_groups"} & given.keys():
        given = {**needed, **given}
    DeployTimeFunctions.of(stack).configure(**given)
    return TritonMultiModelEndpoint(
        stack, "E", model_repository=repository(stack), instance_type=GPU
    )


OPTIONS: dict[Any, Use] = {
    MetricsConfig: lambda stack, given: endpoint(stack, metrics_config=MetricsConfig(**given)),
    CapacityReservationConfig: lambda stack, given: endpoint(
        stack,
        capacity_reservation=CapacityReservationConfig(
            **{
                "ml_reservation_arn": "arn:aws:sagemaker:eu-west-1:123456789012:training-plan/a",
                **given,
            }
        ),
    ),
    InstancePool: lambda stack, given: TritonEndpoint(
        stack,
        "E",
        model_repository=repository(stack),
        model="other",
        instance_pools=[
            InstancePool(**{"instance_type": GPU, **given}),
            InstancePool(InstanceType.of("ml.g6.xlarge")),
        ],
    ),
    TritonEnvironment: lambda stack, given: endpoint(stack, environment=TritonEnvironment(**given)),
    TritonEnsembleEndpoint: lambda stack, given: TritonEnsembleEndpoint(
        stack,
        "E",
        **{
            "model_repository": repository(stack),
            "ensemble": "pipeline",
            "instance_type": GPU,
            **given,
        },
    ),
    TritonMultiModelEndpoint: lambda stack, given: TritonMultiModelEndpoint(
        stack, "E", **{"model_repository": repository(stack), "instance_type": GPU, **given}
    ),
    TritonVpcEndpoints: lambda stack, given: TritonVpcEndpoints(
        stack, "Vpc", **{"vpc": cdk.aws_ec2.Vpc(stack, "Net"), **given}
    ),
    TritonDashboard: lambda stack, given: TritonDashboard(
        stack, "Board", **{"endpoints": [endpoint(stack)], **given}
    ),
    TritonComponentDashboard: lambda stack, given: TritonComponentDashboard(
        stack, "Board", **{"components": [component(stack)], **given}
    ),
    DeployTimeFunctionOptions: configured,
}
"""How each option and construct that has other properties is created with one of them."""

SHARED = set(inspect.signature(TritonEndpoint).parameters) - {"model_repository"}
"""The properties that the test of all properties asks on another endpoint."""


def option_cases() -> list[Any]:
    cases = []
    for owner in OPTIONS:
        target = owner.__init__ if issubclass(owner, Construct) else owner
        if hasattr(owner, "__signature__"):
            target = owner
        is_mapping = owner is DeployTimeFunctionOptions
        names = owner.__annotations__ if is_mapping else inspect.signature(target).parameters
        shared = SHARED if issubclass(owner, Construct) else set()
        for name in names:
            if name not in ("self", "scope", "id") and name not in shared:
                cases.append(pytest.param(owner, name, id=f"{owner.__name__}.{name}"))
    return cases


@pytest.mark.parametrize(("owner", "name"), option_cases())
def test_token_of_an_option_is_in_the_template_or_refused(owner: Any, name: str) -> None:
    """The same is true of options and constructs that the test of all properties leaves out."""
    check_kinds(OPTIONS[owner], name)
