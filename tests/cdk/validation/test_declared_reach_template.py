"""Each declared property of each construct that takes it, set once: it changes the template.

The properties come from the declarations, so a new one is asked too. One that a construct accepts
and does not use would be ignored in silence.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any, Literal, get_args, get_origin

import aws_cdk as cdk
import pytest
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from cdk_apps import ENVIRONMENT, write_repository
from test_tokens_everywhere import GPU, MODELS, USES, Use, host, repository

import constructs_triton as library
from constructs_triton_client.recorded_requests import RecordedRequest, RecordedRequests
from constructs_triton_core.declared_values import Value, declared_values
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.limits import RangeLimit

OPTIONS: dict[Any, type] = {
    library.TritonEndpoint: library.EndpointOptions,
    library.TritonVariant: library.VariantOptions,
    library.TritonComponentEndpoint: library.ComponentEndpointOptions,
    library.TritonInferenceComponent: library.InferenceComponentOptions,
    library.TritonAlarms: library.AlarmThresholds,
    library.TritonComponentAlarms: library.ComponentAlarmThresholds,
}
PROPERTIES = [
    (construct, entry)
    for construct, options in OPTIONS.items()
    for entry in declared_values(options).values()
]
ALARMS = (library.TritonAlarms, library.TritonComponentAlarms)
G6 = library.InstanceType.of("ml.g6.xlarge")
NAMES = {
    **{name: getattr(library, name) for name in library.__all__},
    "cdk": cdk,
    "Duration": cdk.Duration,
    "RemovalPolicy": cdk.RemovalPolicy,
    "Size": cdk.Size,
    "ec2": ec2,
    "iam": iam,
    "kms": kms,
    "logs": logs,
    "s3": s3,
}


@pytest.fixture(scope="module", autouse=True)
def models(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The models of all constructs, written once."""
    MODELS[:] = [write_repository(tmp_path_factory.mktemp("declared") / "models")]


Options = dict[str, Any]
"""Values of properties, or functions that create them in a stack."""


def bucket(stack: cdk.Stack) -> s3.IBucket:
    return s3.Bucket.from_bucket_name(stack, "Bucket", "here")


def vpc(stack: cdk.Stack) -> ec2.IVpc:
    return ec2.Vpc(stack, "Vpc")


def requests(stack: cdk.Stack) -> str:
    """A file with a recorded request."""
    folder = MODELS[0].parent
    RecordedRequests([RecordedRequest("one", {}, {})]).save(folder / "requests.json")
    return str(folder / "requests.json")


VALUES: Options = {
    "async_inference": lambda stack: library.AsyncInferenceConfig(bucket=bucket(stack)),
    "capacity_reservation": library.CapacityReservationConfig(
        ml_reservation_arn="arn:aws:sagemaker:us-east-1:123456789012:training-plan/name"
    ),
    "container_startup_health_check_timeout": cdk.Duration.seconds(123),
    "core_dump": lambda stack: library.CoreDump(bucket=bucket(stack)),
    "data_capture": lambda stack: library.DataCapture(bucket=bucket(stack)),
    "encryption_key": lambda stack: kms.Key(stack, "Key"),
    "image": library.TritonImage.from_registry("example.com/triton:1"),
    "inference_ami_version": "al2-ami-sagemaker-inference-gpu-3-1",
    "initial_instance_count": 2,
    "instance_pools": [library.InstancePool(GPU), library.InstancePool(G6)],
    "instance_type": library.InstanceType.of("ml.g5.2xlarge"),
    "log_retention": logs.RetentionDays.ONE_DAY,
    "max_instance_count": 4,
    "min_instance_count": 0,
    "min_memory": cdk.Size.gibibytes(2),
    "model_data_download_timeout": cdk.Duration.seconds(123),
    "number_of_accelerator_devices": 0,
    "role": lambda stack: iam.Role.from_role_arn(stack, "R", "arn:aws:iam::123456789012:role/r"),
    "routing_strategy": "RANDOM",
    "verify_responses": requests,
    "vpc": vpc,
    "vpc_subnets": ec2.SubnetSelection(subnet_group_name="Public"),
}
"""Where the example of a declaration does not exist here, or is the default of a construct."""

NAME: Options = {"endpoint_name": "digits"}
NETWORK: Options = {"vpc": vpc}
NO_NVME: Options = {"instance_type": library.InstanceType.of("ml.c6i.large")}
WITH: dict[tuple[Any, str], Options] = {
    (library.TritonEndpoint, "adopt_existing"): NAME,
    (library.TritonEndpoint, "custom_metrics"): {"container_metrics": True, **NAME},
    (library.TritonEndpoint, "log_retention"): NAME,
    (library.TritonEndpoint, "off_switch"): NAME,
    (library.TritonEndpoint, "security_groups"): NETWORK,
    (library.TritonEndpoint, "volume_size"): NO_NVME,
    (library.TritonEndpoint, "vpc_subnets"): NETWORK,
    (library.TritonVariant, "volume_size"): NO_NVME,
    (library.TritonComponentEndpoint, "security_groups"): NETWORK,
    (library.TritonComponentEndpoint, "volume_size"): NO_NVME,
    (library.TritonComponentEndpoint, "vpc_subnets"): NETWORK,
    (library.TritonInferenceComponent, "log_retention"): {"inference_component_name": "digits"},
}
"""What must be set with a property."""


def pooled(construct: Any) -> Use:
    """Use a construct without the instance type that its first pool gives."""

    def use(stack: cdk.Stack, given: dict[str, Any]) -> None:
        USES[construct](stack, {**given, "instance_type": None} if given else {})

    return use


def prefix_aware_host(stack: cdk.Stack, given: dict[str, Any]) -> None:
    """An endpoint whose routing needs both properties of prefixes."""
    host(stack, routing_strategy="PREFIX_AWARE", **PREFIX | given)


