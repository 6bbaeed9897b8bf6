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
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ecr as ecr
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_sns as sns
from aws_cdk.aws_cloudwatch_actions import SnsAction
from cdk_apps import add_repository, warnings, write_repository
from parts import part

import constructs_triton as library
from constructs_triton import (
    AsyncInferenceConfig,
    ComponentDeployment,
    ContainerInferenceComponent,
    CoreDump,
    DataCapture,
    Deployment,
    InstanceType,
    ModelSource,
    ServingImage,
    TritonAlarms,
    TritonComponentAlarms,
    TritonComponentEndpoint,
    TritonEndpoint,
    TritonEnsembleEndpoint,
    TritonImage,
    TritonInferenceComponent,
    TritonModel,
    TritonModelRepository,
    TritonMultiModelEndpoint,
    TritonVpcEndpoints,
)
from constructs_triton.cdk.custom_resources.deploy_time_functions import (
    DeployTimeFunctionOptions,
    DeployTimeFunctions,
)
from constructs_triton.cdk.permissions.places import (
    account_rules,
    action_places,
    check_places,
    region_rules,
)
from constructs_triton_core.errors import InvalidValueError

HERE = "eu-west-1"
THERE = "us-east-1"
ACCOUNT = "123456789012"
OTHER = "210987654321"
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
    "IAlarmAction": lambda stack, region, account: SnsAction(
        sns.Topic.from_topic_arn(stack, "Thing", f"arn:aws:sns:{region}:{account}:elsewhere")
    ),
    "IAlarm": lambda stack, region, account: alarm_of(place_of(stack, region, account)),
    "IVpc": lambda stack, region, account: ec2.Vpc(place_of(stack, region, account), "Thing"),
    "ISecurityGroup": lambda stack, region, account: group_of(place_of(stack, region, account)),
    "SubnetSelection": lambda stack, region, account: ec2.SubnetSelection(
        subnets=ec2.Vpc(place_of(stack, region, account), "Thing").private_subnets
    ),
}
"""Each kind of thing of another place, by the interface that properties take: an import, or, where
an import has no Region, a thing of another stack."""


def place_of(stack: cdk.Stack, region: str, account: str) -> cdk.Stack:
    """A stack of a Region and an account in the same app."""
    environment = cdk.Environment(account=account, region=region)
    app = cdk.App.of(stack)
    assert app is not None
    return cdk.Stack(app, "Place", env=environment)


def alarm_of(stack: cdk.Stack) -> cloudwatch.Alarm:
    metric = cloudwatch.Metric(namespace="Shop", metric_name="Errors")
    alarm: cloudwatch.Alarm = metric.create_alarm(
        stack, "Thing", alarm_name="shop-errors", evaluation_periods=1, threshold=1
    )
    return alarm


def group_of(stack: cdk.Stack) -> ec2.SecurityGroup:
    return ec2.SecurityGroup(stack, "Thing", vpc=ec2.Vpc(stack, "Vpc"))


RIGHT = {("IRole", THERE, ACCOUNT): "roles belong to no Region"}
"""What is right elsewhere, with the reason."""


def places() -> Iterator[tuple[Any, str, str, str]]:
    """Owner, function, parameter and interface of each property that takes such a thing."""
    interface = re.compile(rf"\b({'|'.join(THINGS)})\b")
    for owner in owners():
        public = [name for name in dir(owner) if not name.startswith("_")]
        for function in ["__init__", *public]:
            target = getattr(owner, function, None)
            if not callable(target):
                continue
            if function == "__init__" and hasattr(owner, "__signature__"):
                target = owner
            for parameter, annotation in annotated(target):
                found = interface.search(annotation)
                if found:
                    yield owner, function, parameter, found[1]


def owners() -> list[type]:
    """The classes whose functions take things of AWS."""
    # Users create an adapter with ``add_adapter``, which is asked.
    names = [name for name in library.__all__ if name != "LoraAdapter"]
    public = [*(getattr(library, name) for name in names), DeployTimeFunctions]
    classes = [value for value in public if isinstance(value, type)]
    return [owner for owner in classes if not issubclass(owner, dict | str | Exception)]


