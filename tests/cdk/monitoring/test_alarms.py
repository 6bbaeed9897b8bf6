"""The alarms of an endpoint."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns
from cdk_apps import (
    ENVIRONMENT,
    add_endpoint,
    flat,
    import_endpoint,
    make_app,
    only,
    resources,
    synthesize,
)

from constructs_triton import InstanceType, TritonAlarms, TritonMultiModelEndpoint
from constructs_triton_core.errors import InvalidValueError

ALARM = "AWS::CloudWatch::Alarm"
GPU = InstanceType.of("ml.g5.12xlarge")


imported = partial(import_endpoint, variants={"blue": GPU})


def rendered(alarms: TritonAlarms) -> dict[str, dict[str, Any]]:
    """Return the properties of each alarm by its name in the set."""
    stack = cdk.Stack.of(alarms)
    template = resources(synthesize(stack), ALARM)
    found = {}
    for name, alarm in alarms.alarms.items():
        resource = alarm.node.default_child
        assert isinstance(resource, cloudwatch.CfnAlarm)
        found[name] = template[stack.resolve(resource.logical_id)]["Properties"]
    return found


def test_alarms_of_a_real_time_endpoint(stack: cdk.Stack) -> None:
    """The default alarms have the expected metrics, thresholds and periods."""
    endpoint = imported(stack)
    endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=4)
    found = rendered(endpoint.add_alarms(model_latency_objective=cdk.Duration.millis(250)))
    assert {
        name: (
            each.get("MetricName"),
            each.get("Statistic", each.get("ExtendedStatistic")),
            each["Threshold"],
        )
        for name, each in found.items()
    } == {
        "blueServerErrors": ("Invocation5XXErrors", "Average", 0.01),
        "blueModelErrors": ("InvocationModelErrors", "Average", 0.01),
        "blueModelLatency": ("ModelLatency", "p99", 250_000),
        "blueGpuMemory": (
            "GPUMemoryUtilization",
            "Maximum",
            360,
        ),  # 90 percent of each of four GPUs
        "blueDisk": ("DiskUtilization", "Maximum", 85),
        "blueAtMaxCapacity": (None, None, 4),
        "blueNoInvocations": ("Invocations", "Sum", 1),
    }
    next_step = ". Find the cause: constructs-triton diagnose bert"  # an email shows no more
    assert all(next_step in each["AlarmDescription"] for each in found.values())


def test_multi_model_endpoints_have_two_more_alarms(stack: cdk.Stack) -> None:
    """They watch for models that are unloaded too often,
    and for requests that wait for their model.
    """
    found = rendered(imported(stack, TritonMultiModelEndpoint).add_alarms())
    hit, wait = found["blueModelCacheHit"], found["blueModelLoadingWait"]
    assert (hit["MetricName"], hit["ComparisonOperator"], hit["Threshold"]) == (
        "ModelCacheHit",
        "LessThanThreshold",
        0.8,
    )
    assert (wait["MetricName"], wait["Threshold"]) == ("ModelLoadingWaitTime", 10_000_000)


@pytest.mark.parametrize(
    ("minutes", "period", "periods"),
    [
        (14, 60, 14),
        (15, 300, 3),
        (23 * 60, 300, 276),
        (24 * 60, 3600, 24),
    ],
)
def test_period_follows_the_window(
    stack: cdk.Stack, minutes: int, period: int, periods: int
) -> None:
    """The period of a window is 1 minute, from 15 minutes on 5 minutes,
    and from a day on an hour.
    """
    window = cdk.Duration.minutes(minutes)
    found = rendered(imported(stack).add_alarms(no_invocations_for=window))["blueNoInvocations"]
    assert (found["Period"], found["EvaluationPeriods"]) == (period, periods)
    assert found["DatapointsToAlarm"] == periods


def test_model_alarms_have_periods_of_five_minutes(stack: cdk.Stack) -> None:
    """The cache and loading alarms have three periods of five minutes; errors have one minute."""
    found = rendered(imported(stack, TritonMultiModelEndpoint).add_alarms())
    for name in ("blueModelCacheHit", "blueModelLoadingWait"):
        assert (found[name]["Period"], found[name]["EvaluationPeriods"]) == (300, 3)
    assert found["blueServerErrors"]["Period"] == 60


def test_asynchronous_endpoints_watch_their_queue(stack: cdk.Stack) -> None:
    """Only metrics that an asynchronous endpoint publishes have alarms; the queue has one."""
    endpoint = imported(stack, is_asynchronous=True, variants={"blue": GPU, "green": GPU})
    found = rendered(endpoint.add_alarms())
    assert [name for name in found if not name.endswith(("GpuMemory", "Disk"))] == [
        "blueServerErrors",
        "greenServerErrors",
        "OldestRequest",
    ]
    assert found["OldestRequest"]["Dimensions"] == [{"Name": "EndpointName", "Value": "bert"}]
    assert found["OldestRequest"]["Threshold"] == 3600


def test_thresholds_can_be_changed(stack: cdk.Stack) -> None:
    """Each threshold can be changed, and ``None`` removes the alarm."""
    alarms = imported(stack).add_alarms(
        error_rate_percent=5,
        gpu_memory_percent=None,
        disk_percent=50,
        no_invocations_for=cdk.Duration.minutes(30),
    )
    found = rendered(alarms)
    assert set(found) == {"blueServerErrors", "blueModelErrors", "blueDisk", "blueNoInvocations"}
    assert found["blueServerErrors"]["Threshold"] == 0.05
    assert found["blueDisk"]["Threshold"] == 50
    idle = found["blueNoInvocations"]
    assert (idle["Period"], idle["EvaluationPeriods"], idle["TreatMissingData"]) == (
        300,
        6,
        "breaching",
    )


@pytest.mark.parametrize(
    ("thresholds", "message"),
    [
        ({"error_rate_percent": 101}, "error_rate_percent: must be from 0 to 100 percent, got 101"),
        ({"disk_percent": -1}, "disk_percent: must be from 0 to 100 percent, got -1"),
        ({"gpu_memory_percent": 200}, "gpu_memory_percent: must be from 0 to 100 percent, got 200"),
        (
            {"no_invocations_for": 8 * 86400},
            "no_invocations_for: must be from 60 to 604800 seconds",
        ),
        ({"model_latency_objective": 0}, "model_latency_objective: must be above 0"),
    ],
)
def test_thresholds_are_checked(
    stack: cdk.Stack, thresholds: dict[str, float], message: str
) -> None:
    """A threshold out of range raises an error before anything is added."""
    endpoint = imported(
        stack, variants={"blue": None}
    )  # an alarm that is left out has a check, too
    given: Any = {
        name: value if name.endswith("percent") else cdk.Duration.seconds(value)
        for name, value in thresholds.items()
    }
    with pytest.raises(InvalidValueError, match=message):
        endpoint.add_alarms(**given)
    endpoint.add_alarms()


def test_unknown_number_of_gpus_has_no_alarm(stack: cdk.Stack) -> None:
    """Without the number of GPUs there is no GPU alarm,
    unless a scaling policy has ``gpu_count``.
    """
    endpoint = imported(stack, variants={"blue": None})
    assert "blueGpuMemory" not in endpoint.add_alarms("Unknown").alarms
    endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=1).scale_on_gpu_utilization(
        "G", gpu_count=2
    )
    assert rendered(endpoint.add_alarms("Known"))["blueGpuMemory"]["Threshold"] == 180


def test_actions_are_attached_to_each(stack: cdk.Stack) -> None:
    """Each alarm has the given actions; more than five raise an error."""
    action = actions.SnsAction(sns.Topic(stack, "Topic"))
    endpoint = imported(stack)
    found = rendered(endpoint.add_alarms(actions=[action]))
    assert {flat(each["AlarmActions"][0]) for each in found.values()} == {"<TopicBFC7AF6E>"}
    with pytest.raises(InvalidValueError, match="actions: must have 0 to 5 actions, got 6"):
        endpoint.add_alarms("Six", actions=[action] * 6)


def test_endpoint_rolls_back_on_its_own_alarms(stack: cdk.Stack, tmp_path: Path) -> None:
    """With ``endpoint_name``, the alarms are created first and the endpoint refers to them."""
    endpoint = add_endpoint(stack, tmp_path, endpoint_name="bert")
    alarms = endpoint.add_alarms(model_latency_objective=cdk.Duration.millis(250))
    endpoint.add_rollback_alarms(*alarms.rollback_alarms)
    template = synthesize(stack)
    deployment = only(template, "AWS::SageMaker::Endpoint")["DeploymentConfig"]
    names = [flat(each["AlarmName"]) for each in deployment["AutoRollbackConfiguration"]["Alarms"]]
    assert len(names) == 3
    for name in names:
        alarm = resources(template, ALARM)[name.strip("<>")]["Properties"]
        assert alarm["Dimensions"][0] == {"Name": "EndpointName", "Value": "bert"}


def test_named_alarms_roll_back_an_endpoint_without_a_name(
    stack: cdk.Stack, tmp_path: Path
) -> None:
    """With ``alarm_name_prefix``, the endpoint is created first and names the alarms."""
    endpoint = add_endpoint(stack, tmp_path)
    alarms = endpoint.add_alarms(alarm_name_prefix="bert")
    endpoint.add_rollback_alarms(*alarms.rollback_alarms)
    deployment = only(synthesize(stack), "AWS::SageMaker::Endpoint")["DeploymentConfig"]
    assert deployment["AutoRollbackConfiguration"]["Alarms"] == [
        {"AlarmName": "bert-AllTrafficServerErrors"},
        {"AlarmName": "bert-AllTrafficModelErrors"},
    ]


def test_rollback_without_any_name_is_refused(stack: cdk.Stack, tmp_path: Path) -> None:
    """Endpoint and alarms would depend on each other; the message has both fixes."""
    alarms = add_endpoint(stack, tmp_path).add_alarms()
    with pytest.raises(
        InvalidValueError, match="would depend on each other; set alarm_name_prefix"
    ):
        _ = alarms.rollback_alarms


def test_prefix_leaves_room_for_the_names(stack: cdk.Stack) -> None:
    """The name of an alarm has at most 255 characters."""
    with pytest.raises(InvalidValueError, match="alarm_name_prefix: must have 1 to 150 characters"):
        imported(stack).add_alarms(alarm_name_prefix="x" * 200)


def test_alarms_in_another_stack(tmp_path: Path) -> None:
    """A monitoring stack imports the endpoint's name from its stack."""
    app = make_app()
    serving, monitoring = (
        cdk.Stack(app, name, env=ENVIRONMENT) for name in ("Serving", "Monitoring")
    )
    endpoint = add_endpoint(serving, tmp_path)
    TritonAlarms(monitoring, "Alarms", endpoint=endpoint)
    found = app.synth().get_stack_artifact(monitoring.artifact_id).template
    alarms = resources(found, ALARM).values()
    assert all("Fn::ImportValue" in str(each["Properties"]["Dimensions"][0]) for each in alarms)


