"""``scale_out_on_queue_time``: a policy that only adds instances, on Triton's own metrics."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_applicationautoscaling as appscaling
from aws_cdk.assertions import Annotations, Match
from cdk_apps import add_endpoint, add_ensemble, make_stack, resources, synthesize, write_model

from constructs_triton import InstanceType, TritonScalableInstanceCount
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.planning import Fleet, Traffic, simulate
from constructs_triton_tools.planning.scaling import Scaling, TargetTracking

CPU = InstanceType.of("ml.m5.xlarge")
WAIT = cdk.Duration.millis(20)
POLICY = "AWS::ApplicationAutoScaling::ScalingPolicy"


def scaled(stack: cdk.Stack, path: Path, **props: Any) -> TritonScalableInstanceCount:
    """The scaling of an endpoint that publishes the metrics of Triton, unless ``props`` differ."""
    endpoint = add_ensemble(
        stack, path, **{"instance_type": CPU, "container_metrics": True, **props}
    )
    return endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=20)


def configuration(stack: cdk.Stack) -> dict[str, Any]:
    """The configuration of the only target tracking policy."""
    policies = [policy["Properties"] for policy in resources(synthesize(stack), POLICY).values()]
    name = "TargetTrackingScalingPolicyConfiguration"
    (found,) = (policy[name] for policy in policies if name in policy)
    return dict(found)


def warnings(stack: cdk.Stack) -> list[str]:
    """The warnings about scaling on queue time."""
    found = Annotations.from_stack(stack).find_warning("*", Match.any_value())
    return [warning.entry.data for warning in found if "queue-time" in warning.entry.data]


def test_policy_only_adds_instances_and_at_most_doubles_them(stack: cdk.Stack, path: Path) -> None:
    """Scale-in is off, and the metric is a quotient of sums that counts as
    at most twice the target.
    """
    policy = scaled(stack, path).scale_out_on_queue_time(
        "Queue", model="scale", target_queue_time=WAIT, scale_out_cooldown=cdk.Duration.seconds(60)
    )
    assert isinstance(policy, appscaling.TargetTrackingScalingPolicy)

    found = configuration(stack)
    assert found["TargetValue"] == 20_000
    assert found["DisableScaleIn"] is True
    assert found["ScaleOutCooldown"] == 60

    queue_time, requests, result = found["CustomizedMetricSpecification"]["Metrics"]
    assert result["Expression"] == (
        "IF(queuetime1 > 40000 * requests1, 40000, IF(requests1 > 0, queuetime1 / requests1, 0))"
    )
    assert queue_time["Id"] == "queuetime1"
    assert queue_time["MetricStat"]["Stat"] == "Sum"
    assert queue_time["MetricStat"]["Metric"]["MetricName"] == "QueueTime"
    assert requests["Id"] == "requests1"
    assert requests["MetricStat"]["Stat"] == "Sum"
    assert requests["MetricStat"]["Metric"]["MetricName"] == "Requests"
    rendered = queue_time["MetricStat"]["Metric"]["Dimensions"]
    dimensions = {dimension["Name"]: dimension["Value"] for dimension in rendered}
    assert dimensions == {"Endpoint": "Test/Endpoint", "Variant": "AllTraffic", "Model": "scale"}


def test_only_model_with_a_queue_is_the_default(stack: cdk.Stack, tmp_path: Path) -> None:
    """An endpoint of one model needs no name."""
    write_model(tmp_path, "m")
    endpoint = add_endpoint(stack, tmp_path, model=None, container_metrics=True)
    count = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=2)
    count.scale_out_on_queue_time("Queue", target_queue_time=WAIT)
    (query, *_) = configuration(stack)["CustomizedMetricSpecification"]["Metrics"]
    assert {"Name": "Model", "Value": "m"} in query["MetricStat"]["Metric"]["Dimensions"]


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            None,
            (
                "model: is required, because several models have a queue; "
                'set it to one of "scale" and "shift"'
            ),
        ),
        (
            "pipeline",
            'but "pipeline" is an ensemble, whose requests wait in its steps; set it to one of',
        ),
        ("scal", r'but "scal" is not in the archive; did you mean "scale"\?'),
    ],
)
def test_model_without_a_queue_is_refused(path: Path, model: str | None, message: str) -> None:
    """Such a policy would never act; the message has the models that can be chosen."""
    count = scaled(make_stack(), path)
    with pytest.raises(InvalidValueError, match=message):
        count.scale_out_on_queue_time("Queue", model=model, target_queue_time=WAIT)


def test_endpoint_without_metrics_of_triton_is_refused(path: Path) -> None:
    """Nothing would publish the queue time."""
    count = scaled(make_stack(), path, container_metrics=False)
    with pytest.raises(
        InvalidValueError, match=r"Queue: the variant does not .* container_metrics=True"
    ):
        count.scale_out_on_queue_time("Queue", model="scale", target_queue_time=WAIT)
    assert len(count.node.find_all()) == len(scaled(make_stack(), path).node.find_all())


@pytest.mark.parametrize("other", ["none", "policy", "schedule"])
def test_nothing_that_removes_instances_is_a_warning(
    stack: cdk.Stack, path: Path, other: str
) -> None:
    """A fleet that only grows is expensive, and nothing else shows it."""
    count = scaled(stack, path)
    count.scale_out_on_queue_time("Queue", model="scale", target_queue_time=WAIT)
    if other == "policy":
        count.scale_on_concurrent_requests("Load", target_concurrent_requests=4)
    if other == "schedule":
        night = appscaling.Schedule.cron(hour="20", minute="0")
        count.scale_on_schedule("Night", schedule=night, max_capacity=1)
    synthesize(stack)
    found = warnings(stack)
    if other == "none":
        (text,) = found
        assert "no other policy or schedule removes them" in text
    else:
        assert found == []


def test_guarded_variant_can_have_it(stack: cdk.Stack, path: Path) -> None:
    """The guard registers target tracking policies, and this is one."""
    count = scaled(stack, path, scaling_guard=True)
    count.scale_on_concurrent_requests("Load", target_concurrent_requests=4)
    count.scale_out_on_queue_time("Queue", model="scale", target_queue_time=WAIT)
    assert len(resources(synthesize(stack), "Custom::TritonScalingPolicy")) == 2


def test_simulation_shows_when_the_policy_acts(path: Path) -> None:
    """``simulate`` knows the metric, its delay and its limit:
    instances double after five minutes.
    """
    count = scaled(make_stack(), path)
    count.scale_out_on_queue_time("Queue", model="scale", target_queue_time=WAIT)
    fleet = Fleet(invocations_per_minute=6000, start_minutes=3)
    found = count.simulate(Traffic((1000,) * 5 + (11_000,) * 20), fleet)
    assert found.scaling.policies == (
        TargetTracking(
            target=20_000, metric="QueueTime", disable_scale_in=True, highest_value=40_000
        ),
    )
    # The overload begins in minute 5. Three data points, each two minutes late, are there in minute
    # 9.
    assert [minute.desired for minute in found.minutes] == [1] * 9 + [2] * 8 + [4] * 8


def test_simulated_queue_grows_with_the_load() -> None:
    """Below half of the load the simulated wait is short, near full load long,
    and overload adds to it.
    """
    fleet = Fleet(invocations_per_minute=6000, start_minutes=60)
    policy = TargetTracking(target=20_000, metric="QueueTime", disable_scale_in=True)
    scaling = Scaling(min_capacity=1, max_capacity=5, policies=(policy,))

    def grows(load: int) -> bool:
        minutes = simulate(Traffic((load,) * 10), scaling, fleet).minutes
        return any(minute.desired > 1 for minute in minutes)

    assert not grows(0)
    assert not grows(3000)
    assert not grows(3900)
    assert grows(4200)
    assert grows(5900)
    assert grows(7000)
