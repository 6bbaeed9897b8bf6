"""Scaling, metrics, alarms, dashboards, warnings and imports of components."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import aws_cdk as cdk
import pytest
from aws_cdk import Duration, Size
from aws_cdk import aws_applicationautoscaling as appscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk.aws_logs import RetentionDays
from cdk_apps import flat, make_stack, only, resources, statements, synthesize
from component_apps import CPU, G5, add_component, add_endpoint, warnings_of

from constructs_triton import (
    ComponentDeployment,
    IInferenceComponent,
    TritonComponentDashboard,
    TritonComponentEndpoint,
    TritonInferenceComponent,
    TritonModelRepository,
)
from constructs_triton.cdk.scaling.scalable_copy_count import reaches_zero
from constructs_triton_core.errors import InvalidValueError

TARGET = "AWS::ApplicationAutoScaling::ScalableTarget"
POLICY = "AWS::ApplicationAutoScaling::ScalingPolicy"
ALARM = "AWS::CloudWatch::Alarm"
COMPONENT = "AWS::SageMaker::InferenceComponent"


def test_policies_have_the_metrics_of_copies(stack: cdk.Stack, tmp_path: Path) -> None:
    """The predefined metrics are those of components, and the utilization is normalized."""
    component = add_component(add_endpoint(stack), tmp_path)
    count = component.auto_scale_copy_count(min_capacity=1, max_capacity=4)
    count.scale_on_invocations_per_copy("Calls", max_requests_per_second=10)
    count.scale_on_concurrent_requests_per_copy("Requests", target_concurrent_requests=5)
    count.scale_on_gpu_utilization("Gpu")
    own = component.metric_model_latency(statistic="Average")
    count.scale_to_track_metric("Latency", metric=own, target_value=300_000)
    count.scale_on_schedule(
        "Morning", schedule=appscaling.Schedule.cron(hour="7", minute="0"), min_capacity=2
    )

    template = synthesize(stack)

    target = only(template, TARGET)
    assert "RoleARN" not in target
    assert target["ScalableDimension"] == "sagemaker:inference-component:DesiredCopyCount"
    assert target["ScheduledActions"][0]["ScalableTargetAction"] == {"MinCapacity": 2}
    targets = {}
    for policy in resources(template, POLICY).values():
        tracking = policy["Properties"]["TargetTrackingScalingPolicyConfiguration"]
        predefined = tracking.get("PredefinedMetricSpecification", {})
        custom = tracking.get("CustomizedMetricSpecification", {})
        name = predefined.get("PredefinedMetricType") or custom["MetricName"]
        targets[name] = (tracking["TargetValue"], custom.get("Namespace"))
    assert targets == {
        "SageMakerInferenceComponentInvocationsPerCopy": (300, None),
        "SageMakerInferenceComponentConcurrentRequestsPerCopyHighResolution": (5, None),
        "GPUUtilizationNormalized": (60, "/aws/sagemaker/InferenceComponents"),
        "ModelLatency": (300_000, "AWS/SageMaker"),
    }
    assert not resources(template, ALARM)


def wake_up(template: dict[str, Any]) -> dict[str, Any]:
    """The step policy, after a check that the alarm starts it."""
    steps = {
        name: policy["Properties"]["StepScalingPolicyConfiguration"]
        for name, policy in resources(template, POLICY).items()
        if policy["Properties"]["PolicyType"] == "StepScaling"
    }
    ((name, step),) = steps.items()
    alarm = only(template, ALARM)
    assert alarm["AlarmActions"] == [{"Ref": name}]
    assert alarm["MetricName"] == "NoCapacityInvocationFailures"
    assert [dimension["Name"] for dimension in alarm["Dimensions"]] == ["InferenceComponentName"]
    # One failed invocation in one minute is enough.
    assert alarm["Statistic"] == "Sum"
    assert alarm["Period"] == 60
    assert alarm["EvaluationPeriods"] == 1
    assert alarm["DatapointsToAlarm"] == 1
    assert alarm["Threshold"] == 1
    assert alarm["ComparisonOperator"] == "GreaterThanOrEqualToThreshold"
    assert alarm["TreatMissingData"] == "missing"
    return dict(step)


def test_zero_copies_have_a_way_back(tmp_path: Path) -> None:
    """A minimum of 0, also by a schedule, adds the step policy and its alarm once."""
    by_bounds = make_stack()
    component = add_component(add_endpoint(by_bounds), tmp_path)
    count = component.auto_scale_copy_count(min_capacity=0, max_capacity=2)
    assert reaches_zero(count)

    by_schedules = make_stack()
    component = add_component(add_endpoint(by_schedules), tmp_path)
    count = component.auto_scale_copy_count(min_capacity=1, max_capacity=2)
    for name in ("Night", "Weekend"):
        schedule = appscaling.Schedule.cron(hour="20", minute="0")
        count.scale_on_schedule(name, schedule=schedule, min_capacity=0)
    assert reaches_zero(count)

    step = wake_up(synthesize(by_bounds))
    assert step["StepAdjustments"] == [{"MetricIntervalLowerBound": 0, "ScalingAdjustment": 1}]
    assert (step["Cooldown"], step["MetricAggregationType"]) == (60, "Maximum")
    assert wake_up(synthesize(by_schedules)) == step


def test_schedule_can_stop_a_component(stack: cdk.Stack, tmp_path: Path) -> None:
    """With a maximum of 0 no request starts a copy, so no policy is added for that."""
    component = add_component(add_endpoint(stack, min_instance_count=0), tmp_path)
    count = component.auto_scale_copy_count(min_capacity=1, max_capacity=2)
    schedule = appscaling.Schedule.cron(hour="20", minute="0")
    for bounds, said in (
        (
            {"max_capacity": 0},
            "min_capacity: must be 0 with max_capacity 0, got no min_capacity; set it to 0",
        ),
        (
            {"min_capacity": 1, "max_capacity": 0},
            "min_capacity: must be 0 with max_capacity 0, got 1",
        ),
        ({"min_capacity": 0.5}, "min_capacity: must be a whole number of copies"),
    ):
        with pytest.raises(InvalidValueError, match=said):
            count.scale_on_schedule("Night", schedule=schedule, **bounds)

    count.scale_on_schedule("Night", schedule=schedule, min_capacity=0, max_capacity=0)

    template = synthesize(stack)
    [action] = only(template, "AWS::ApplicationAutoScaling::ScalableTarget")["ScheduledActions"]
    assert action["ScalableTargetAction"] == {"MinCapacity": 0, "MaxCapacity": 0}
    assert resources(template, "AWS::ApplicationAutoScaling::ScalingPolicy") == {}
    assert "constructs-triton:component-keeps-instances" not in warnings_of(stack)


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        ((-1, 1), "min_capacity: must be at least 0"),
        ((0, 0), "max_capacity: must be at least 1 copy, got 0"),
        ((3, 2), "min_capacity: must not be above max_capacity 2, got 3"),
        ((0.5, 2), "min_capacity: must be a whole number of copies"),
        ((2, 3), "copy_count: must be within the scaling bounds 2 to 3, got 1"),
    ],
)
def test_bounds_of_copies_are_checked(
    stack: cdk.Stack, tmp_path: Path, bounds: tuple[float, float], said: str
) -> None:
    """Bounds that Application Auto Scaling refuses, or that exclude the
    first copies, are errors.
    """
    least, most = bounds
    component = add_component(add_endpoint(stack), tmp_path)
    with pytest.raises(InvalidValueError, match=said):
        component.auto_scale_copy_count(min_capacity=least, max_capacity=most)
    component.auto_scale_copy_count(min_capacity=1, max_capacity=2)
    with pytest.raises(InvalidValueError, match="add policies to the result of the first call"):
        component.auto_scale_copy_count(min_capacity=1, max_capacity=2)


def test_warnings_are_about_all_components_together(stack: cdk.Stack, tmp_path: Path) -> None:
    """At synthesis the endpoint says what does not fit, and why it never has 0 instances."""
    endpoint = add_endpoint(stack, min_instance_count=0, max_instance_count=1)
    first = add_component(endpoint, tmp_path, "First", number_of_accelerator_devices=2)
    add_component(endpoint, tmp_path, "Second", number_of_accelerator_devices=1)
    first.auto_scale_copy_count(min_capacity=0, max_capacity=4).scale_on_gpu_utilization("Gpu")
    found = warnings_of(stack)
    prefix = "constructs-triton:"
    assert found.keys() == {
        f"{prefix}component-copies-exceed-fleet",
        f"{prefix}component-update-without-room",
        f"{prefix}component-keeps-instances",
        f"{prefix}no-utilization-at-zero",
    }
    table = found[f"{prefix}component-copies-exceed-fleet"]
    assert "need more GPUs" in table
    assert "First" in table.splitlines()[2]
    assert "no room for those of First" in found[f"{prefix}component-update-without-room"]
    assert "because Second always has a copy" in found[f"{prefix}component-keeps-instances"]


def test_update_needs_room_beside_the_copies_of_scaling(tmp_path: Path) -> None:
    """Four GPUs have room for an update of one copy, but not after scaling has added three."""

    def warnings_with(copies: int) -> dict[str, str]:
        stack = make_stack()
        component = add_component(add_endpoint(stack, max_instance_count=1), tmp_path)
        scaling = component.auto_scale_copy_count(min_capacity=1, max_capacity=copies)
        scaling.scale_on_gpu_utilization("Gpu")
        return warnings_of(stack)

    code = "constructs-triton:component-update-without-room"
    assert code not in warnings_with(2)
    text = warnings_with(4)[code]
    assert "when scaling has added its copies there is no room for those of Pipeline" in text


def test_names_of_components_are_compared_without_case(stack: cdk.Stack, tmp_path: Path) -> None:
    """Two components of an account and Region cannot have the same name in another case."""
    endpoint = add_endpoint(stack)
    add_component(endpoint, tmp_path, "First", inference_component_name="digits")
    with pytest.raises(InvalidValueError, match="inference_component_name must be unique"):
        add_component(endpoint, tmp_path, "Second", inference_component_name="DIGITS")


def test_log_group_of_a_component_is_not_created_again(stack: cdk.Stack, tmp_path: Path) -> None:
    """The shared role cannot create the log group of a component that has log_retention."""
    add_component(
        add_endpoint(stack),
        tmp_path,
        inference_component_name="digits",
        log_retention=RetentionDays.ONE_DAY,
    )
    denied = statements(synthesize(stack))["KeepLogGroup"]
    assert (denied["Effect"], denied["Action"]) == ("Deny", "logs:CreateLogGroup")
    assert flat(denied["Resource"][0]).endswith(
        ":log-group:/aws/sagemaker/InferenceComponents/digits"
    )


def test_memory_from_a_quarter_of_the_instance_is_a_warning(tmp_path: Path) -> None:
    """The only published measurement is cited, and less than a quarter is silent."""

    def warnings_with(gibibytes: int) -> dict[str, str]:
        stack = make_stack()
        endpoint = add_endpoint(stack, instance_type=CPU)
        add_component(endpoint, tmp_path, min_memory=Size.gibibytes(gibibytes))
        return warnings_of(stack)

    assert warnings_with(7) == {}
    (text,) = warnings_with(8).values()
    assert "8192 MiB of the 32768 MiB of ml.c5.4xlarge" in text
    assert "accepted 1024 MiB of 16 GiB for a component and refused 4096 MiB" in text


@pytest.mark.parametrize(
    ("region", "least", "expected"),
    [
        ("eu-west-1", 0, set()),
        ("eu-west-3", 1, {"component-region"}),
        ("eu-west-3", 0, {"component-region", "component-region-without-zero"}),
    ],
)
def test_regions_without_components_are_a_warning(
    region: str, least: int, expected: set[str]
) -> None:
    """CloudFormation has components in some Regions, and one is known to refuse 0 instances."""
    stack = make_stack(cdk.Environment(account="123456789012", region=region))
    add_endpoint(stack, min_instance_count=least)
    assert {code.removeprefix("constructs-triton:") for code in warnings_of(stack)} == expected


def test_fixed_name_is_a_warning(stack: cdk.Stack, tmp_path: Path) -> None:
    """A component with a fixed name cannot be replaced while the old one exists."""
    endpoint = add_endpoint(stack)
    component = add_component(endpoint, tmp_path, inference_component_name="fixed")
    token = cdk.CfnParameter(stack, "Name").value_as_string
    add_component(endpoint, tmp_path, "Token", inference_component_name=token)
    found = warnings_of(stack)
    assert found.keys() == {"constructs-triton:component-name-fixed"}
    assert "Token[" not in str(found)
    assert stack.resolve(component.metric_invocations().dimensions) == {
        "InferenceComponentName": "fixed"
    }
    assert "fixed" not in stack.resolve(component.inference_component_name)


def test_alarms_and_dashboard_are_about_the_component(stack: cdk.Stack, tmp_path: Path) -> None:
    """Each has the component as its only dimension; alarms roll an update back by their names."""
    endpoint = add_endpoint(stack)
    component = add_component(endpoint, tmp_path)
    on_cpu = add_component(endpoint, tmp_path, "Cpu", number_of_accelerator_devices=0)
    component.auto_scale_copy_count(min_capacity=1, max_capacity=3)
    topic = actions.SnsAction(sns.Topic(stack, "Topic"))
    alarms = component.add_alarms(
        actions=[topic], alarm_name_prefix="pipeline", model_latency_objective=Duration.millis(200)
    )
    assert set(alarms.alarms) == {
        "ServerErrors",
        "ModelErrors",
        "ModelLatency",
        "GpuMemory",
        "NoCapacity",
    }
    assert set(on_cpu.add_alarms(no_capacity_minutes=None).alarms) == {
        "ServerErrors",
        "ModelErrors",
    }
    component.add_rollback_alarms(*alarms.rollback_alarms)
    component.add_dashboard()
    TritonComponentDashboard(stack, "Both", components=[component, on_cpu])

    template = synthesize(stack)

    for alarm in resources(template, ALARM).values():
        properties = alarm["Properties"]
        (dimension,) = properties["Dimensions"]
        assert dimension["Name"] == "InferenceComponentName"
        assert ". Inference component: " in flat(properties["AlarmDescription"])

    assert rollback_alarms(template, "Pipe") == [
        "pipeline-ServerErrors",
        "pipeline-ModelErrors",
        "pipeline-ModelLatency",
    ]
    assert len(statements(template)["ReadAlarms"]["Resource"]) == 3

    for dashboard in resources(template, "AWS::CloudWatch::Dashboard").values():
        body = flat(dashboard["Properties"]["DashboardBody"])
        assert "InvocationsPerCopy" in body
        assert "GPUMemoryUtilizationNormalized" in body

    with pytest.raises(InvalidValueError, match="at least one component"):
        TritonComponentDashboard(stack, "None", components=[])


def rollback_alarms(template: dict[str, Any], name: str) -> list[str]:
    """The names of the rollback alarms of the component whose logical ID begins with ``name``."""
    components = resources(template, COMPONENT).items()
    (component,) = (found for logical_id, found in components if logical_id.startswith(name))
    deployment = component["Properties"]["DeploymentConfig"]
    return [alarm["AlarmName"] for alarm in deployment["AutoRollbackConfiguration"]["Alarms"]]


def test_every_metric_has_the_namespace_of_its_documentation(
    stack: cdk.Stack, tmp_path: Path
) -> None:
    """Invocations are in AWS/SageMaker, and utilizations in the namespace of components."""
    component = add_component(add_endpoint(stack), tmp_path)
    names = {name for name in dir(component) if name.startswith("metric_")}
    for name in names - {"metric_copy_count"}:
        metric = getattr(component, name)()
        is_utilization = name.endswith("utilization")
        expected = "/aws/sagemaker/InferenceComponents" if is_utilization else "AWS/SageMaker"
        assert metric.namespace == expected, name
    assert component.metric_model_latency().statistic == "p99"
    assert "total / share" in component.metric_copy_count().expression


def test_imported_component_has_grants_metrics_and_scaling(stack: cdk.Stack) -> None:
    """A component that exists already can be called, watched and scaled."""
    endpoint = TritonComponentEndpoint.from_endpoint_name(stack, "Shared", "shared")
    arn = "arn:aws:sagemaker:eu-west-1:123456789012:inference-component/digits"
    component = TritonInferenceComponent.from_inference_component_arn(
        stack, "Digits", arn, endpoint=endpoint
    )
    named = TritonInferenceComponent.from_inference_component_name(
        stack, "Other", "other", endpoint=endpoint
    )
    role = iam.Role(stack, "Caller", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    component.grant_invoke(role)
    component.auto_scale_copy_count(min_capacity=0, max_capacity=2)
    component.add_alarms()
    component.add_dashboard()
    assert isinstance(component, IInferenceComponent)
    assert component.log_group_name == "/aws/sagemaker/InferenceComponents/digits"
    assert flat(stack.resolve(named.inference_component_arn)).endswith(":inference-component/other")
    template = synthesize(stack)
    assert only(template, TARGET)["ResourceId"] == "inference-component/digits"
    (granted,) = only(template, "AWS::IAM::Policy")["PolicyDocument"]["Statement"]
    assert arn in granted["Resource"]
    with pytest.raises(InvalidValueError, match="must be the ARN of an inference component"):
        TritonInferenceComponent.from_inference_component_arn(
            stack, "Wrong", "arn:aws:sagemaker:eu-west-1:123456789012:endpoint/x", endpoint=endpoint
        )


def test_components_are_added_to_an_imported_endpoint(stack: cdk.Stack, tmp_path: Path) -> None:
    """With instance type and role it takes components; without them the error says what to set."""
    role = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("sagemaker.amazonaws.com"))
    arn = "arn:aws:sagemaker:eu-west-1:123456789012:endpoint/shared"
    imported = TritonComponentEndpoint.from_endpoint_attributes
    by_arn: dict[str, Any] = {"endpoint_arn": arn, "instance_type": G5, "role": role}
    with pytest.raises(InvalidValueError, match="needs the name of the endpoint"):
        add_component(imported(stack, "Nameless", **by_arn), tmp_path, "Refused")
    assert stack.node.try_find_child("Refused") is None
    endpoint = imported(stack, "Shared", endpoint_name="shared", **by_arn)
    add_component(endpoint, tmp_path, "First")
    add_component(endpoint, tmp_path, "Second")
    template = synthesize(stack)
    components = resources(template, COMPONENT).values()
    assert {component["Properties"]["EndpointName"] for component in components} == {"shared"}
    assert len(resources(template, "AWS::IAM::ManagedPolicy")) == 1

    for instance_type, said in ((None, "set instance_type in"), (G5, "set role in")):
        known = imported(stack, said, endpoint_name="shared", instance_type=instance_type)
        with pytest.raises(InvalidValueError, match=said):
            TritonInferenceComponent(
                stack,
                "None",
                endpoint=known,
                model_repository=cast(TritonModelRepository, stack.node.find_child("Models")),
                ensemble="pipeline",
                min_memory=Size.gibibytes(1),
                number_of_accelerator_devices=1,
            )


def test_update_alarms_of_a_composite_need_every_alarm(stack: cdk.Stack, tmp_path: Path) -> None:
    """DescribeAlarms of a composite alarm supports no narrower resource."""
    part = cloudwatch.Alarm.from_alarm_name(stack, "Part", "part")
    composite = cloudwatch.CompositeAlarm(
        stack,
        "Any",
        alarm_rule=cloudwatch.AlarmRule.from_alarm(part, cloudwatch.AlarmState.ALARM),
        composite_alarm_name="any",
    )
    add_component(
        add_endpoint(stack), tmp_path, deployment=ComponentDeployment.rolling(alarms=[composite])
    )
    template = synthesize(stack)
    assert statements(template)["ReadAlarms"]["Resource"] == "*"
    found = only(template, COMPONENT)["DeploymentConfig"]["AutoRollbackConfiguration"]
    assert json.dumps(found) == '{"Alarms": [{"AlarmName": "any"}]}'
