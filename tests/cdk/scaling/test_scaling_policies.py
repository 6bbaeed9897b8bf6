"""Each type of scaling policy, on a variant of an imported endpoint."""

from __future__ import annotations

from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_applicationautoscaling as appscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk.assertions import Annotations, Match
from cdk_apps import only, resources, synthesize

from constructs_triton import (
    InstanceType,
    TritonEndpoint,
    TritonMultiModelEndpoint,
    TritonScalableInstanceCount,
)
from constructs_triton.cdk.metrics.metrics import variant_metric
from constructs_triton.cdk.scaling.scalable_instance_count import tracked_metrics
from constructs_triton_core.errors import InvalidValueError

NAMES: Any = {"endpoint_name": "bert", "variant_name": "blue"}
DIMENSIONS = [{"Name": "EndpointName", "Value": "bert"}, {"Name": "VariantName", "Value": "blue"}]
POLICY = "AWS::ApplicationAutoScaling::ScalingPolicy"
TARGET = "AWS::ApplicationAutoScaling::ScalableTarget"


def make_count(
    stack: cdk.Stack, instance_type: str = "ml.g5.xlarge", id: str = "Count", **props: Any
) -> TritonScalableInstanceCount:
    """Let the variant ``blue`` of the endpoint ``bert`` have 1 to 5 instances."""
    options = {"min_capacity": 1, "max_capacity": 5, **NAMES, **props}
    return TritonScalableInstanceCount(
        stack, id, instance_type=InstanceType.of(instance_type), **options
    )


def tracking(stack: cdk.Stack) -> dict[str, Any]:
    """Return the configuration of the stack's only target tracking policy."""
    policies = [policy["Properties"] for policy in resources(synthesize(stack), POLICY).values()]
    (found,) = (policy for policy in policies if policy["PolicyType"] == "TargetTrackingScaling")
    configuration: dict[str, Any] = found["TargetTrackingScalingPolicyConfiguration"]
    return configuration


def customized(metric_name: str, namespace: str, **others: str) -> dict[str, Any]:
    """Return the specification of a metric of the variant."""
    return {"MetricName": metric_name, "Namespace": namespace, "Dimensions": DIMENSIONS, **others}


@pytest.mark.parametrize(("instance_type", "gpus"), [("ml.g5.xlarge", 1), ("ml.p4d.24xlarge", 8)])
@pytest.mark.parametrize("method", ["scale_on_gpu_utilization", "scale_on_gpu_memory_utilization"])
def test_gpu_targets_count_the_gpus(
    stack: cdk.Stack, instance_type: str, gpus: int, method: str
) -> None:
    """The maximum of both metrics is 100 times the GPUs: 70 percent of eight GPUs is 560."""
    getattr(make_count(stack, instance_type), method)("Gpu", target_utilization_percent=70)
    assert tracking(stack)["TargetValue"] == 70 * gpus


def test_unknown_type_needs_vcpu_count(stack: cdk.Stack) -> None:
    """An instance type newer than the table is accepted with its number of vCPUs."""
    count = make_count(stack, "ml.c99.large")
    with pytest.raises(
        InvalidValueError, match=r"vcpu_count: the instance type must be known for the"
    ):
        count.scale_on_cpu_utilization("Cpu")
    count.scale_on_cpu_utilization("Cpu", vcpu_count=2)
    assert tracking(stack)["TargetValue"] == 120


@pytest.mark.parametrize("endpoint", [TritonEndpoint, TritonMultiModelEndpoint])
def test_concurrent_requests_of_many_models_are_a_warning(stack: cdk.Stack, endpoint: Any) -> None:
    """AWS does not say that multi-model endpoints publish it,
    and a policy without data does nothing.
    """
    variants = {"AllTraffic": InstanceType.of("ml.g5.xlarge")}
    imported = endpoint.from_endpoint_attributes(
        stack, "Known", endpoint_name="known", variants=variants
    )
    count = imported.auto_scale_instance_count(min_capacity=1, max_capacity=2)

    count.scale_on_concurrent_requests("Streams", target_concurrent_requests=5)

    found = Annotations.from_stack(stack).find_warning("*", Match.any_value())
    codes = [warning.entry.data.rpartition("[ack: ")[2].rstrip("]") for warning in found]
    if endpoint is TritonEndpoint:
        assert codes == []
    else:
        assert codes == ["constructs-triton:concurrency-of-many-models"]


