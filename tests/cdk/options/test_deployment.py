"""Updates of an endpoint: their strategy, their alarms, and what they preserve."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_cloudwatch as cloudwatch
from cdk_apps import add_endpoint, flat, only, resources, statement_list, synthesize

from constructs_triton import CapacitySize, Deployment, TritonEndpoint, TritonVariant
from constructs_triton_core.errors import InvalidValueError


def endpoint_alarm(
    scope: cdk.Stack, endpoint: TritonEndpoint, name: str | None = "digits-5xx"
) -> cloudwatch.Alarm:
    return endpoint.metric("Invocation5XXErrors").create_alarm(
        scope, "Errors", threshold=1, evaluation_periods=2, alarm_name=name
    )


def deployment_config(template: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = only(template, "AWS::SageMaker::Endpoint")["DeploymentConfig"]
    return result


MINUTES = cdk.Duration.minutes
STRATEGIES: list[tuple[Deployment, dict[str, Any]]] = [
    (
        Deployment.blue_green_canary(
            canary_size=CapacitySize.instances(1), termination_wait=MINUTES(5)
        ),
        {
            "BlueGreenUpdatePolicy": {
                "TrafficRoutingConfiguration": {
                    "Type": "CANARY",
                    "CanarySize": {"Type": "INSTANCE_COUNT", "Value": 1},
                    "WaitIntervalInSeconds": 600,
                },
                "TerminationWaitInSeconds": 300,
            }
        },
    ),
    (
        Deployment.blue_green_linear(
            wait_interval=MINUTES(2), maximum_execution_timeout=MINUTES(60)
        ),
        {
            "BlueGreenUpdatePolicy": {
                "TrafficRoutingConfiguration": {
                    "Type": "LINEAR",
                    "LinearStepSize": {"Type": "CAPACITY_PERCENT", "Value": 25},
                    "WaitIntervalInSeconds": 120,
                },
                "MaximumExecutionTimeoutInSeconds": 3600,
            }
        },
    ),
    (
        Deployment.all_at_once(),
        {
            "BlueGreenUpdatePolicy": {
                "TrafficRoutingConfiguration": {"Type": "ALL_AT_ONCE", "WaitIntervalInSeconds": 0}
            }
        },
    ),
    (
        Deployment.rolling(rollback_maximum_batch_size=CapacitySize.percent(100)),
        {
            "RollingUpdatePolicy": {
                "MaximumBatchSize": {"Type": "CAPACITY_PERCENT", "Value": 25},
                "WaitIntervalInSeconds": 300,
                "RollbackMaximumBatchSize": {"Type": "CAPACITY_PERCENT", "Value": 100},
            }
        },
    ),
]


@pytest.mark.parametrize(
    ("deployment", "expected"), STRATEGIES, ids=["canary", "linear", "at once", "rolling"]
)
def test_strategies(
    stack: cdk.Stack, tmp_path: Path, deployment: Deployment, expected: dict[str, Any]
) -> None:
    """Each class method gives the deployment policy of SageMaker."""
    add_endpoint(stack, tmp_path, deployment=deployment)
    assert deployment_config(synthesize(stack)) == expected


OUT_OF_RANGE: list[tuple[str, Any, str]] = [
    (
        "canary",
        lambda: Deployment.blue_green_canary(canary_size=CapacitySize.percent(51)),
        "from 1 to 50",
    ),
    (
        "step",
        lambda: Deployment.blue_green_linear(step_size=CapacitySize.percent(5)),
        "from 10 to 50",
    ),
    (
        "batch",
        lambda: Deployment.rolling(maximum_batch_size=CapacitySize.percent(51)),
        "from 5 to 50",
    ),
    (
        "no instance",
        lambda: Deployment.rolling(maximum_batch_size=CapacitySize.instances(0)),
        "at least 1",
    ),
    (
        "a number as size",
        lambda: Deployment.blue_green_canary(canary_size=20),  # type: ignore[arg-type]
        r"^deployment.canary_size: must be of type CapacitySize, got 20; "
        r"write CapacitySize.percent\(20\)$",
    ),
    (
        "wait",
        lambda: Deployment.rolling(wait_interval=MINUTES(61)),
        "wait_interval: must be from 0 to 3600",
    ),
    (
        "shorter than its waits",
        lambda: Deployment.blue_green_canary(
            wait_interval=MINUTES(10),
            termination_wait=MINUTES(5),
            maximum_execution_timeout=MINUTES(15),
        ),
        "must be longer than the waits of 900 seconds together, got 900 seconds",
    ),
    (
        "shorter than three waits between four steps",
        lambda: Deployment.blue_green_linear(
            wait_interval=MINUTES(10), maximum_execution_timeout=MINUTES(30)
        ),
        "must be longer than the waits of 1800 seconds together, got 1800 seconds",
    ),
    (
        "nine waits between ten steps",
        lambda: Deployment.blue_green_linear(
            step_size=CapacitySize.percent(10), wait_interval=MINUTES(60)
        ),
        (
            "wait_interval: the 9 waits of this deployment take "
            "32400 seconds together, but must take less"
        ),
    ),
    (
        "nineteen waits between twenty batches",
        lambda: Deployment.rolling(
            maximum_batch_size=CapacitySize.percent(5),
            wait_interval=MINUTES(60),
            maximum_execution_timeout=MINUTES(120),
        ),
        "the 19 waits of this deployment take 68400 seconds together",
    ),
    (
        "termination wait",
        lambda: Deployment.blue_green_linear(
            step_size=CapacitySize.percent(13),
            wait_interval=MINUTES(60),
            termination_wait=MINUTES(60),
        ),
        "take 28800 seconds together",
    ),
]


def test_number_of_waits_is_not_guessed() -> None:
    """Steps in instances, or of unknown size, count as one wait,
    since the fleet's size may change.
    """
    hour, token = MINUTES(60), cdk.Token.as_number({"Ref": "Size"})
    for size in (CapacitySize.instances(1), CapacitySize.percent(token)):
        Deployment.rolling(
            maximum_batch_size=size, wait_interval=hour, maximum_execution_timeout=MINUTES(61)
        )
    Deployment.blue_green_linear(step_size=CapacitySize.percent(13), wait_interval=hour)


@pytest.mark.parametrize(
    ("make", "message"), [row[1:] for row in OUT_OF_RANGE], ids=[row[0] for row in OUT_OF_RANGE]
)
def test_sizes_and_times_out_of_range(make: Any, message: str) -> None:
    """A value that SageMaker rejects during a deployment raises an error at synth."""
    with pytest.raises(InvalidValueError, match=message):
        make()


def test_rolling_is_not_for_several_variants(stack: cdk.Stack, tmp_path: Path) -> None:
    """AWS does not support it, so an error is raised before anything is added."""
    variants = [TritonVariant(variant_name=name) for name in ("a", "b")]
    with pytest.raises(
        InvalidValueError, match="rolling deployments support one variant only, got 2"
    ):
        add_endpoint(stack, tmp_path, variants=variants, deployment=Deployment.rolling())
    assert stack.node.try_find_child("Endpoint") is None


FEW: list[tuple[str, Deployment, float, bool]] = [
    ("one of one", Deployment.blue_green_canary(), 1, True),
    ("ten percent of two", Deployment.blue_green_canary(), 2, False),
    ("two of three", Deployment.rolling(maximum_batch_size=CapacitySize.instances(2)), 3, True),
    ("two of four", Deployment.rolling(maximum_batch_size=CapacitySize.instances(2)), 4, False),
    ("all of one", Deployment.all_at_once(), 1, False),
]


@pytest.mark.parametrize(
    ("deployment", "count", "is_warned"), [row[1:] for row in FEW], ids=[row[0] for row in FEW]
)
def test_steps_need_instances_to_split(
    stack: cdk.Stack, tmp_path: Path, deployment: Deployment, count: float, is_warned: bool
) -> None:
    """A step of more than half of the fleet is a warning; a step of half of it is not."""
    endpoint = add_endpoint(stack, tmp_path, deployment=deployment, initial_instance_count=count)
    warned = [str(each.data) for each in endpoint.node.metadata if each.type == "aws:cdk:warning"]
    assert [("deployment-step-exceeds-fleet" in text) for text in warned] == (
        [True] if is_warned else []
    )


def test_alarm_on_the_endpoint_does_not_make_a_cycle(stack: cdk.Stack, tmp_path: Path) -> None:
    """The alarm refers to the endpoint, and the endpoint contains the alarm's name as a string."""
    endpoint = add_endpoint(stack, tmp_path, deployment=Deployment.blue_green_canary())
    endpoint.add_rollback_alarms(endpoint_alarm(stack, endpoint))
    template = synthesize(stack)
    config = deployment_config(template)
    assert config["AutoRollbackConfiguration"] == {"Alarms": [{"AlarmName": "digits-5xx"}]}
    assert config["BlueGreenUpdatePolicy"]["TrafficRoutingConfiguration"]["Type"] == "CANARY"
    assert depends_on(template, "AWS::CloudWatch::Alarm", "AWS::SageMaker::Endpoint")
    assert not depends_on(template, "AWS::SageMaker::Endpoint", "AWS::CloudWatch::Alarm")
    (seen,) = [
        each for each in statement_list(template) if each["Action"] == "cloudwatch:DescribeAlarms"
    ]
    assert flat(seen["Resource"]) == (
        "arn:<AWS::Partition>:cloudwatch:eu-west-1:123456789012:alarm:digits-5xx"
    )


