"""``off_switch``: what exists while an endpoint is off, who turns it off, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import botocore.session
import pytest
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_sqs as sqs
from botocore.validate import ParamValidator
from cdk_apps import (
    ENVIRONMENT,
    GPU,
    add_endpoint,
    add_many,
    flat,
    import_endpoint,
    make_app,
    make_stack,
    resources,
    statement_list,
    synthesize,
    write_repository,
)
from constructs import Construct
from template_lint import lint

from constructs_triton import (
    AsyncInferenceConfig,
    Deployment,
    OffSwitch,
    TritonComponentEndpoint,
    TritonEndpoint,
)
from constructs_triton.cli import main
from constructs_triton_core.errors import InvalidValueError

EVENING = scheduler.ScheduleExpression.cron(
    hour="20", minute="0", time_zone=cdk.TimeZone.EUROPE_BERLIN
)
MORNING = scheduler.ScheduleExpression.cron(
    hour="7", minute="0", time_zone=cdk.TimeZone.EUROPE_BERLIN
)


def other_stack(stack: cdk.Stack, id: str) -> cdk.Stack:
    """Add a stack to the app of another stack."""
    app = stack.node.root
    assert isinstance(app, cdk.App)
    return cdk.Stack(app, id, env=ENVIRONMENT)


def add_switched(stack: cdk.Stack, path: Path, **props: Any) -> TritonEndpoint:
    """Add an endpoint ``digits`` with a switch ``Night``."""
    night = OffSwitch(stack, "Night")
    return add_endpoint(stack, path, endpoint_name="digits", off_switch=night, **props)


def switched_types(template: dict[str, Any]) -> list[str]:
    """The types of the resources with the condition of the only switch."""
    (condition,) = template["Conditions"]
    found = template["Resources"].values()
    return sorted(resource["Type"] for resource in found if resource.get("Condition") == condition)


def requests(template: dict[str, Any]) -> list[dict[str, Any]]:
    """The inputs of all schedules: requests to update the stack."""
    schedules = resources(template, "AWS::Scheduler::Schedule").values()
    return [json.loads(schedule["Properties"]["Target"]["Input"]) for schedule in schedules]


def request(template: dict[str, Any], value: str) -> dict[str, Any]:
    """The input of the schedule that sets the only parameter of a switch to a value."""
    (found,) = (
        given for given in requests(template) if given["Parameters"][-1]["ParameterValue"] == value
    )
    return found


# What exists while it is off.


@pytest.mark.xdist_group("examples")  # the process with cfn-lint's schemas, which take seconds
def test_only_what_refers_to_the_endpoint_is_off(stack: cdk.Stack, tmp_path: Path) -> None:
    """Endpoint, scaling, verification and alarms on missing data are off; all
    else is there, and lints.
    """
    endpoint = add_switched(
        stack, tmp_path, verify_update=True, log_retention=cdk.aws_logs.RetentionDays.ONE_DAY
    )
    count = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=4)
    count.scale_on_gpu_utilization("Gpu")
    count.scale_on_schedule(
        "Noon", schedule=cdk.aws_applicationautoscaling.Schedule.cron(hour="12"), min_capacity=2
    )
    endpoint.add_alarms(no_invocations_for=cdk.Duration.hours(2))
    endpoint.add_dashboard()
    endpoint.export_outputs(export_name_prefix="digits")
    template = synthesize(stack)
    assert switched_types(template) == [
        "AWS::ApplicationAutoScaling::ScalableTarget",
        "AWS::ApplicationAutoScaling::ScalingPolicy",
        "AWS::CloudWatch::Alarm",
        "AWS::IAM::Policy",
        "AWS::SageMaker::Endpoint",
        "Custom::TritonUpdateCheck",
    ]
    alarms = resources(template, "AWS::CloudWatch::Alarm").values()
    (alarm,) = (alarm for alarm in alarms if "Condition" in alarm)
    assert alarm["Properties"]["MetricName"] == "Invocations"
    assert lint(template) == []


def test_guarded_endpoint_is_off(stack: cdk.Stack, tmp_path: Path) -> None:
    """Of a scaling guard, what works before the endpoint exists stays."""
    endpoint = add_switched(stack, tmp_path, scaling_guard=True)
    count = endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=4)
    count.scale_on_gpu_utilization("Gpu")
    assert switched_types(synthesize(stack)) == [
        "AWS::IAM::Policy",
        "AWS::SageMaker::Endpoint",
        "Custom::TritonScalableTarget",
        "Custom::TritonScalingPolicy",
    ]


def test_rollback_alarms_stay(stack: cdk.Stack, tmp_path: Path) -> None:
    """The endpoint refers to its rollback alarms, so they exist before it and while it is off."""
    endpoint = add_switched(stack, tmp_path, deployment=Deployment.all_at_once())
    alarm = endpoint.metric_invocation_5xx_errors().create_alarm(
        stack, "Errors", threshold=1, evaluation_periods=1
    )
    endpoint.add_rollback_alarms(alarm)

    template = synthesize(stack)

    (rendered,) = resources(template, "AWS::CloudWatch::Alarm").values()
    assert "Condition" not in rendered
    assert lint(template) == []


def test_one_switch_for_several_endpoints(stack: cdk.Stack, tmp_path: Path) -> None:
    """Endpoints with one switch are off together,
    and one with another switch by its own parameter.
    """
    models = write_repository(tmp_path / "models")
    night = OffSwitch(stack, "Night")
    weekend = OffSwitch(Construct(stack, "Switches"), "Weekend")
    for name, switch in {"first": night, "second": night, "third": weekend}.items():
        add_many(stack, models, name.title(), endpoint_name=name, off_switch=switch)
    night.add_schedule("Daily", off=EVENING)
    weekend.add_schedule("Daily", off=EVENING)

    template = synthesize(stack)

    conditions = {}
    for endpoint in resources(template, "AWS::SageMaker::Endpoint").values():
        conditions[endpoint["Properties"]["EndpointName"]] = endpoint["Condition"]
    assert conditions["first"] == conditions["second"]
    assert conditions["first"] != conditions["third"]

    # The names of the parameters have no hash, and a request has all parameters.
    parameters = template["Parameters"].keys()
    assert {"NightRunning", "WeekendRunning"} < parameters
    for given in requests(template):
        assert {parameter["ParameterKey"] for parameter in given["Parameters"]} == parameters


def test_commands_read_it_as_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The commands that read a template see the endpoint,
    because the parameter is ``true`` by default.
    """
    stack = cdk.Stack(make_app(tmp_path / "cdk.out"), "Test")
    endpoint = add_switched(stack, tmp_path / "models")
    endpoint.auto_scale_instance_count(min_capacity=1, max_capacity=2)
    synthesize(stack)

    assert main(["cost", str(tmp_path / "cdk.out"), "--price", "ml.g5.xlarge=1"]) == 0
    assert main(["graph", str(tmp_path / "cdk.out")]) == 0
    output = capsys.readouterr().out
    assert "1.00 to 2.00" in output
    assert "endpoint digits" in output


