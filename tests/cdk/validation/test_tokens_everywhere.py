"""Each property of each construct with each kind of token: it reaches the template, or is refused.

The properties come from the declarations and signatures, so a new one is asked too. A token that is
accepted and does not reach the template would be ignored in silence.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_applicationautoscaling as appscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_s3 as s3
from cdk_apps import ENVIRONMENT, add_repository, write_repository
from parts import part

import constructs_triton as library
from constructs_triton import (
    AsyncInferenceConfig,
    ContainerInferenceComponent,
    CoreDump,
    DataCapture,
    InstanceType,
    ServingImage,
    TritonAlarms,
    TritonComponentAlarms,
    TritonComponentEndpoint,
    TritonEndpoint,
    TritonInferenceComponent,
    TritonModel,
    TritonModelRepository,
    TritonScalableInstanceCount,
    TritonVariant,
)
from constructs_triton_core.errors import InvalidValueError

GPU = InstanceType.of("ml.g5.xlarge")
KINDS: dict[str, Callable[[cdk.Stack], Any]] = {
    "string": lambda stack: cdk.CfnParameter(stack, "Token").value_as_string,
    "number": lambda stack: cdk.CfnParameter(stack, "Token", type="Number").value_as_number,
    "list": lambda stack: cdk.CfnParameter(stack, "Token", type="CommaDelimitedList").value_as_list,
    "lazy": lambda stack: cdk.Token.as_string(cdk.Token.as_any({"Ref": parameter(stack)})),
    "any": lambda stack: cdk.Token.as_any({"Ref": parameter(stack)}),
    "seconds": lambda stack: cdk.Duration.seconds(KINDS["number"](stack)),
    "minutes": lambda stack: cdk.Duration.minutes(KINDS["number"](stack)),
    "mebibytes": lambda stack: cdk.Size.mebibytes(KINDS["number"](stack)),
    "gibibytes": lambda stack: cdk.Size.gibibytes(KINDS["number"](stack)),
}
# How tokens and objects look in a message that prints them.
SHOWN = re.compile(r"[$#]\{Token|e\+289| object at 0x")
Use = Callable[[cdk.Stack, dict[str, Any]], object]
MODELS: list[Path] = []


@pytest.fixture(scope="module", autouse=True)
def models(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The models of all endpoints, written once."""
    MODELS[:] = [write_repository(tmp_path_factory.mktemp("tokens") / "models")]


def parameter(stack: cdk.Stack) -> str:
    return cdk.CfnParameter(stack, "Token").logical_id


def repository(stack: cdk.Stack, **given: Any) -> TritonModelRepository:
    return add_repository(stack, MODELS[0], **given)


def bucket(stack: cdk.Stack) -> s3.IBucket:
    return s3.Bucket.from_bucket_name(stack, "Bucket", "here")


def endpoint(stack: cdk.Stack, **given: Any) -> TritonEndpoint:
    options = {
        "model_repository": repository(stack),
        "instance_type": GPU,
        "model": "other",
        **needed_with(given),
        **given,
    }
    return TritonEndpoint(stack, "E", **options)


def needed_with(given: dict[str, Any]) -> dict[str, Any]:
    """What the only given property has an effect with."""
    needed: dict[str, Any] = {}
    for name in given:
        needed |= NEEDED.get(name, {})
    return needed


def model_of(given: dict[str, Any]) -> dict[str, Any]:
    """The model to serve, unless an ensemble is given."""
    return {} if "ensemble" in given else {"model": "other"}


def host(stack: cdk.Stack, **given: Any) -> TritonComponentEndpoint:
    options = {
        "instance_type": GPU,
        "min_instance_count": 1,
        "max_instance_count": 2,
        **needed_with(given),
        **given,
    }
    return TritonComponentEndpoint(stack, "Host", **options)


def component(stack: cdk.Stack, **given: Any) -> TritonInferenceComponent:
    options = {
        "min_memory": cdk.Size.gibibytes(1),
        "number_of_accelerator_devices": 1,
        "model_repository": repository(stack),
        **model_of(given),
        **needed_with(given),
        **given,
    }
    return TritonInferenceComponent(stack, "C", endpoint=host(stack), **options)