def test_nameless_alarm_on_the_endpoint_is_refused(stack: cdk.Stack, tmp_path: Path) -> None:
    """CloudFormation rejects the cycle; the error names the alarm that needs a name."""
    endpoint = add_endpoint(stack, tmp_path)
    with pytest.raises(
        InvalidValueError,
        match=r'alarm "Test/Errors" monitors this endpoint, .*; set alarm_name on the alarm',
    ):
        endpoint.add_rollback_alarms(endpoint_alarm(stack, endpoint, name=None))
    assert "DeploymentConfig" not in only(synthesize(stack), "AWS::SageMaker::Endpoint")


def test_alarm_on_another_resource_is_created_first(stack: cdk.Stack, tmp_path: Path) -> None:
    """It needs no name, because the endpoint refers to it."""
    other = cloudwatch.Metric(namespace="Shop", metric_name="Orders").create_alarm(
        stack, "Orders", threshold=1, evaluation_periods=1
    )
    add_endpoint(stack, tmp_path, deployment=Deployment.all_at_once(alarms=[other]))
    template = synthesize(stack)
    assert depends_on(template, "AWS::SageMaker::Endpoint", "AWS::CloudWatch::Alarm")


def test_imported_and_composite_alarms(stack: cdk.Stack, tmp_path: Path) -> None:
    """An imported alarm has a name; a composite alarm may contain the endpoint's
    alarms and needs a name.
    """
    endpoint = add_endpoint(stack, tmp_path)
    imported = cloudwatch.Alarm.from_alarm_arn(
        stack, "Imported", "arn:aws:cloudwatch:eu-west-1:123456789012:alarm:shop"
    )
    rule = cloudwatch.AlarmRule.any_of(endpoint_alarm(stack, endpoint))
    composite = cloudwatch.CompositeAlarm(
        stack, "Both", alarm_rule=rule, composite_alarm_name="both"
    )
    endpoint.add_rollback_alarms(imported, composite)
    config = deployment_config(synthesize(stack))
    names = [each["AlarmName"] for each in config["AutoRollbackConfiguration"]["Alarms"]]
    assert names == ["shop", "both"]
    nameless = cloudwatch.CompositeAlarm(stack, "Nameless", alarm_rule=rule)
    with pytest.raises(InvalidValueError, match="set alarm_name on the alarm"):
        endpoint.add_rollback_alarms(nameless)


