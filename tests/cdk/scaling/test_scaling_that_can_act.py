"""Scaling that cannot act, asked of every construct, policy and schedule that its types show."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints

import aws_cdk as cdk
import pytest
from aws_cdk import aws_applicationautoscaling as appscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_scheduler as scheduler
from cdk_apps import (
    add_endpoint,
    add_ensemble,
    add_many,
    add_repository,
    make_stack,
    resources,
    synthesize,
    warnings,
    write_model,
    write_repository,
)

import constructs_triton as library
from constructs_triton import AsyncInferenceConfig, InstanceType, OffSwitch, TritonVariant
from constructs_triton_core.errors import InvalidValueError

G5 = InstanceType.of("ml.g5.xlarge")
BOUNDS = {"min_capacity": 1, "max_capacity": 3}
STARTING = ("HasBacklogWithoutCapacity", "NoCapacityInvocationFailures")
"""The metrics that have values without instances or copies, on which a step policy can start one.
"""
VALUES: dict[str, Any] = {
    "target_backlog_per_instance": 4,
    "target_concurrent_requests": 4,
    "target_invocations_per_minute": 100,
    "target_latency": cdk.Duration.millis(100),
    "target_queue_time": cdk.Duration.millis(10),
    "target_value": 5,
    "metric": cloudwatch.Metric(namespace="Shop", metric_name="Orders"),
    "scaling_steps": [
        appscaling.ScalingInterval(upper=10, change=0),
        appscaling.ScalingInterval(lower=10, change=1),
    ],
    "max_concurrent_requests": {"ml.g5.xlarge": 4},
}
"""A value of each property of a policy that has no default."""


def real_time(stack: cdk.Stack, path: Path) -> Any:
    return add_endpoint(stack, path)


def asynchronous(stack: cdk.Stack, path: Path) -> Any:
    return add_endpoint(stack, path, async_inference=AsyncInferenceConfig(bucket=bucket(stack)))


def many(stack: cdk.Stack, path: Path) -> Any:
    return add_many(stack, write_repository(path))


def ensemble(stack: cdk.Stack, path: Path) -> Any:
    return add_ensemble(stack, write_repository(path))


def component(stack: cdk.Stack, path: Path) -> Any:
    return new_component(stack, path, library.TritonInferenceComponent)


def container(stack: cdk.Stack, path: Path) -> Any:
    return new_component(stack, path, library.ContainerInferenceComponent)


def new_component(stack: cdk.Stack, path: Path, kind: Any) -> Any:
    """A component of this type on an endpoint of its own."""
    host = library.TritonComponentEndpoint(
        stack, "Host", instance_type=G5, min_instance_count=1, max_instance_count=2
    )
    options: dict[str, Any] = {
        "endpoint": host,
        "min_memory": cdk.Size.gibibytes(1),
        "number_of_accelerator_devices": 1,
    }
    if kind is library.TritonInferenceComponent:
        write_model(path, "model")
        options |= {"model_repository": add_repository(stack, path), "model": "model"}
    else:
        options["image"] = library.ServingImage.from_registry("x:1", cuda_version="12.8")
    return kind(stack, "Component", **options)


def bucket(stack: cdk.Stack) -> s3.IBucket:
    return s3.Bucket.from_bucket_name(stack, "Bucket", "queue")


SCALED: dict[str, Callable[[cdk.Stack, Path], Any]] = {
    "real_time": real_time,
    "asynchronous": asynchronous,
    "many": many,
    "ensemble": ensemble,
    "component": component,
    "container": container,
}


def scaling_of(scaled: Any, **bounds: float) -> Any:
    """The scaling of an endpoint or a component with these bounds."""
    (name,) = [name for name in dir(type(scaled)) if name.startswith("auto_scale")]
    method = getattr(scaled, name)
    return method(**{**BOUNDS, **bounds})


def policies(count: type) -> list[str]:
    """The methods of a class that add a policy."""
    return [name for name in dir(count) if name.startswith("scale_") and name != SCHEDULES]


SCHEDULES = "scale_on_schedule"
STOP = {"min_capacity": 0, "max_capacity": 0}
COUNTS = (library.TritonScalableInstanceCount, library.TritonScalableCopyCount)
POLICIES = [(count, name) for count in COUNTS for name in policies(count)]


def add_policy(scaling: Any, name: str) -> None:
    """Add a policy with a value for each property that has no default."""
    method = getattr(scaling, name)
    required = [
        parameter.name
        for parameter in inspect.signature(method).parameters.values()
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.default is parameter.empty
    ]
    if name.startswith("scale_on_invocations"):
        required.append("target_invocations_per_minute")
    method("Policy", **{parameter: VALUES[parameter] for parameter in required})


def codes(stack: cdk.Stack) -> set[str]:
    """The codes of the warnings about scaling at synthesis."""
    stage = cdk.Stage.of(stack)
    assert stage is not None
    stage.synth(force=True)
    found = {text.rpartition("constructs-triton:")[2].rstrip("]") for text in warnings(stack)}
    return found & {
        "alarms-before-scaling",
        "all-weights-zero",
        "no-way-back-from-zero",
        "scaling-without-policy",
    }


def public_classes() -> list[type]:
    """The classes that the library exports."""
    public = [getattr(library, name) for name in library.__all__]
    return [value for value in public if inspect.isclass(value)]


def test_every_construct_that_scales_is_asked() -> None:
    """Each public class with a method that sets up scaling has an example in ``SCALED``."""
    scaling = set()
    for owner in public_classes():
        if any(name.startswith("auto_scale") for name in dir(owner)):
            scaling.add(owner.__name__)
    interfaces = {"EndpointVariant", "IInferenceComponent", "ITritonEndpoint"}
    refusing = {"LoraAdapter"}
    assert scaling - interfaces - refusing == {
        "ContainerInferenceComponent",
        "TritonEndpoint",
        "TritonEnsembleEndpoint",
        "TritonInferenceComponent",
        "TritonMultiModelEndpoint",
    }


@pytest.mark.parametrize("name", SCALED)
def test_bounds_without_a_policy(tmp_path: Path, name: str) -> None:
    """Bounds alone are a warning, also where 0 copies start on a request; fixed ones are none."""
    for maximum, expected in ((3, {"scaling-without-policy"}), (1, set())):
        stack = make_stack()
        scaling_of(SCALED[name](stack, tmp_path / str(maximum)), max_capacity=maximum)
        assert codes(stack) == expected


@pytest.mark.parametrize(
    ("count", "policy"), POLICIES, ids=lambda value: getattr(value, "__name__", value)
)
def test_each_policy_leads_out_of_zero_or_says_that_it_does_not(
    tmp_path: Path, count: type, policy: str
) -> None:
    """Alone on bounds from 0, a policy is refused, has a start, or has the warning."""
    stack = make_stack()
    add_scaled = component if count is library.TritonScalableCopyCount else asynchronous
    scaling = scaling_of(add_scaled(stack, tmp_path), min_capacity=0)
    assert isinstance(scaling, count)
    try:
        add_policy(scaling, policy)
    except InvalidValueError:
        return

    alarms = resources(synthesize(stack), "AWS::CloudWatch::Alarm").values()
    metrics = {alarm["Properties"].get("MetricName") for alarm in alarms}
    is_of_the_user = policy in ("scale_on_metric", "scale_to_track_metric")
    has_way_back = is_of_the_user or not metrics.isdisjoint(STARTING)

    assert codes(stack) == (set() if has_way_back else {"no-way-back-from-zero"})


@pytest.mark.parametrize(
    ("schedules", "expected"),
    [
        ([{"min_capacity": 1}], set()),
        ([STOP], {"no-way-back-from-zero"}),
        ([STOP, {"max_capacity": 3, "min_capacity": 1}], set()),
    ],
)
def test_schedules_lead_back_from_zero(
    tmp_path: Path, schedules: list[dict[str, float]], expected: set[str]
) -> None:
    """A schedule that starts instances is a way back, and one that only stops them is not."""
    stack = make_stack()
    scaling = scaling_of(asynchronous(stack, tmp_path), min_capacity=0)
    for number, bounds in enumerate(schedules):
        time = appscaling.Schedule.cron(hour=str(8 + number), minute="0")
        scaling.scale_on_schedule(f"At{number}", schedule=time, **bounds)
    scaling.scale_on_gpu_utilization("Gpu")
    assert codes(stack) == expected


@pytest.mark.parametrize("is_first", [True, False])
def test_schedule_to_zero_starts_on_the_backlog(tmp_path: Path, *, is_first: bool) -> None:
    """A minimum that a schedule sets to 0 needs the policy of the first instance too."""
    stack = make_stack()
    scaling = scaling_of(asynchronous(stack, tmp_path))
    night = appscaling.Schedule.cron(hour="20", minute="0")
    steps: list[Callable[[], Any]] = [
        lambda: scaling.scale_on_schedule("Night", schedule=night, min_capacity=0),
        lambda: scaling.scale_on_backlog("Backlog", target_backlog_per_instance=4),
    ]
    if not is_first:
        steps.reverse()

    for step in steps:
        step()

    (alarm,) = resources(synthesize(stack), "AWS::CloudWatch::Alarm").values()
    assert alarm["Properties"]["MetricName"] == "HasBacklogWithoutCapacity"


@pytest.mark.parametrize("add", [add_endpoint, add_ensemble, add_many])
def test_all_weights_zero(tmp_path: Path, add: Callable[..., Any]) -> None:
    """No share of the requests is a warning; one weight above 0 is enough."""
    models = write_repository(tmp_path / "models")
    for weights, expected in (((0, 0), {"all-weights-zero"}), ((0, 1), set())):
        stack = make_stack()
        variants = [
            TritonVariant(variant_name=f"v{n}", instance_type=G5, initial_variant_weight=weight)
            for n, weight in enumerate(weights)
        ]
        named = {"model": "other"} if add is add_endpoint else {}
        add(stack, models, variants=variants, instance_type=None, **named)
        assert codes(stack) == expected


@pytest.mark.parametrize("name", ["real_time", "asynchronous", "many", "ensemble"])
def test_alarms_before_scaling(tmp_path: Path, name: str) -> None:
    """The capacity of a variant that scales later has no alarm, which is a warning."""
    stack = make_stack()
    scaled = SCALED[name](stack, tmp_path)
    scaled.add_alarms("Early")
    scaled.add_alarms("Without", at_max_capacity_for=None)
    scaling_of(scaled).scale_on_gpu_utilization("Gpu")
    scaled.add_alarms("Late")
    assert codes(stack) == {"alarms-before-scaling"}
    about_alarms = [text for text in warnings(stack) if "alarms-before-scaling" in text]
    assert len(about_alarms) == 1


def schedule_parameters() -> list[tuple[Any, str, str, Any]]:
    """Each parameter of a public class whose type is a schedule of the CDK."""
    found: list[tuple[Any, str, str, Any]] = []
    for owner in public_classes():
        for name, method in inspect.getmembers(owner, inspect.isfunction):
            if name.startswith("_"):
                continue
            for parameter, annotation in annotations_of(method).items():
                schedule_type = schedule_in(str(annotation))
                if schedule_type is not None:
                    found.append((owner, name, parameter, schedule_type))
    return found


def schedule_in(annotation: str) -> Any:
    """The type of the CDK's schedules that an annotation contains, or ``None``."""
    for schedule_type in (appscaling.Schedule, scheduler.ScheduleExpression):
        if schedule_type.__name__ in annotation and schedule_type.__module__ in annotation:
            return schedule_type
    return None


