"""Values of wrong types for repositories, scaling, alarms and grants raise errors."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_iam as iam
from aws_cdk.aws_applicationautoscaling import Schedule
from cdk_apps import add_endpoint, add_many, add_repository, make_stack

from constructs_triton import (
    AsyncInferenceConfig,
    CoreDump,
    DataCapture,
    Deployment,
    InstanceType,
    ModelSource,
    TritonDashboard,
    TritonEndpoint,
    TritonModelRepository,
    TritonScalableInstanceCount,
)
from constructs_triton_core.errors import InvalidValueError


@pytest.fixture
def endpoint(path: Path) -> TritonEndpoint:
    return add_endpoint(make_stack(), path, model="other")


@pytest.mark.parametrize(
    ("props", "message"),
    [
        (
            {"source": "models"},
            r'^source: must be of type ModelSource, got "models"; write ModelSource',
        ),
        (
            {"check": False},
            "^check: must be of type RepositoryCheck, got False; write RepositoryCheck.off",
        ),
        (
            {"prune_after": 30},
            r"^prune_after: must be of type Duration, got 30; write Duration\.days",
        ),
        (
            {"bucket": "mine"},
            r"^bucket: must be an object with \w+, got .mine.; write s3\.Bucket\.from_bucket_name",
        ),
        (
            {"encryption_key": "arn"},
            r"^encryption_key: must be an object with \w+, got .arn.; write kms\.Key\.from_key",
        ),
        (
            {"asset_encryption_key": "arn"},
            r"^asset_encryption_key: must be an object with \w+, got .arn.",
        ),
        (
            {"target_model_naming": "x"},
            '^target_model_naming: must be "content" or "plain", got "x"',
        ),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_wrong_property_of_a_repository_shows_an_example(
    path: Path, props: dict[str, Any], message: str
) -> None:
    """A string or number in place of a CDK object raises an error,
    and nothing is added to the tree.
    """
    stack = make_stack()
    given = {"source": ModelSource.from_directory(path), **props}
    with pytest.raises(InvalidValueError, match=message):
        TritonModelRepository(stack, "Models", **given)
    assert stack.node.try_find_child("Models") is None


@pytest.mark.parametrize(
    ("scale", "message"),
    [
        (
            lambda count: count.scale_on_model_latency("Slow", target_latency=300),
            r"^target_latency: must be of type Duration, got 300; write Duration\.millis",
        ),
        (
            lambda count: count.scale_on_gpu_utilization("Gpu", scale_in_cooldown=300),
            r"^Gpu\.scale_in_cooldown: must be of type Duration, got 300",
        ),
        (
            lambda count: count.scale_to_track_metric("Own", metric="Invocations", target_value=3),
            r"^Own\.metric: must be an object with \w+, got .Invocations.",
        ),
        (
            lambda count: count.scale_to_track_metric("Own", metric=cdk_metric(), target_value="3"),
            r'^Own\.target_value: must be a number, got "3"; write it without quotes',
        ),
        (
            lambda count: count.scale_on_concurrent_requests(
                "Busy", target_concurrent_requests="3"
            ),
            r'^target_concurrent_requests: must be a number, got "3"; write it without quotes',
        ),
        (
            lambda count: count.scale_on_gpu_utilization("Gpu", disable_scale_in="yes"),
            r'^Gpu\.disable_scale_in: must be of type bool, got "yes"; write True',
        ),
        (
            lambda count: count.scale_on_metric(
                "Steps",
                metric=cdk_metric(),
                scaling_steps=[{"change": 1, "lower": 9}, {"change": -1, "upper": 1}],
                cooldown=60,
            ),
            r"^Steps\.cooldown: must be of type Duration, got 60; write Duration\.seconds",
        ),
        (
            lambda count: count.scale_on_schedule(
                "Day", schedule="cron(0 8 * * ? *)", min_capacity=2
            ),
            r"^Day\.schedule: must be of type Schedule, got .*; write Schedule\.expression",
        ),
        (
            lambda count: count.scale_on_schedule(
                "Day", schedule=Schedule.cron(hour="8"), min_capacity=2, start_time="2030-01-31"
            ),
            r'^Day\.start_time: must be of type datetime, got "2030-01-31"',
        ),
        (
            lambda count: count.scale_on_schedule(
                "Day", schedule=Schedule.cron(hour="8"), min_capacity="2"
            ),
            r'^Day\.min_capacity: must be a number, got "2"',
        ),
    ],
)
def test_wrong_value_of_a_policy_shows_an_example(
    endpoint: TritonEndpoint, scale: Callable[[TritonScalableInstanceCount], object], message: str
) -> None:
    """After an error, the ID of the policy can be used again."""
    count = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=3)
    with pytest.raises(InvalidValueError, match=message):
        scale(count)
    count.scale_on_gpu_utilization(message[1:4].title())


def cdk_metric() -> cdk.aws_cloudwatch.Metric:
    return cdk.aws_cloudwatch.Metric(namespace="App", metric_name="Waiting")


def test_capacity_is_a_whole_number(endpoint: TritonEndpoint) -> None:
    """A fractional number of instances raises an error, because CloudFormation rejects it."""
    with pytest.raises(
        InvalidValueError, match=r"^max_capacity: must be a whole number .*, got 2\.5"
    ):
        endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=2.5)


def test_error_does_not_print_a_token(stack: cdk.Stack, path: Path) -> None:
    """If the instance type is a parameter, the error does not print the token."""
    instance_type = InstanceType.of(cdk.CfnParameter(stack, "Type").value_as_string)
    endpoint = add_endpoint(stack, path, model="other", instance_type=instance_type)
    count = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=3)
    with pytest.raises(
        InvalidValueError, match="got a value that is known only at deployment; set gpu"
    ):
        count.scale_on_gpu_utilization("Gpu")


def test_grant_that_allows_nothing_is_refused(stack: cdk.Stack, path: Path) -> None:
    """A name that is not a model, archive or pattern raises an error; tokens are allowed."""
    endpoint = add_many(stack, path)
    caller = iam.Role(stack, "Caller", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    with pytest.raises(
        InvalidValueError, match=r'^target_models: .* got "othr"; did you mean "other"\?$'
    ):
        endpoint.grant_invoke(caller, target_models=["othr"])
    with pytest.raises(
        InvalidValueError, match=r'no model or archive of that name, got "other\.tar\.gz"; did you'
    ):
        endpoint.grant_invoke(caller, target_models=["other.tar.gz"])
    later = cdk.CfnParameter(stack, "Name").value_as_string
    endpoint.grant_invoke(caller, target_models=["other", "later-*", "tenant/*", later])


def test_step_of_an_ensemble_cannot_be_granted(stack: cdk.Stack, path: Path) -> None:
    """A step has no archive, so the error names the ensemble, which can be granted."""
    repository = add_repository(stack, path)
    endpoint = add_many(stack, repository)
    caller = iam.Role(stack, "Caller", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    message = (
        r'"scale" is a step inside "pipeline" and has no archive of its own; grant "pipeline", or '
        r'set also_served=\["scale"\]$'
    )
    for name in ("scale", "scale.tar.gz"):
        with pytest.raises(InvalidValueError, match=message):
            endpoint.grant_invoke(caller, target_models=[name])
    endpoint.grant_invoke(caller, target_models=["pipeline", repository.target_models["pipeline"]])


def not_a_list(stack: cdk.Stack, endpoint: Any) -> None:
    TritonDashboard(stack, "Dashboard", endpoints=endpoint)


ANY: Any = "text"
WRONG: list[tuple[str, Callable[[cdk.Stack, TritonEndpoint], object]]] = [
    (r"^bucket: must be an object with \w+", lambda *_: ModelSource.from_bucket(ANY, "a.tar.gz")),
    (r"^bucket: must be an object with \w+", lambda *_: ModelSource.from_s3_prefix(ANY, "models/")),
    (r"^data_capture.bucket: must be an object with \w+", lambda *_: DataCapture(bucket=ANY)),
    (
        r"^async_inference.bucket: must be an object with \w+",
        lambda *_: AsyncInferenceConfig(bucket=ANY),
    ),
    (
        r'^deployment.wait_interval: must be of type Duration, got "text"; write Duration\.seconds',
        lambda *_: Deployment.rolling(wait_interval=ANY),
    ),
    (r"^core_dump.bucket: must be an object with \w+", lambda *_: CoreDump(bucket=ANY)),
    (r"^endpoints: must be a list, .* write \[endpoint\]$", not_a_list),
    (
        r"^endpoints: must be an object with \w+, got .t.",
        lambda stack, _: TritonDashboard(stack, "D", endpoints=ANY),
    ),
    (
        r"^actions: must be an object with \w+, got .text.",
        lambda _, endpoint: endpoint.add_alarms(actions=[ANY]),
    ),
    ("^unit: must be of type Unit", lambda _, endpoint: endpoint.metric_model_latency(unit=ANY)),
    (
        r"^at_max_capacity_for: must be of type Duration, got .text.",
        lambda _, endpoint: endpoint.add_alarms(at_max_capacity_for=ANY),
    ),
    (
        r"^plan: must be an object with \w+, got .text.",
        lambda _, endpoint: endpoint.apply_plan(ANY),
    ),
]


@pytest.mark.parametrize(("message", "make"), WRONG, ids=[message[1:16] for message, _ in WRONG])
def test_string_in_place_of_a_construct_is_refused(
    endpoint: TritonEndpoint, message: str, make: Callable[[cdk.Stack, TritonEndpoint], object]
) -> None:
    """A name or an ARN in place of a construct raises an error that shows how to import it."""
    with pytest.raises(InvalidValueError, match=message):
        make(endpoint.stack, endpoint)