def kept_component(stack: cdk.Stack, given: dict[str, Any]) -> None:
    """A component of an endpoint that is kept, since it cannot be kept alone."""
    component_of(host(stack, removal_policy=cdk.RemovalPolicy.RETAIN), given)


def pooled_component(stack: cdk.Stack, given: dict[str, Any]) -> None:
    """A component of an endpoint with two instance types."""
    pools = VALUES["instance_pools"]
    if "instance_pools" in given:
        other = repository(stack, id="Other")
        given = {"instance_pools": [library.InstancePool(G6, model_repository=other)]}
    component_of(host(stack, instance_type=None, instance_pools=pools), given)


def host_of_component(stack: cdk.Stack, given: dict[str, Any]) -> None:
    """An endpoint whose component takes what it does not set itself."""
    component_of(host(stack, **given), {})


def component_of(endpoint: library.TritonComponentEndpoint, given: dict[str, Any]) -> None:
    library.TritonInferenceComponent(
        endpoint,
        "C",
        endpoint=endpoint,
        model_repository=repository(cdk.Stack.of(endpoint)),
        model="other",
        min_memory=cdk.Size.gibibytes(1),
        number_of_accelerator_devices=1,
        **given,
    )


def slow_component(stack: cdk.Stack, given: dict[str, Any]) -> None:
    """A component whose deployment is not the default."""
    if "deployment" in given:
        wait = cdk.Duration.minutes(5)
        given = {"deployment": library.ComponentDeployment.rolling(wait_interval=wait)}
    component_of(host(stack), given)


PREFIX = {"prefix_length": 4096, "concurrency_threshold": 16}
OWN_USES: dict[tuple[Any, str], Use] = {
    (library.TritonEndpoint, "instance_pools"): pooled(library.TritonEndpoint),
    (library.TritonComponentEndpoint, "concurrency_threshold"): prefix_aware_host,
    (library.TritonComponentEndpoint, "instance_pools"): pooled(library.TritonComponentEndpoint),
    (library.TritonComponentEndpoint, "prefix_length"): prefix_aware_host,
    (library.TritonComponentEndpoint, "image"): host_of_component,
    (library.TritonInferenceComponent, "deployment"): slow_component,
    (library.TritonInferenceComponent, "instance_pools"): pooled_component,
    (library.TritonInferenceComponent, "removal_policy"): kept_component,
}
"""Where a property of a construct is about another one."""


def value_of(entry: Value, stack: cdk.Stack) -> Any:
    """A value of a property that is not its default, from the declaration."""
    kind = entry.alternatives[0]
    if get_origin(kind) is Literal:
        return next(word for word in get_args(kind) if word != entry.default)
    if kind is bool:
        return not entry.default
    if entry.example:
        value = eval(entry.example, {**NAMES, "self": stack})
        return [value] if get_origin(kind) is Sequence else value
    if isinstance(entry.limit, RangeLimit):
        least = entry.limit.minimum or 0
        return least + 1 if least == entry.default else least
    return "green"


def template_of(construct: Any, entry: Value, chosen: Options, others: Options) -> dict[str, Any]:
    """The template of a stack whose construct has these properties."""
    stack = cdk.Stack(cdk.App(builtin_cloud_formation_validation=False), "Test", env=ENVIRONMENT)
    given = {
        name: value(stack) if inspect.isfunction(value) else value
        for name, value in (chosen | others).items()
    }
    if not given and construct in ALARMS:
        given[entry.name] = None  # none of this kind
    OWN_USES.get((construct, entry.name), USES[construct])(stack, given)
    app = stack.node.root
    assert isinstance(app, cdk.App)
    return dict(app.synth().get_stack_by_name("Test").template)


plain_templates: dict[object, dict[str, Any]] = {}
"""The templates without the property, which most properties of a construct share."""


def plain_template(construct: Any, entry: Value, others: Options) -> dict[str, Any]:
    """The template of the construct without the property."""
    key: tuple[object, ...] = (construct, OWN_USES.get((construct, entry.name)), *others)
    if construct in ALARMS:
        key = (construct, entry.name)  # each is about the endpoint that has its metric
    if key not in plain_templates:
        plain_templates[key] = template_of(construct, entry, {}, others)
    return plain_templates[key]


@pytest.mark.parametrize(
    ("construct", "entry"),
    PROPERTIES,
    ids=[f"{construct.__name__}.{entry.name}" for construct, entry in PROPERTIES],
)
def test_declared_property_changes_the_template(construct: Any, entry: Value) -> None:
    """What a construct declares is in its template."""
    others = WITH.get((construct, entry.name), {})
    value = VALUES.get(entry.name, lambda stack: value_of(entry, stack))
    plain = plain_template(construct, entry, others)
    assert template_of(construct, entry, {entry.name: value}, others) != plain


WORDS = [
    (construct, entry)
    for construct, entry in PROPERTIES
    if any(get_origin(kind) is Literal for kind in entry.alternatives)
]


@pytest.mark.parametrize("wrong", [7, True, "typo"])
@pytest.mark.parametrize(
    ("construct", "entry"),
    WORDS,
    ids=[f"{construct.__name__}.{entry.name}" for construct, entry in WORDS],
)
def test_declared_word_is_checked(construct: Any, entry: Value, wrong: object) -> None:
    """Where a declaration lists words, an error names them for another value or a typing error."""
    word = get_args(entry.alternatives[0])[0]
    given = f"{word}S" if wrong == "typo" else wrong
    with pytest.raises(InvalidValueError, match=rf'{entry.name}: must be one of .*"{word}"'):
        template_of(construct, entry, {entry.name: given}, {})