def annotations_of(method: Any) -> dict[str, Any]:
    """The annotations of a method; none if they need an import for type checkers only."""
    try:
        return get_type_hints(method)
    except NameError:  # imported only for type checkers, so no schedule
        return {}


@pytest.mark.parametrize(
    "place", schedule_parameters(), ids=lambda place: f"{place[0].__name__}-{place[2]}"
)
@pytest.mark.parametrize("expression", ["cron(0 20 * * *)", "cron(0 20 * * * *)", "0 20 * * ? *"])
def test_each_schedule_is_checked(
    tmp_path: Path, place: tuple[type, str, str, Any], expression: str
) -> None:
    """An expression that AWS refuses is an error that names the property."""
    owner, method, parameter, schedule_type = place
    stack = make_stack()
    new: dict[type, Callable[[], Any]] = {
        library.TritonScalableInstanceCount: lambda: scaling_of(real_time(stack, tmp_path)),
        library.TritonScalableCopyCount: lambda: scaling_of(component(stack, tmp_path)),
        OffSwitch: lambda: OffSwitch(stack, "Night"),
    }
    add_schedule = getattr(new[owner](), method)

    # Only the schedule of this parameter is wrong.
    right = schedule_type.cron(hour="20", minute="0")
    schedules = {name: right for _, other, name, _ in schedule_parameters() if other == method}
    schedules[parameter] = schedule_type.expression(expression)
    bounds = {"min_capacity": 1} if method == SCHEDULES else {}

    with pytest.raises(InvalidValueError, match=rf"{parameter}: .*got \"cron|{parameter}: is none"):
        add_schedule("Night", **schedules, **bounds)