def test_model_latency_is_in_microseconds(stack: cdk.Stack) -> None:
    """A duration is converted to the unit that SageMaker publishes."""
    make_count(stack).scale_on_model_latency("Latency", target_latency=cdk.Duration.millis(250))
    assert tracking(stack) == {
        "TargetValue": 250_000,
        "CustomizedMetricSpecification": customized(
            "ModelLatency", "AWS/SageMaker", Statistic="Average", Unit="Microseconds"
        ),
    }


def test_metric_math_is_tracked(stack: cdk.Stack) -> None:
    """Metric math, nested too, becomes queries, of which the outermost expression is tracked."""
    busy = variant_metric("GPUUtilization", **NAMES).to_cdk()
    invocations = variant_metric("Invocations", **NAMES).to_cdk()
    inner = cloudwatch.MathExpression(expression="busy / 4", using_metrics={"busy": busy})
    outer = cloudwatch.MathExpression(
        expression="IF(calls > 10, each, 0)", using_metrics={"each": inner, "calls": invocations}
    )

    make_count(stack).scale_to_track_metric("Custom", metric=outer, target_value=55)

    configuration = tracking(stack)
    assert configuration["TargetValue"] == 55
    specification = configuration["CustomizedMetricSpecification"]
    queries = {query["Id"]: query for query in specification["Metrics"]}
    assert {name: query.get("Expression") for name, query in queries.items()} == {
        "busy": None,
        "each": "busy / 4",
        "calls": None,
        "result": "IF(calls > 10, each, 0)",
    }
    assert [name for name, query in queries.items() if query["ReturnData"]] == ["result"]
    assert queries["busy"]["MetricStat"]["Metric"]["Namespace"] == "/aws/sagemaker/Endpoints"


def test_two_metrics_with_one_id_are_refused(stack: cdk.Stack) -> None:
    """With two metrics of one ID, the policy would track the wrong metric."""
    calls = variant_metric("Invocations", **NAMES).to_cdk()
    expression = cloudwatch.MathExpression(expression="result / 4", using_metrics={"result": calls})
    with pytest.raises(
        InvalidValueError, match='two metrics of the expression have the id "result"'
    ):
        make_count(stack).scale_to_track_metric("Custom", metric=expression, target_value=55)


def test_backlog_of_a_running_fleet_needs_no_alarm(stack: cdk.Stack) -> None:
    """The alarm that starts the first instance is for a minimum of zero only."""
    count = make_count(stack, is_asynchronous=True)
    count.scale_on_backlog("Backlog", target_backlog_per_instance=5)
    assert tracking(stack)["TargetValue"] == 5
    assert not resources(synthesize(stack), "AWS::CloudWatch::Alarm")


def test_asynchronous_endpoints_do_not_publish_invocations(stack: cdk.Stack) -> None:
    """A policy on an unpublished metric raises an error that names the right method."""
    count = make_count(stack, is_asynchronous=True)
    with pytest.raises(
        InvalidValueError,
        match=r"InvocationsPerInstance: an asynchronous .*use scale_on_backlog",
    ):
        count.scale_on_invocations_per_instance("Calls", target_invocations_per_minute=100)
    with pytest.raises(
        InvalidValueError, match="ConcurrentRequestsPerModel: an asynchronous endpoint"
    ):
        count.scale_on_concurrent_requests("Busy", target_concurrent_requests=5)


def test_real_time_endpoints_have_no_backlog(stack: cdk.Stack) -> None:
    """A backlog policy on a real-time endpoint would never act."""
    with pytest.raises(InvalidValueError, match="a real-time endpoint does not publish"):
        make_count(stack).scale_on_backlog("Backlog", target_backlog_per_instance=5)


def test_zero_instances_need_an_asynchronous_endpoint(stack: cdk.Stack) -> None:
    """The message has both fixes, and nothing is added to the tree."""
    with pytest.raises(InvalidValueError, match="got 0; raise it to 1, or set async_inference"):
        make_count(stack, min_capacity=0)
    make_count(stack, min_capacity=0, is_asynchronous=True)