def annotated(function: Any) -> Iterator[tuple[str, str]]:
    """Yield the parameters of a function and their types, also those of ``DeployTimeFunctions``,
    which its ``**options`` declare.
    """
    for parameter in inspect.signature(function).parameters.values():
        if parameter.annotation == "Unpack[DeployTimeFunctionOptions]":
            for name, annotation in DeployTimeFunctionOptions.__annotations__.items():
                yield name, str(annotation)
        else:
            yield parameter.name, str(parameter.annotation)


FOUND = list(dict.fromkeys(places()))
OPTIONS = {
    AsyncInferenceConfig: "async_inference",
    DataCapture: "data_capture",
    CoreDump: "core_dump",
}
DEPLOYMENTS = (Deployment, ComponentDeployment)
ROLLBACK = "add_rollback_alarms"
VERSIONS = {
    TritonImage: {"triton_version": "25.09"},
    ServingImage: {"cuda_version": "12.4"},
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


def base_of_adapters(stack: cdk.Stack) -> ContainerInferenceComponent:
    """A component that loads adapters."""
    return ContainerInferenceComponent(
        stack,
        "Base",
        endpoint=host(stack),
        image=ServingImage.from_registry(VLLM, cuda_version="12.4"),
        environment={"SM_VLLM_ENABLE_LORA": "true", "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "true"},
        **COMPONENT,
    )


def with_adapter(stack: cdk.Stack, path: Path, given: dict[str, Any]) -> None:
    """An adapter of a folder."""
    path.mkdir(parents=True)
    (path / "adapter_config.json").write_text('{"peft_type": "LORA", "r": 8}')
    (path / "adapter_model.safetensors").write_bytes(b"weights")
    base_of_adapters(stack).add_adapter("Adapter", source=path, **given)


def of_source(source: ModelSource, function: str) -> list[Use]:
    """Each construct that loads models from a source in S3."""

    def repository(stack: cdk.Stack) -> TritonModelRepository:
        return TritonModelRepository(stack, "Models", source=source)

    def adapter(stack: cdk.Stack, _: Path) -> object:
        return base_of_adapters(stack).add_adapter("Adapter", source=source)

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
    return [
        direct(TritonEndpoint, image=image),
        direct(TritonEnsembleEndpoint, image=image),
        direct(TritonMultiModelEndpoint, image=image),
        direct(TritonModel, image=image),
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


def of_deployment(deployment: Any) -> list[Use]:
    """Each construct that takes the deployment of an endpoint, or of a component."""
    if isinstance(deployment, ComponentDeployment):
        return [
            lambda stack, path: component(stack, path, {"deployment": deployment}),
            lambda stack, _: container(stack, {"deployment": deployment}),
        ]
    return [
        direct(TritonEndpoint, deployment=deployment),
        direct(TritonEnsembleEndpoint, deployment=deployment),
        direct(TritonMultiModelEndpoint, deployment=deployment),
    ]


def direct(owner: Any, **given: Any) -> Use:
    """How a construct is created with these properties."""
    return lambda stack, path: DIRECT[owner](stack, path, given)


def deployment_of(owner: Any, function: str, alarm: Any) -> Any:
    """A deployment with an alarm, as a factory or the class creates it."""
    if function != "__init__":
        return getattr(owner, function)(alarms=[alarm])
    if owner is Deployment:
        return Deployment(strategy="ALL_AT_ONCE", alarms=(alarm,))
    return ComponentDeployment(
        maximum_batch_size=ComponentDeployment.rolling().maximum_batch_size, alarms=(alarm,)
    )


def component(stack: cdk.Stack, path: Path, given: dict[str, Any]) -> TritonInferenceComponent:
    return TritonInferenceComponent(
        stack,
        "E",
        endpoint=host(stack),
        model_repository=local(stack, path),
        model="other",
        **COMPONENT,
        **given,
    )


def container(stack: cdk.Stack, given: dict[str, Any]) -> ContainerInferenceComponent:
    image = ServingImage.from_registry(VLLM, cuda_version="12.4")
    return ContainerInferenceComponent(
        stack, "E", endpoint=host(stack), image=image, **COMPONENT, **given
    )


def rolled_back(owner: Any, stack: cdk.Stack, path: Path, alarm: Any) -> None:
    """A construct to which a rollback alarm is added."""
    if owner is TritonInferenceComponent:
        component(stack, path, {}).add_rollback_alarms(alarm)
    elif owner is ContainerInferenceComponent:
        container(stack, {}).add_rollback_alarms(alarm)
    else:
        endpoint: Any = DIRECT[owner](stack, path, {})
        endpoint.add_rollback_alarms(alarm)


def with_actions(owner: Any, stack: cdk.Stack, path: Path, actions: Any) -> None:
    """The alarms of a construct, as it or their own construct adds them."""
    if owner in (TritonAlarms, TritonEndpoint):
        monitored: Any = DIRECT[TritonEndpoint](stack, path, {})
    elif owner in (TritonComponentAlarms, TritonInferenceComponent):
        monitored = component(stack, path, {})
    elif owner is ContainerInferenceComponent:
        monitored = container(stack, {})
    else:
        monitored = DIRECT[owner](stack, path, {})
    if owner is TritonAlarms:
        TritonAlarms(stack, "Alarms", endpoint=monitored, actions=actions)
    elif owner is TritonComponentAlarms:
        TritonComponentAlarms(stack, "Alarms", component=monitored, actions=actions)
    else:
        monitored.add_alarms(actions=actions)


def configured(stack: cdk.Stack, path: Path, given: dict[str, Any]) -> None:
    """A function of the deployment with settings."""
    DeployTimeFunctions.of(stack).configure(**given)
    DIRECT[TritonMultiModelEndpoint](stack, path, {})


def good_vpc(stack: cdk.Stack) -> ec2.IVpc:
    return ec2.Vpc(stack, "Good")


def uses_of(owner: Any, function: str, name: str, thing: Any, stack: cdk.Stack) -> list[Use]:
    """How constructs use a property."""
    if owner is ModelSource:
        return of_source(getattr(owner, function)(thing, KEYS[function]), function)
    if owner in VERSIONS:
        return of_image(getattr(owner, function)(thing, "1", **VERSIONS[owner]))
    if owner in DEPLOYMENTS:
        return of_deployment(deployment_of(owner, function, thing))
    if function == "add_adapter":
        return [lambda stack, path: with_adapter(stack, path, {name: thing})]
    if owner is DeployTimeFunctions:
        settings: dict[str, Any] = {} if name == "vpc" else {"vpc": good_vpc(stack)}
        settings[name] = [thing] if name == "security_groups" else thing
        return [lambda stack, path: configured(stack, path, settings)]
    return [use_of(owner, function, name, thing, stack)]


def use_of(owner: Any, function: str, name: str, thing: Any, stack: cdk.Stack) -> Use:
    """How one construct uses a property of its own, or of an option."""
    is_several = name.startswith("previous") or name in ("security_groups", "actions")
    value = [thing] if is_several else thing
    if function == ROLLBACK:
        return lambda stack, path: rolled_back(owner, stack, path, thing)
    if name == "actions":
        return lambda stack, path: with_actions(owner, stack, path, value)
    if owner is TritonVpcEndpoints:
        return lambda stack, _: TritonVpcEndpoints(stack, "E", vpc=thing)
    if name in ("vpc_subnets", "security_groups"):
        return direct(owner, vpc=good_vpc(stack), **{name: value})
    if owner in OPTIONS:
        needed = {} if name == "bucket" else {"bucket": good_bucket(stack)}
        option = owner(**needed, **{name: value})
        return direct(TritonEndpoint, **{OPTIONS[owner]: option})
    return direct(owner, **{name: value})


def test_every_kind_of_thing_is_found() -> None:
    """The search finds options, sources, images, repositories and endpoints."""
    found = {(owner.__name__, name) for owner, _, name, _ in FOUND}
    assert {
        ("TritonModelRepository", "asset_encryption_key"),
        ("ModelSource", "bucket"),
        ("TritonImage", "repository"),
        ("AsyncInferenceConfig", "error_topic"),
        ("TritonModel", "role"),
        ("Deployment", "alarms"),
        ("TritonVpcEndpoints", "vpc"),
        ("TritonComponentEndpoint", "security_groups"),
        ("TritonInferenceComponent", "actions"),
        ("DeployTimeFunctions", "log_encryption_key"),
    } <= found


@pytest.mark.parametrize(
    ("region", "account"), [(THERE, ACCOUNT), (HERE, OTHER)], ids=["Region", "account"]
)
@pytest.mark.parametrize(
    "found",
    part(FOUND),
    ids=[f"{owner.__name__}.{function}.{name}" for owner, function, name, _ in part(FOUND)],
)
def test_thing_of_elsewhere_is_an_error_or_a_warning(
    tmp_path: Path, found: tuple[Any, str, str, str], region: str, account: str
) -> None:
    """Each construct that uses the thing says that it is elsewhere, and where; the same thing
    here is right.
    """
    owner, function, name, interface = found
    got = f"got {region if region != HERE else account}"
    stack = empty()
    count = len(uses_of(owner, function, name, THINGS[interface](stack, HERE, ACCOUNT), stack))

    for position in range(count):
        elsewhere = reported(found, position, region, account, tmp_path / f"there{position}")
        here = reported(found, position, HERE, ACCOUNT, tmp_path / f"here{position}")

        is_right_there = (interface, region, account) in RIGHT
        assert is_right_there or any(got in text for text in elsewhere)
        assert not any(got in text for text in here)


def reported(
    found: tuple[Any, str, str, str], position: int, region: str, account: str, path: Path
) -> list[str]:
    """The error or the warnings of one of the constructs that use a thing of this place."""
    owner, function, name, interface = found
    stack = empty()
    thing = THINGS[interface](stack, region, account)
    use = uses_of(owner, function, name, thing, stack)[position]
    try:
        use(stack, path)
    except InvalidValueError as error:
        return [str(error)]
    return warnings(stack.node.root)


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
    assert not [text for text in warnings(stack) if "another account" in text]


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
    use = of_source(ModelSource.from_bucket(bucket, "m.tar.gz"), "from_bucket")[0]
    use(stack, tmp_path)


def test_every_rule_has_a_source() -> None:
    """A rule names its source, or says that there is none."""
    for rule in (*region_rules().values(), *account_rules().values()):
        assert rule.source


@pytest.mark.parametrize(("region", "account"), [(THERE, ACCOUNT), (HERE, OTHER)])
def test_models_that_a_function_copies(region: str, account: str) -> None:
    """Amazon S3 copies from any Region; the policy of another account's bucket must allow it."""
    stack = empty()
    models = TritonModelRepository(stack, "Models")
    bucket = THINGS["IBucket"](stack, region, account)
    models.add_model("m", ModelSource.from_bucket(bucket, "m.tar.gz"))
    TritonMultiModelEndpoint(stack, "E", model_repository=models, instance_type=GPU)
    about_copies = [text for text in warnings(stack) if "deploy-time function to read it" in text]
    if account == OTHER:
        (text,) = about_copies
        assert f"got {OTHER}" in text
    else:
        assert about_copies == []


def test_action_of_a_rollback_alarm_elsewhere_is_an_error(tmp_path: Path) -> None:
    """An alarm that the user has created gets the same error, when it is synthesized."""
    stack = empty()
    action = THINGS["IAlarmAction"](cdk.Stack(stack, "Nested"), THERE, ACCOUNT)
    alarm = alarm_of(stack)
    alarm.add_alarm_action(action)
    DIRECT[TritonEndpoint](stack, tmp_path, {}).add_rollback_alarms(alarm)  # type: ignore[attr-defined]
    cdk.App.of(stack).synth()  # type: ignore[union-attr]
    errors = []
    for construct in stack.node.find_all():
        for entry in construct.node.metadata:
            if entry.type == "aws:cdk:error":
                errors.append(str(entry.data))
    about_actions = [text for text in errors if "actions: CloudWatch refuses an action" in text]
    assert any(THERE in text for text in about_actions)


@pytest.mark.parametrize(
    ("arn", "warns"),
    [
        (f"arn:aws:lambda:{HERE}:{OTHER}:function:page", True),
        (f"arn:aws:automate:{HERE}:ec2:stop", False),
        (f"arn:aws:ssm:{HERE}:{ACCOUNT}:opsitem:1", False),
    ],
)
def test_actions_of_all_kinds_are_placed(arn: str, warns: bool) -> None:
    """Whatever an action is, its ARN says where it is; an action of EC2 has no account."""
    found = check_places(empty(), action_places([arn]))
    assert [finding.code for finding in found] == (["place-in-other-account"] if warns else [])
