"""Each argument of each public method and function with each kind of token.

The methods come from the classes, so a new one is asked too. As for properties, a token reaches the
template, or an error names the argument and what to write.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_applicationautoscaling as appscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_scheduler as scheduler
from cdk_apps import write_model, write_repository
from constructs import Construct
from parts import part
from test_tokens_everywhere import (
    GPU,
    MODELS,
    Use,
    bucket,
    capacity,
    component,
    container,
    endpoint,
    faults,
    host,
    metric,
    repository,
)

import constructs_triton as library
from constructs_triton import (
    AsyncInferenceConfig,
    ContainerInferenceComponent,
    EndpointVariant,
    InstancePool,
    InstanceType,
    ModelSource,
    OffSwitch,
    TritonComponentEndpoint,
    TritonEndpoint,
    TritonInferenceComponent,
    TritonModelRepository,
    TritonMultiModelEndpoint,
    TritonScalableCopyCount,
    TritonScalableInstanceCount,
)
from constructs_triton.cdk.endpoint.imported_endpoint import ImportedTritonEndpoint
from constructs_triton.cdk.metrics.container_metrics import ContainerMetrics
from constructs_triton.cdk.metrics.metric_definitions import MetricOptions
from constructs_triton.cdk.scaling.target_tracking import ScalingPolicyOptions
from constructs_triton_tools.planning import Fleet, Traffic

Create = Callable[[cdk.Stack], Any]


@pytest.fixture(scope="module", autouse=True)
def models(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The models of all endpoints, written once."""
    MODELS[:] = [write_repository(tmp_path_factory.mktemp("tokens") / "models")]


def single() -> Path:
    """Return a folder with one model."""
    folder = MODELS[0].parent / "single"
    if not folder.exists():
        write_model(folder, "other")
    return folder


def many(stack: cdk.Stack) -> TritonMultiModelEndpoint:
    return TritonMultiModelEndpoint(
        stack, "E", model_repository=repository(stack), instance_type=GPU
    )


def asynchronous(stack: cdk.Stack) -> TritonEndpoint:
    return endpoint(stack, async_inference=AsyncInferenceConfig(bucket=bucket(stack)))


def measured(stack: cdk.Stack) -> TritonEndpoint:
    metrics = {"container_metrics": True, "custom_metrics": ["Requests"]}
    return endpoint(stack, **metrics, endpoint_name="digits")


def pooled(stack: cdk.Stack) -> Any:
    pools = [InstancePool(GPU), InstancePool(InstanceType.of("ml.g6.xlarge"))]
    created = TritonEndpoint(
        stack, "E", model_repository=repository(stack), model="other", instance_pools=pools
    )
    return created.auto_scale_instance_count(min_capacity=1, max_capacity=3)


def scaled(created: Any) -> Any:
    return created.auto_scale_instance_count(min_capacity=1, max_capacity=3)


OBJECTS: dict[type, Create] = {
    TritonEndpoint: endpoint,
    ImportedTritonEndpoint: lambda stack: TritonEndpoint.from_endpoint_name(stack, "I", "digits"),
    EndpointVariant: lambda stack: endpoint(stack).variants[0],
    ContainerMetrics: lambda stack: measured(stack).container_metrics,
    TritonScalableInstanceCount: capacity,
    TritonScalableCopyCount: lambda stack: component(stack).auto_scale_copy_count(
        min_capacity=1, max_capacity=3
    ),
    TritonInferenceComponent: component,
    ContainerInferenceComponent: container,
    TritonComponentEndpoint: host,
    TritonModelRepository: repository,
    OffSwitch: lambda stack: OffSwitch(stack, "Night"),
}
"""The classes with methods, and how an object of each is created."""