def test_at_most_ten_alarms(stack: cdk.Stack, tmp_path: Path) -> None:
    """The limit is for the sum of all calls."""
    endpoint = add_endpoint(stack, tmp_path)
    alarms = [cloudwatch.Alarm.from_alarm_name(stack, f"A{n}", f"alarm-{n}") for n in range(11)]
    endpoint.add_rollback_alarms(*alarms[:10])
    with pytest.raises(InvalidValueError, match="alarms: must be from 1 to 10 alarms, got 11"):
        endpoint.add_rollback_alarms(alarms[10])


def test_destroy_deletes_the_endpoint(stack: cdk.Stack, tmp_path: Path) -> None:
    """``DESTROY`` deletes the endpoint, as is CloudFormation's default."""
    add_endpoint(stack, tmp_path, removal_policy=cdk.RemovalPolicy.DESTROY)
    (endpoint,) = resources(synthesize(stack), "AWS::SageMaker::Endpoint").values()
    assert endpoint["DeletionPolicy"] == "Delete"


def test_endpoint_has_no_snapshots(stack: cdk.Stack, tmp_path: Path) -> None:
    """A removal policy that CloudFormation does not support for endpoints raises an error."""
    with pytest.raises(InvalidValueError, match="got SNAPSHOT; use RETAIN or DESTROY"):
        add_endpoint(stack, tmp_path, removal_policy=cdk.RemovalPolicy.SNAPSHOT)


def depends_on(template: dict[str, Any], resource_type: str, on: str) -> bool:
    """Return whether a resource of one type refers to one of another."""
    names = resources(template, on)
    text = str(list(resources(template, resource_type).values()))
    return any(f"'{name}'" in text for name in names)