def container(stack: cdk.Stack, **given: Any) -> ContainerInferenceComponent:
    options = {
        "min_memory": cdk.Size.gibibytes(1),
        "number_of_accelerator_devices": 1,
        "image": ServingImage.from_registry("example.com/vllm:1", cuda_version="12.4"),
        **needed_with(given),
        **given,
    }
    return ContainerInferenceComponent(stack, "C", endpoint=host(stack), **options)


def capacity(stack: cdk.Stack, **given: Any) -> TritonScalableInstanceCount:
    return endpoint(stack).auto_scale_instance_count(
        **{"min_capacity": 1, "max_capacity": 3, **given}
    )


def metric() -> cloudwatch.Metric:
    return cloudwatch.Metric(namespace="App", metric_name="Waiting")


def alarms(stack: cdk.Stack, given: dict[str, Any]) -> object:
    """Alarms of an endpoint that has the metric of the property."""
    (name,) = given
    if name in ("model_cache_hit_percent", "model_loading_wait"):
        many = library.TritonMultiModelEndpoint(
            stack, "E", model_repository=repository(stack), instance_type=GPU
        )
        return many.add_alarms(**given)
    if name in ("queue_time", "container_metrics_missing_for"):
        publishing = endpoint(stack, container_metrics=True, endpoint_name="digits")
        return publishing.add_alarms(**given)
    if name == "oldest_request_age":
        queue = AsyncInferenceConfig(bucket=bucket(stack))
        return endpoint(stack, async_inference=queue).add_alarms(**given)
    scaled = endpoint(stack)
    scaled.auto_scale_instance_count(min_capacity=1, max_capacity=3)
    return scaled.add_alarms(**given)


NEEDED: dict[str, dict[str, Any]] = {
    "custom_metrics": {"container_metrics": True, "endpoint_name": "digits"},
    "max_zone_imbalance": {"placement_strategy": "SPREAD"},
    "scale_in_maximum_step_size": {"scale_in_strategy": "CONSOLIDATION"},
    "scale_in_cooldown": {"scale_in_strategy": "CONSOLIDATION"},
}
"""What has an effect only together with another property."""

USES: dict[Any, Use] = {
    TritonEndpoint: lambda stack, given: endpoint(stack, **given),
    TritonComponentEndpoint: lambda stack, given: host(stack, **given),
    TritonInferenceComponent: lambda stack, given: component(stack, **given),
    ContainerInferenceComponent: lambda stack, given: container(stack, **given),
    TritonModelRepository: lambda stack, given: library.TritonMultiModelEndpoint(
        stack, "E", model_repository=repository(stack, **given), instance_type=GPU
    ),
    TritonModel: lambda stack, given: TritonModel(
        stack,
        "E",
        **{
            "model_repository": repository(stack),
            "instance_type": GPU,
            **model_of(given),
            **given,
        },
    ),
    TritonVariant: lambda stack, given: endpoint(
        stack, variants=[TritonVariant(**{"variant_name": "Green", **given})]
    ),
    AsyncInferenceConfig: lambda stack, given: endpoint(
        stack, async_inference=AsyncInferenceConfig(**{"bucket": bucket(stack), **given})
    ),
    DataCapture: lambda stack, given: endpoint(
        stack, data_capture=DataCapture(**{"bucket": bucket(stack), **given})
    ),
    CoreDump: lambda stack, given: endpoint(
        stack, core_dump=CoreDump(**{"bucket": bucket(stack), **given})
    ),
    TritonAlarms: alarms,
    TritonComponentAlarms: lambda stack, given: component(stack).add_alarms(**given),
}
"""How each construct and option is created with one property."""