OWNERS: dict[str, Create] = {
    "add_adapter": lambda stack: container(
        stack,
        environment={"SM_VLLM_ENABLE_LORA": "true", "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "true"},
    ),
    "grant_invoke": many,
    "grant_invoke_async": asynchronous,
    "scale_on_backlog": lambda stack: asynchronous(stack).auto_scale_instance_count(
        min_capacity=0, max_capacity=3
    ),
    "scale_on_concurrent_requests_by_type": pooled,
    "scale_out_on_queue_time": lambda stack: scaled(measured(stack)),
}
"""The object of a method that not every object of its class takes."""


@dataclass(frozen=True, kw_only=True)
class Capacity:
    """A plan of the capacity of the endpoints."""

    instance_type: str = "ml.g5.xlarge"
    min_capacity: float = 1
    max_capacity: float = 3
    target_invocations_per_minute: float = 600
    target_concurrent_requests: float | None = None


def caller(stack: cdk.Stack) -> iam.Role:
    return iam.Role(stack, "Caller", assumed_by=iam.AccountRootPrincipal())


def steps(stack: cdk.Stack) -> list[appscaling.ScalingInterval]:
    return [
        appscaling.ScalingInterval(change=1, lower=9),
        appscaling.ScalingInterval(change=-1, upper=1),
    ]


ARGUMENTS: dict[str, Any] = {
    "actions": "sagemaker:DescribeEndpoint",
    "grantee": caller,
    "max_capacity": 3,
    "max_concurrent_requests": {"ml.g5.xlarge": 4, "ml.g6.xlarge": 8},
    "metric": lambda _: metric(),
    "metric_name": "Invocations",
    "min_capacity": 1,
    "fleet": lambda _: Fleet(invocations_per_minute=1000),
    "model": "other",
    "name": "Requests",
    "off": lambda _: scheduler.ScheduleExpression.cron(hour="20"),
    "plan": lambda _: Capacity(),
    "schedule": lambda _: appscaling.Schedule.cron(hour="8"),
    "scaling_steps": steps,
    "source": lambda _: ModelSource.from_directory(single()),
    "target_backlog_per_instance": 4,
    "target_concurrent_requests": 3,
    "target_latency": lambda _: cdk.Duration.millis(300),
    "target_queue_time": lambda _: cdk.Duration.millis(300),
    "target_value": 3,
    "traffic": lambda _: Traffic((500,)),
}
"""What required arguments are, where they are not asked."""

TOGETHER: dict[str, dict[str, Any]] = {
    "datapoints_to_alarm": {"evaluation_periods": 3},
    "safety_factor": {"max_requests_per_second": 1},
}
"""What an argument has an effect with."""

REQUESTS = {"target_invocations_per_minute", "max_requests_per_second"}
TARGETED = ("scale_on_invocations_per_instance", "scale_on_invocations_per_copy")
NOT_ASKED = {
    "add_alarms": "has the arguments of TritonAlarms and TritonComponentAlarms",
}
OPTIONS: dict[str, type] = {
    "MetricOptions": MetricOptions,
    "ScalingPolicyOptions": ScalingPolicyOptions,
}


def arguments(function: Callable[..., Any]) -> Iterator[tuple[str, bool]]:
    """Yield each argument, and whether it is one of options that other methods have too."""
    for name, parameter in inspect.signature(function).parameters.items():
        if name in ("self", "cls", "id", "scope"):
            continue
        if parameter.kind is not parameter.VAR_KEYWORD:
            yield name, False
            continue
        options = str(parameter.annotation).removeprefix("Unpack[").removesuffix("]")
        if options in OPTIONS:
            for option in OPTIONS[options].__annotations__:
                yield option, True


def called(function: Callable[..., Any], target: Any, given: Mapping[str, Any], stack: Any) -> Any:
    """Call a method or a function with one argument, and with those that it needs besides."""
    positional: list[Any] = []
    named: dict[str, Any] = {}
    parameters = inspect.signature(function).parameters
    for name, parameter in parameters.items():
        if name in ("self", "cls") or parameter.kind is parameter.VAR_KEYWORD:
            continue
        if name not in given and parameter.default is not parameter.empty:
            continue
        value = given[name] if name in given else required(name, stack)
        if parameter.kind is parameter.KEYWORD_ONLY:
            named[name] = value
        else:
            positional.append(value)

    # The others are in ``**options``.
    for name, value in given.items():
        if name not in parameters:
            named[name] = value
    return target(*positional, **named)


def required(name: str, stack: Any) -> Any:
    """Return a value for an argument without a default."""
    if name == "id":
        return "Id"
    if name == "scope":
        return stack
    value = ARGUMENTS.get(name)
    return value(stack) if callable(value) else value


def show(stack: cdk.Stack, result: object) -> None:
    """Put a metric into the template."""
    if isinstance(result, cloudwatch.Metric | cloudwatch.MathExpression):
        widget = cloudwatch.GraphWidget(left=[result])
        cloudwatch.Dashboard(stack, "Board").add_widgets(widget)


def methods(owner: type) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the public methods of the library that the objects of a class have."""
    for name, function in inspect.getmembers(owner, inspect.isfunction):
        static = inspect.getattr_static(owner, name)
        is_own = str(function.__module__).startswith("constructs_triton")
        if is_own and inspect.isfunction(static) and not name.startswith("_"):
            yield name, inspect.unwrap(function)


def method_cases() -> Iterator[Any]:
    """Yield each argument of each method once, and shared options once for each class."""
    seen = set()
    for owner in OBJECTS:
        for method, function in methods(owner):
            for name, is_shared in arguments(function):
                # Shared options are asked of one method of the family, such as ``scale_...``.
                family = method.partition("_")[0] if is_shared else method
                declaring_class = function.__qualname__.partition(".")[0]
                key = (declaring_class, family, name)
                if method in NOT_ASKED or key in seen:
                    continue
                seen.add(key)
                case = f"{owner.__name__}.{method}.{name}"
                yield pytest.param(owner, method, name, id=case)


def use_of_method(owner: type, method: str, name: str) -> Use:
    """Return what calls a method with one argument, and shows its result."""

    def use(stack: cdk.Stack, given: dict[str, Any]) -> None:
        target = OWNERS.get(method, OBJECTS[owner])(stack)
        function = dict(methods(type(target)))[method]
        needed = {**TOGETHER.get(name, {}), **given}
        if method in TARGETED and not needed.keys() & REQUESTS:
            needed["target_invocations_per_minute"] = 600
        if method == "scale_on_schedule":
            needed.setdefault("min_capacity", 1)
        if method == "add_adapter" and "source" not in needed:
            bucket = s3.Bucket.from_bucket_name(stack, "Adapters", "my-adapters")
            needed["source"] = ModelSource.from_bucket(bucket, "german.tar.gz")
        show(stack, called(function, getattr(target, method), needed, stack))

    return use


@pytest.mark.parametrize(("owner", "method", "name"), part(method_cases()))
def test_token_of_a_method_is_in_the_template_or_refused(
    owner: type, method: str, name: str
) -> None:
    """A token of any kind reaches the template, or an error names the argument and what to write;
    the error of another program or silence is wrong.
    """
    use = use_of_method(owner, method, name)
    assert faults(use, name) == []


@pytest.mark.parametrize("name", [field.name for field in fields(Capacity)])
def test_token_of_a_plan_is_in_the_template_or_refused(name: str) -> None:
    """The same is true of each number of a plan."""

    def use(stack: cdk.Stack, given: dict[str, Any]) -> None:
        endpoint(stack).apply_plan(Capacity(**given))

    assert faults(use, name) == []


def test_every_public_class_with_methods_is_asked() -> None:
    """A class of the library with a public method is here, or its methods are those of a class that
    is here.
    """
    asked: set[Any] = set()
    for owner in OBJECTS:
        asked.update(function for _, function in methods(owner))
    public = [getattr(library, name) for name in library.__all__]
    classes = [value for value in public if inspect.isclass(value)]

    missing = set()
    for owner in classes:
        if not issubclass(owner, Construct):
            continue
        for name, function in methods(owner):
            if function not in asked:
                missing.add(f"{owner.__name__}.{name}")

    # It refuses to scale, with whatever it is called.
    assert missing == {"LoraAdapter.auto_scale_copy_count"}