def test_schedule_changes_the_bounds(stack: cdk.Stack) -> None:
    """Each schedule becomes a scheduled action of the target, with its time zone."""
    count = make_count(stack)
    hours = appscaling.Schedule.cron(hour="8", minute="0")
    count.scale_on_schedule(
        "Morning", schedule=hours, min_capacity=3, time_zone=cdk.TimeZone.EUROPE_BERLIN
    )
    count.scale_on_schedule(
        "Evening", schedule=appscaling.Schedule.expression("cron(0 20 * * ? *)"), min_capacity=1
    )
    assert only(synthesize(stack), TARGET)["ScheduledActions"] == [
        {
            "ScheduledActionName": "Morning",
            "Schedule": "cron(0 8 * * ? *)",
            "Timezone": "Europe/Berlin",
            "ScalableTargetAction": {"MinCapacity": 3},
        },
        {
            "ScheduledActionName": "Evening",
            "Schedule": "cron(0 20 * * ? *)",
            "ScalableTargetAction": {"MinCapacity": 1},
        },
    ]


@pytest.mark.parametrize(
    ("id", "bounds", "message"),
    [
        ("Night", {}, "Night: the schedule changes nothing; set min_capacity"),
        ("Night", {"min_capacity": 0}, "min_capacity: must be at least 1"),
        (
            "Night",
            {"min_capacity": 3, "max_capacity": 2},
            "must not be above max_capacity 2, got 3",
        ),
        ("Night: off", {"min_capacity": 1}, "cannot contain"),
    ],
)
def test_schedule_is_refused(
    stack: cdk.Stack, id: str, bounds: dict[str, Any], message: str
) -> None:
    """A schedule needs a bound, within those of the endpoint,
    and a name that the service accepts.
    """
    count = make_count(stack)
    with pytest.raises(InvalidValueError, match=message):
        count.scale_on_schedule(
            id, schedule=appscaling.Schedule.expression("rate(1 day)"), **bounds
        )


def test_steps_on_any_metric(stack: cdk.Stack) -> None:
    """Steps in both directions become two step policies, each with an alarm."""
    steps = [
        appscaling.ScalingInterval(upper=10, change=-1),
        appscaling.ScalingInterval(lower=100, change=+2),
    ]
    count = make_count(stack)
    metric = variant_metric("Invocations", **NAMES).to_cdk()

    count.scale_on_metric("Steps", metric=metric, scaling_steps=steps)

    template = synthesize(stack)
    policies = resources(template, POLICY).values()
    types = [policy["Properties"]["PolicyType"] for policy in policies]
    assert types == ["StepScaling", "StepScaling"]
    alarms = resources(template, "AWS::CloudWatch::Alarm").values()
    assert sorted(alarm["Properties"]["Threshold"] for alarm in alarms) == [10, 100]

    with pytest.raises(InvalidValueError, match="scaling_steps: must have at least 2 steps, got 1"):
        count.scale_on_metric("One", metric=metric, scaling_steps=steps[:1])


@pytest.mark.parametrize(
    ("step", "missing", "is_first"),
    [
        ({"lower": 10, "change": 1}, {"upper": 10, "change": 0}, True),
        ({"upper": 10, "change": -1}, {"lower": 10, "change": 0}, False),
    ],
)
def test_hint_for_a_single_step_can_be_followed(
    stack: cdk.Stack, step: dict[str, float], missing: dict[str, float], is_first: bool
) -> None:
    """The CDK requires ascending bounds, so the hint names the step and its place."""
    count = make_count(stack)
    metric = variant_metric("Invocations", **NAMES).to_cdk()
    given = appscaling.ScalingInterval(**step)
    bound = next(f"{name}={value}" for name, value in missing.items() if name != "change")
    where = "before" if is_first else "after"

    message = rf"such as ScalingInterval\({bound}, change=0\) {where} the others$"
    with pytest.raises(InvalidValueError, match=message):
        count.scale_on_metric("Steps", metric=metric, scaling_steps=[given])

    added = appscaling.ScalingInterval(**missing)
    steps = [added, given] if is_first else [given, added]
    count.scale_on_metric("Steps", metric=metric, scaling_steps=steps)

    with pytest.raises(InvalidValueError, match=r"such as ScalingInterval\(upper=10, change=0\)$"):
        count.scale_on_metric("None", metric=metric, scaling_steps=[])