POLICY: dict[str, dict[str, Any]] = {
    "scale_to_track_metric": {"metric": metric, "target_value": 3},
    "scale_on_metric": {
        "metric": metric,
        "scaling_steps": lambda: [
            appscaling.ScalingInterval(change=1, lower=9),
            appscaling.ScalingInterval(change=-1, upper=1),
        ],
    },
    "scale_on_schedule": {
        "schedule": lambda: appscaling.Schedule.cron(hour="8"),
        "min_capacity": 1,
    },
    "scale_on_model_latency": {"target_latency": lambda: cdk.Duration.millis(300)},
    "scale_on_concurrent_requests": {"target_concurrent_requests": 3},
    "scale_on_invocations_per_instance": {},
}
"""What each scaling policy needs besides one property."""

PARTS = {
    "scope",
    "id",
    "endpoint",
    "component",
    "self",
    "source",
    "options",
    "thresholds",
}
"""Parameters that take an object of the library, which no template could contain."""


def properties() -> Iterator[tuple[str, Use, str]]:
    """A name, a use and a property, of constructs and options, and of scaling policies."""
    for owner, use in USES.items():
        target = owner
        # jsii's metaclass hides the signature of a construct, unless the construct declares it.
        if is_construct(owner) and not hasattr(owner, "__signature__"):
            target = owner.__init__
        for name in asked_of(target):
            yield f"{owner.__name__}.{name}", use, name
    for method, function in inspect.getmembers(TritonScalableInstanceCount, inspect.isfunction):
        if method in POLICY:
            for name in asked_of(function):
                yield f"{method}.{name}", of_policy(method), name


def asked_of(function: Any) -> list[str]:
    """The parameters that can be tokens."""
    return [name for name in inspect.signature(function).parameters if name not in PARTS]


def is_construct(owner: Any) -> bool:
    return issubclass(owner, cdk.Resource) or hasattr(owner, "is_construct")


def of_policy(method: str) -> Use:
    """How a scaling policy is added with one property."""

    def use(stack: cdk.Stack, given: dict[str, Any]) -> object:
        needed: dict[str, Any] = {}
        for name, value in POLICY[method].items():
            needed[name] = value() if callable(value) else value
        if "datapoints_to_alarm" in given:
            needed["evaluation_periods"] = 3
        if "safety_factor" in given:
            needed["max_requests_per_second"] = 1
        return getattr(capacity(stack), method)("Policy", **{**needed, **given})

    return use


FOUND = list(properties())


def outcome(use: Use, name: str, kind: str, named: Sequence[str] = ()) -> str:
    """What becomes of a token: an empty string if it is right.

    ``named`` is what a message names in place of ``name``.
    """
    app = cdk.App(builtin_cloud_formation_validation=False)
    stack = cdk.Stack(app, "Test", env=ENVIRONMENT)
    token = KINDS[kind](stack)
    try:
        use(stack, {name: token})
    except InvalidValueError as error:
        message = str(error)
        place = message.partition(":")[0]
        is_named = any(expected in place for expected in named or [name])
        has_fix = ";" in message
        if is_named and has_fix and not SHOWN.search(message):
            return ""
        return f"{kind}: refused with {message}"
    except Exception as error:  # the error of another program says nothing about the property
        return f"{kind}: {type(error).__name__}: {error}"
    try:
        template = app.synth().get_stack_by_name("Test").template
    except RuntimeError as error:
        return f"{kind}: synthesis fails with {error}"
    return "" if "{'Ref': 'Token'}" in str(template) else f"{kind}: accepted and ignored"


def faults(use: Use, name: str) -> list[str]:
    """What is wrong with each kind of token in this property."""
    outcomes = [outcome(use, name, kind) for kind in KINDS]
    return [fault for fault in outcomes if fault]


@pytest.mark.parametrize(
    ("use", "name"),
    [(use, name) for _, use, name in part(FOUND)],
    ids=[title for title, _, _ in part(FOUND)],
)
def test_token_is_in_the_template_or_refused(use: Use, name: str) -> None:
    """A token of any kind reaches the template, or an error names the property and what to write;
    the error of another program or silence is wrong.
    """
    assert faults(use, name) == []