# Who refers to it.


def test_callers_do_not_refer_to_it(stack: cdk.Stack, tmp_path: Path) -> None:
    """Grants, names and references of callers, also in another stack,
    need neither condition nor export.
    """
    endpoint = add_switched(stack, tmp_path)
    other = other_stack(stack, "Callers")
    for scope in (stack, other):
        role = iam.Role(scope, "Caller", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        endpoint.grant_invoke(role)
        endpoint.grant_operate(role)
        cdk.CfnOutput(scope, "Name", value=endpoint.endpoint_name)
        cdk.CfnOutput(scope, "Arn", value=endpoint.endpoint_ref.endpoint_arn)
    for template in (synthesize(stack), synthesize(other)):
        assert template["Outputs"]["Name"] == {"Value": "digits"}
        assert flat(template["Outputs"]["Arn"]["Value"]).endswith(":endpoint/digits")
        assert "Fn::ImportValue" not in json.dumps(template)


def _output(stack: cdk.Stack, endpoint: TritonEndpoint) -> None:
    cdk.CfnOutput(stack, "Wrong", value=endpoint.cfn_endpoint.attr_endpoint_name)


def _variable(stack: cdk.Stack, endpoint: TritonEndpoint) -> None:
    cdk.CfnResource(
        stack,
        "Wrong",
        type="AWS::SNS::Topic",
        properties={"DisplayName": endpoint.cfn_endpoint.ref},
    )


def _substitution(stack: cdk.Stack, endpoint: TritonEndpoint) -> None:
    logical_id = stack.get_logical_id(endpoint.cfn_endpoint)
    cloudwatch.CfnDashboard(
        stack, "Wrong", dashboard_body=cdk.Fn.sub(f"${{{logical_id}.EndpointName}}")
    )


def _dependency(stack: cdk.Stack, endpoint: TritonEndpoint) -> None:
    sqs.CfnQueue(stack, "Wrong").node.add_dependency(endpoint)


def _export(stack: cdk.Stack, endpoint: TritonEndpoint) -> None:
    other = other_stack(stack, "Other")
    cdk.CfnOutput(other, "Name", value=endpoint.cfn_endpoint.attr_endpoint_name)


@pytest.mark.parametrize(
    ("refer", "path"),
    [
        (_output, "Test/Wrong"),
        (_variable, "Test/Wrong"),
        (_substitution, "Test/Wrong"),
        (_dependency, "Test/Wrong"),
        (_export, "Test/Exports/Output"),
    ],
)
def test_reference_to_what_may_not_exist_is_an_error(
    stack: cdk.Stack, tmp_path: Path, refer: Callable[[cdk.Stack, TritonEndpoint], None], path: str
) -> None:
    """A reference to the resource is an error at synth that names the construct, and what to do."""
    refer(stack, add_switched(stack, tmp_path))
    with pytest.raises(
        RuntimeError, match=rf"\] {path}.*: refers to Test/Endpoint/.*; use endpoint_name"
    ):
        synthesize(stack)


def test_reference_with_the_condition_is_accepted(stack: cdk.Stack, tmp_path: Path) -> None:
    """As the error says, a resource or output of the user may have the condition of the switch."""
    switch = OffSwitch(stack, "Night")
    endpoint = add_endpoint(stack, tmp_path, endpoint_name="digits", off_switch=switch)
    output = cdk.CfnOutput(stack, "Right", value=endpoint.cfn_endpoint.attr_endpoint_name)
    output.condition = switch.condition
    queue = sqs.CfnQueue(stack, "Queue", queue_name=endpoint.cfn_endpoint.attr_endpoint_name)
    queue.cfn_options.condition = switch.condition
    assert "AWS::SQS::Queue" in switched_types(synthesize(stack))


def test_scaling_of_an_imported_endpoint_is_an_error(stack: cdk.Stack, tmp_path: Path) -> None:
    """SageMaker would delete the scaling of an imported endpoint of this name
    without CloudFormation.
    """
    add_switched(stack, tmp_path)
    imported = import_endpoint(stack, id="Imported", endpoint_name="digits")
    imported.auto_scale_instance_count(min_capacity=1, max_capacity=2)
    with pytest.raises(
        RuntimeError, match="scales endpoint/digits/variant/AllTraffic, and SageMaker"
    ):
        synthesize(stack)


# The schedule.


def test_schedule_asks_for_an_update_of_the_stack(stack: cdk.Stack, tmp_path: Path) -> None:
    """CloudFormation's API has the request; it keeps all other parameters,
    those added later too.
    """
    switch = OffSwitch(stack, "Night")
    add_endpoint(stack, tmp_path, endpoint_name="digits", off_switch=switch)
    switch.add_schedule("Daily", off=EVENING, on=MORNING)
    later = cdk.CfnParameter(stack, "Later", default="x")
    cdk.CfnOutput(stack, "Used", value=later.value_as_string)
    template = synthesize(stack)
    model = botocore.session.get_session().get_service_model("cloudformation")
    shape = model.operation_model("UpdateStack").input_shape
    assert shape is not None
    for value in ("false", "true"):
        found = request(template, value)
        assert not ParamValidator().validate(found, shape).has_errors()
        assert found == {
            "StackName": "Test",
            "UsePreviousTemplate": True,
            "Capabilities": ["CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"],
            "Parameters": [
                {"ParameterKey": "BootstrapVersion", "UsePreviousValue": True},
                {"ParameterKey": "Later", "UsePreviousValue": True},
                {"ParameterKey": "NightRunning", "ParameterValue": value},
            ],
        }
    schedules = resources(template, "AWS::Scheduler::Schedule").values()
    times = {schedule["Properties"]["ScheduleExpression"] for schedule in schedules}
    assert times == {"cron(0 20 * * ? *)", "cron(0 7 * * ? *)"}
    assert lint(template) == []


def test_schedule_may_only_update_this_stack(stack: cdk.Stack, tmp_path: Path) -> None:
    """The role of both schedules has one permission,
    and one to write to the queue for refused updates.
    """
    switch = OffSwitch(stack, "Night")
    queue = sqs.Queue(stack, "Refused")
    switch.add_schedule(
        "Daily",
        off=EVENING,
        on=MORNING,
        dead_letter_queue=queue,
        max_event_age=cdk.Duration.hours(1),
    )

    template = synthesize(stack)

    update, send = statement_list(template, "Night")
    assert update["Action"] == "cloudformation:UpdateStack"
    assert flat(update["Resource"]) == "<AWS::StackId>"
    queue_id = stack.resolve(queue.node.default_child.logical_id)  # type: ignore[union-attr]
    assert send["Action"] == "sqs:SendMessage"
    assert flat(send["Resource"]) == f"<{queue_id}.Arn>"
    for schedule in resources(template, "AWS::Scheduler::Schedule").values():
        policy = schedule["Properties"]["Target"]["RetryPolicy"]
        assert policy["MaximumEventAgeInSeconds"] == 3600


def test_schedule_of_another_type_is_refused(stack: cdk.Stack, tmp_path: Path) -> None:
    """The error shows the expected form, and adds nothing."""
    switch = OffSwitch(stack, "Night")
    with pytest.raises(
        InvalidValueError, match=r"on: must be of type ScheduleExpression.*\.expression\("
    ):
        switch.add_schedule("Daily", off=EVENING, on="cron(0 7 * * ? *)")  # type: ignore[arg-type]
    assert [child.node.id for child in switch.node.children] == ["IsRunning"]


# What is refused.


@pytest.mark.parametrize(
    ("props", "message"),
    [
        ({"endpoint_name": None}, "off_switch: needs an endpoint_name.*; set endpoint_name"),
        (
            {"endpoint_name": cdk.Fn.ref("Name")},
            "off_switch: needs an endpoint_name that is known at synth",
        ),
        (
            {"removal_policy": cdk.RemovalPolicy.RETAIN},
            "together with removal_policy.*; remove removal_policy",
        ),
        (
            {"removal_policy": cdk.RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE},
            "together with removal_policy.*; remove removal_policy",
        ),
        ({"adopt_existing": True}, "together with adopt_existing.*; remove adopt_existing"),
        ({"off_switch": True}, r'must be of type OffSwitch, got True; write OffSwitch\(self, "'),
        ({"off_switch": "Dusk"}, r'got "Dusk"; write OffSwitch\(self, "Dusk"\)'),
    ],
)
def test_contradicting_property_is_refused(
    stack: cdk.Stack, tmp_path: Path, props: dict[str, Any], message: str
) -> None:
    """What keeps a deleted endpoint, or gives it another name, is an error that names the fix."""
    given = {"endpoint_name": "digits", "off_switch": OffSwitch(stack, "Night"), **props}
    with pytest.raises(InvalidValueError, match=message):
        add_endpoint(stack, tmp_path, **given)
    assert stack.node.try_find_child("Endpoint") is None


def test_switch_of_another_stack_is_refused(stack: cdk.Stack, tmp_path: Path) -> None:
    """A parameter turns off what is in its own stack, and the error names both stacks."""
    night = OffSwitch(other_stack(stack, "Other"), "Night")
    with pytest.raises(InvalidValueError, match=r"off_switch: must be in stack Test.*is in Other;"):
        add_endpoint(stack, tmp_path, endpoint_name="digits", off_switch=night)


@pytest.mark.parametrize(
    "id",
    ["", "at night", "1st", "N" * 201, cdk.Fn.ref("Name"), True],
    ids=["empty", "space", "digit", "long", "token", "bool"],
)
def test_id_that_cannot_name_a_parameter_is_refused(stack: cdk.Stack, id: Any) -> None:
    """The id begins the name of a parameter, which has letters and digits alone."""
    with pytest.raises(InvalidValueError, match=r'letters and digits.*write .*"Night"\)'):
        OffSwitch(stack, id)
    assert not stack.node.children


def test_second_switch_of_a_name_is_refused(stack: cdk.Stack) -> None:
    """Two switches of a stack cannot share a parameter, wherever they are in it."""
    OffSwitch(stack, "Night")
    scope = Construct(stack, "Inner")
    with pytest.raises(InvalidValueError, match=r'NightRunning exists.*OffSwitch\(self, "Night2"'):
        OffSwitch(scope, "Night")
    OffSwitch(scope, "Night2")


def test_endpoints_with_zero_instances_are_refused(stack: cdk.Stack, tmp_path: Path) -> None:
    """Endpoints that scale to zero need no switch, and the error says which method they have."""
    queue = AsyncInferenceConfig(bucket=s3.Bucket(stack, "Bucket"))
    with pytest.raises(InvalidValueError, match=r"async_inference.*scale_on_schedule"):
        add_switched(stack, tmp_path, async_inference=queue)
    with pytest.raises(
        InvalidValueError, match=r"off_switch: not supported on component endpoints.*zero"
    ):
        TritonComponentEndpoint(stack, "Shared", instance_type=GPU, off_switch=object())  # type: ignore[call-arg]


def test_stacks_that_lose_the_value_are_refused(tmp_path: Path) -> None:
    """A nested stack has its parent's parameters; a pipeline passes no previous value;
    other stages may.
    """
    models = write_repository(tmp_path / "models")
    stack = make_stack()
    app = stack.node.root
    assert isinstance(app, cdk.App)
    with pytest.raises(
        InvalidValueError, match=r"nested stack Test/Inner.*; use a stack that is not nested"
    ):
        OffSwitch(cdk.NestedStack(stack, "Inner"), "Night")
    with pytest.raises(InvalidValueError, match=r"stage Test/Prod of a pipeline.*cdk deploy"):
        OffSwitch(cdk.Stack(cdk.Stage(stack, "Prod"), "Models"), "Night")
    right = cdk.Stack(cdk.Stage(app, "Prod"), "Models")
    night = OffSwitch(right, "Night")
    add_many(right, models, endpoint_name="digits", off_switch=night)
