"""Endpoints of a stack that are off at night, by ``off_switch`` or ``stop --force``,
on a loopback AWS.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import switched_app
from pools_app import STACK, synthesize_states
from stack_view import StackView

from cdk_rehearse import SimulatedAccount, rehearse
from cdk_rehearse.behaviour import CALM
from constructs_triton.cli import main
from constructs_triton_tools.operations.stopping import aws_calls

BUDGET_MINUTES = 2
CDK = Path(__file__).resolve().parents[2] / "node_modules" / ".bin" / "cdk"
PARAMETER = switched_app.PARAMETER


def scaling(view: StackView, name: str) -> list[Any]:
    """The bounds and the policies of the endpoint, without ARNs and times."""
    client = view.aws.client("application-autoscaling")
    resource = f"endpoint/{name}/variant/AllTraffic"
    targets = client.describe_scalable_targets(ServiceNamespace="sagemaker", ResourceIds=[resource])
    policies = client.describe_scaling_policies(ServiceNamespace="sagemaker", ResourceId=resource)
    return [
        *((each["MinCapacity"], each["MaxCapacity"]) for each in targets["ScalableTargets"]),
        *(each["TargetTrackingScalingPolicyConfiguration"] for each in policies["ScalingPolicies"]),
    ]


def test_night_of_a_stack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An update at night fails, and its rollback too; after the start,
    both succeed and nothing is lost.
    """
    assemblies = synthesize_states(tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(aws_calls, "_POLL_SECONDS", 0.1)
    with SimulatedAccount() as aws:
        aws.bootstrap()
        assert aws.deploy(assemblies / "first", STACK).status == "CREATE_COMPLETE"
        for key, value in aws.variables().items():
            monkeypatch.setenv(key, value)
        view = StackView(aws, STACK)
        name = view.output("Name")
        before = scaling(view, name)
        assert len(before) == 2
        assert main(["stop", name, "--yes"]) == 2
        assert f"belongs to CloudFormation stack {STACK}" in capsys.readouterr().err
        assert main(["stop", name, "--yes", "--force"]) == 0
        assert scaling(view, name) == []
        assert aws.deploy(assemblies / "reordered", STACK).status == "UPDATE_ROLLBACK_FAILED"

        assert main(["start", name, "--yes"]) == 0
        assert scaling(view, name) == before
        cloudformation = aws.client("cloudformation")
        cloudformation.continue_update_rollback(StackName=STACK)
        waiter = cloudformation.get_waiter("stack_rollback_complete")
        waiter.wait(StackName=STACK, WaiterConfig={"Delay": 0.2, "MaxAttempts": 100})
        assert aws.stack(STACK).status == "UPDATE_ROLLBACK_COMPLETE"
        assert scaling(view, name) == before
        stack = aws.deploy(assemblies / "reordered", STACK)
        assert stack.status == "UPDATE_COMPLETE", stack.reason
        assert len(scaling(view, name)) == 2
        assert aws.destroy(STACK).status == "DELETE_COMPLETE"


# An endpoint with off_switch.


@pytest.fixture(scope="module")
def switched(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The assemblies of the stack of ``switched_app``."""
    return switched_app.synthesize_states(tmp_path_factory.mktemp("switched"))


@pytest.mark.parametrize(
    ("old", "new", "steps"),
    [
        ("first", "first_off", {"delete"}),
        ("first_off", "first", {"create"}),
        ("first_off", "second_off", {"replace", "delete"}),
        ("guarded_off", "guarded_larger_off", {"replace", "update", "delete"}),
    ],
)
def test_each_direction_is_rehearsed(switched: Path, old: str, new: str, steps: set[str]) -> None:
    """Whichever step fails, the stack is as before and nothing is left; the way back works."""
    found = rehearse(switched / old, switched / new, orders=1)
    assert found.status == {switched_app.STACK: "UPDATE_COMPLETE"}
    assert {each.action for each in found.steps} == steps
    # CloudFormation deletes in the cleanup, where a failure rolls nothing back.
    assert bool(found.failures) is (steps != {"delete"})
    assert {(each.status, each.leftovers) for each in found.failures} <= {
        ("UPDATE_ROLLBACK_COMPLETE", ())
    }
    assert found.way_back is not None
    assert found.way_back.status == "UPDATE_COMPLETE"
    ends = ["rehearse-serving-stops"] if new == "first_off" else []
    assert [each.code for each in found.problems] == ends


@pytest.mark.parametrize(
    ("old", "new"), [("guarded_off", "guarded_larger"), ("many_off", "many_second")]
)
def test_change_at_night_is_in_service_in_the_morning(switched: Path, old: str, new: str) -> None:
    """Another instance type under a scaling guard, or other models,
    are what the morning turns on.
    """
    found = rehearse(switched / old, switched / new, orders=1, failures="none")
    assert found.status == {switched_app.STACK: "UPDATE_COMPLETE"}
    assert found.problems == ()


def test_deployed_endpoint_gets_a_switch(switched: Path) -> None:
    """An update that adds the switch to a named endpoint does not touch the endpoint."""
    found = rehearse(switched / "plain", switched / "first", orders=1, failures="none")
    assert found.replaced == ()
    assert found.problems == ()
    changed = {each.type for each in found.steps if each.action != "create"}
    assert changed <= {"AWS::IAM::Policy"}


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory, switched: Path) -> Iterator[SimulatedAccount]:
    """An account to which ``cdk deploy`` has deployed the stack, whose endpoint runs."""
    with SimulatedAccount() as aws:
        folder = tmp_path_factory.mktemp("cdk")
        done = aws.run_cdk(CDK, "bootstrap", f"aws://{aws.api.account}/us-east-1", cwd=folder)
        assert done.returncode == 0, done.stdout
        cdk_deploy(aws, switched / "first")
        yield aws


def cdk_deploy(aws: SimulatedAccount, assembly: Path, *arguments: str) -> None:
    done = aws.run_cdk(
        CDK,
        "deploy",
        "--app",
        str(assembly),
        "--require-approval",
        "never",
        *arguments,
        cwd=assembly.parent,
    )
    assert done.returncode == 0, done.stdout


def run_schedule(aws: SimulatedAccount, name: str) -> str:
    """Do what the deployed schedule asks for; return the status of the stack.

    The simulated account has change sets in place of ``UpdateStack``, with the same parameters.
    """
    scheduler, cloudformation = aws.client("scheduler"), aws.client("cloudformation")
    (found,) = (
        each["Name"] for each in scheduler.list_schedules()["Schedules"] if name in each["Name"]
    )
    request = json.loads(scheduler.get_schedule(Name=found)["Target"]["Input"])
    assert request.pop("UsePreviousTemplate")
    body = cloudformation.get_template(StackName=request["StackName"])["TemplateBody"]
    text = body if isinstance(body, str) else json.dumps(body)
    cloudformation.create_change_set(**request, ChangeSetName=name, TemplateBody=text)
    cloudformation.execute_change_set(StackName=request["StackName"], ChangeSetName=name)
    aws.cloudformation.wait()
    return aws.stack(switched_app.STACK).status


def endpoints(aws: SimulatedAccount) -> list[str]:
    return [each["EndpointConfigName"] for each in _described(aws)]


def _described(aws: SimulatedAccount) -> list[dict[str, Any]]:
    client = aws.client("sagemaker")
    names = [each["EndpointName"] for each in client.list_endpoints()["Endpoints"]]
    return [client.describe_endpoint(EndpointName=name) for name in names]


def test_night_of_an_endpoint_with_a_switch(night: SimulatedAccount, switched: Path) -> None:
    """Off by the schedule, a new model by ``cdk deploy``, which keeps it off,
    and on by the schedule.
    """
    (before,) = endpoints(night)
    scaled = scaling_of_switched(night)
    assert len(scaled) == 2
    assert run_schedule(night, "DailyOff") == "UPDATE_COMPLETE"
    assert endpoints(night) == scaling_of_switched(night) == []
    cdk_deploy(night, switched / "second")
    assert endpoints(night) == []
    assert run_schedule(night, "DailyOn") == "UPDATE_COMPLETE"
    (after,) = endpoints(night)
    assert after != before
    assert scaling_of_switched(night) == scaled
    cdk_deploy(night, switched / "second", "--parameters", f"{PARAMETER}=false")  # by hand
    assert endpoints(night) == []
    cdk_deploy(night, switched / "second", "--parameters", f"{PARAMETER}=true")
    assert endpoints(night) == [after]


def scaling_of_switched(aws: SimulatedAccount) -> list[Any]:
    """The bounds and the policies of the endpoint with the switch."""
    return scaling(StackView(aws, switched_app.STACK), switched_app.ENDPOINT)


def test_morning_without_capacity(night: SimulatedAccount) -> None:
    """The update is rolled back, the endpoint is still off, and the next attempt turns it on."""
    assert run_schedule(night, "DailyOff") == "UPDATE_COMPLETE"
    night.behaviour = replace(CALM, without_capacity=["ml.c5.xlarge"])
    assert run_schedule(night, "DailyOn") == "UPDATE_ROLLBACK_COMPLETE"
    assert endpoints(night) == []
    night.behaviour = CALM
    assert run_schedule(night, "DailyOn") == "UPDATE_COMPLETE"
    assert len(endpoints(night)) == 1


def test_evening_whose_deletion_fails(night: SimulatedAccount) -> None:
    """The update succeeds although the endpoint still runs,
    and the morning fails because it exists.
    """
    (endpoint,) = (
        name
        for name, each in night.stack(switched_app.STACK).resources.items()
        if each.request.type == "AWS::SageMaker::Endpoint"
    )
    night.behaviour = replace(CALM, failing_delete=[endpoint])
    assert run_schedule(night, "DailyOff") == "UPDATE_COMPLETE"
    night.behaviour = CALM
    assert len(endpoints(night)) == 1
    events = night.stack(switched_app.STACK).events
    assert "DELETE_FAILED" in [each.status for each in events if each.logical_id == endpoint]
    assert run_schedule(night, "DailyOn") == "UPDATE_ROLLBACK_COMPLETE"
    assert f"{switched_app.ENDPOINT} already exists" in night.stack(switched_app.STACK).reason