def test_options_of_a_policy(stack: cdk.Stack) -> None:
    """Cooldowns, scale-in and the name are in the policy, in its short and its long form."""
    options: dict[str, Any] = {
        "scale_in_cooldown": cdk.Duration.minutes(2),
        "scale_out_cooldown": cdk.Duration.seconds(30),
        "disable_scale_in": True,
    }
    count = make_count(stack)
    count.scale_on_gpu_utilization("Gpu", policy_name="gpu", **options)
    count.scale_on_concurrent_requests(
        "Busy", target_concurrent_requests=5, policy_name="busy", **options
    )

    policies = [policy["Properties"] for policy in resources(synthesize(stack), POLICY).values()]
    assert {policy["PolicyName"] for policy in policies} == {"gpu", "busy"}
    for policy in policies:
        configuration = policy["TargetTrackingScalingPolicyConfiguration"]
        assert configuration["DisableScaleIn"] is True
        assert (configuration["ScaleInCooldown"], configuration["ScaleOutCooldown"]) == (120, 30)


def test_policy_name_is_checked(stack: cdk.Stack) -> None:
    """A name that the service rejects raises an error, and adds no policy."""
    count = make_count(stack)
    with pytest.raises(InvalidValueError, match=r"Gpu\.policy_name: must have 1 to 256 characters"):
        count.scale_on_gpu_utilization("Gpu", policy_name="x" * 300)
    count.scale_on_gpu_utilization("Gpu")


def test_two_policies_on_one_metric_are_refused(stack: cdk.Stack) -> None:
    """The service accepts only one target tracking policy for a metric."""
    count = make_count(stack)
    count.scale_on_gpu_utilization("First")
    with pytest.raises(
        InvalidValueError, match='Second: policy "First" already tracks metric GPUUtilization'
    ):
        count.scale_on_gpu_utilization("Second", target_utilization_percent=80)
    same = variant_metric("GPUUtilization", **NAMES, statistic="Maximum").to_cdk()
    with pytest.raises(InvalidValueError, match="already tracks metric"):
        count.scale_to_track_metric("Third", metric=same, target_value=80)
    other = variant_metric("GPUUtilization", endpoint_name="bert", variant_name="green").to_cdk()
    count.scale_to_track_metric("Fourth", metric=other, target_value=80)
    assert [tracked.policy_id for tracked in tracked_metrics(count)] == ["First", "Fourth"]


def test_order_of_an_expressions_metrics_makes_no_other_metric(stack: cdk.Stack) -> None:
    """An expression over the same metrics in another order is the same metric."""
    count = make_count(stack)
    gpu = variant_metric("GPUUtilization", **NAMES, statistic="Maximum").to_cdk()
    cpu = variant_metric("CPUUtilization", **NAMES, statistic="Maximum").to_cdk()
    first = cloudwatch.MathExpression(expression="MAX([a, b])", using_metrics={"a": gpu, "b": cpu})
    second = cloudwatch.MathExpression(expression="MAX([a, b])", using_metrics={"b": cpu, "a": gpu})

    count.scale_to_track_metric("First", metric=first, target_value=60)
    with pytest.raises(InvalidValueError, match="already tracks metric"):
        count.scale_to_track_metric("Second", metric=second, target_value=80)


def test_tracked_metrics_have_their_range(stack: cdk.Stack) -> None:
    """A tracked metric has its target and its number of units, such as GPUs."""
    count = make_count(stack, "ml.g5.12xlarge")
    count.scale_on_gpu_utilization("Gpu")
    (tracked,) = tracked_metrics(count)
    assert (tracked.metric_name, tracked.target_value, tracked.units) == ("GPUUtilization", 240, 4)


def test_suspension(stack: cdk.Stack) -> None:
    """Scaling in can be suspended alone, for example for a load test."""
    make_count(stack).suspend(dynamic_scaling_out=False, scheduled_scaling=False)
    assert only(synthesize(stack), TARGET)["SuspendedState"] == {
        "DynamicScalingInSuspended": True,
        "DynamicScalingOutSuspended": False,
        "ScheduledScalingSuspended": False,
    }


def test_capacity_known_at_deployment(stack: cdk.Stack) -> None:
    """With a minimum that is a token, the policy that scales out from zero is added."""
    least = cdk.CfnParameter(stack, "Least", type="Number").value_as_number
    count = make_count(stack, min_capacity=least, is_asynchronous=True)
    count.scale_on_backlog("Backlog", target_backlog_per_instance=5)
    template = synthesize(stack)
    assert only(template, TARGET)["MinCapacity"] == {"Ref": "Least"}
    assert len(resources(template, POLICY)) == 2