def test_values_known_at_deployment(stack: cdk.Stack) -> None:
    """Bounds and a disk threshold may be parameters; a value that has to be multiplied may not."""
    number = cdk.CfnParameter(stack, "Number", type="Number").value_as_number
    endpoint = imported(stack)
    endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=number)
    found = rendered(endpoint.add_alarms(disk_percent=number))
    assert found["blueDisk"]["Threshold"] == {"Ref": "Number"}
    assert found["blueAtMaxCapacity"]["Threshold"] == {"Ref": "Number"}
    with pytest.raises(InvalidValueError, match="error_rate_percent: has to be multiplied"):
        endpoint.add_alarms("More", error_rate_percent=number)


def test_alarms_are_those_of_the_cdk(stack: cdk.Stack) -> None:
    """What ``add_alarms`` returns takes further actions, and is part of composite alarms."""
    alarms = import_endpoint(stack).add_alarms()
    disk, errors = alarms.alarms["AllTrafficDisk"], alarms.alarms["AllTrafficServerErrors"]
    topic = sns.Topic(stack, "Topic")
    disk.add_alarm_action(actions.SnsAction(topic))
    disk.add_ok_action(actions.SnsAction(topic))
    rule = cloudwatch.AlarmRule.any_of(disk, errors)
    cloudwatch.CompositeAlarm(stack, "Any", alarm_rule=rule)
    properties = rendered(alarms)["AllTrafficDisk"]
    assert properties["AlarmActions"] == properties["OKActions"] == [stack.resolve(topic.topic_arn)]
    composed = only(synthesize(stack), "AWS::CloudWatch::CompositeAlarm")["AlarmRule"]
    assert str(composed).count("Fn::GetAtt") == 2
    assert isinstance(disk.metric, cloudwatch.Metric)
