"""Endpoints that ``constructs-triton stop`` refuses, and files that ``start`` refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from moto import mock_aws
from night_account import FILE, KEY, NAME, NightAccount, phase, start, stop, use

from constructs_triton.cli import main

NO_MONTH = {**KEY, "ScheduledActionName": "a", "Schedule": "at(2026-13-01T00:00:00)"}
STACK_TAGS = {"aws:cloudformation:stack-name": "Vision", "team": "search"}
SWITCHES = (("NightRunning", "true"), ("WeekendRunning", "false"), ("Size", "true"))
SHADOW = {"VariantName": "shadow", "ModelName": "gone", "InstanceType": "ml.g4dn.xlarge"}


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[NightAccount]:
    with mock_aws():
        account = NightAccount()
        use(account, monkeypatch, tmp_path)
        yield account


NO_COMPONENTS = "has inference components, which are not created again"
SERVERLESS = {
    "VariantName": "a",
    "ModelName": "model",
    "ServerlessConfig": {"MemorySizeInMB": 2048},
}
POOL = {"InstanceType": "ml.g5.xlarge", "ModelNameOverride": "gone"}
GONE = "its model gone was deleted, so it could not be created again"


@pytest.mark.parametrize(
    ("config", "described", "message"),
    [
        (
            {"AsyncInferenceConfig": {"OutputConfig": {}}},
            {},
            "is asynchronous, so it needs no deletion",
        ),
        ({"ProductionVariants": [{"VariantName": "a"}]}, {}, NO_COMPONENTS),
        (
            {"ProductionVariants": [SERVERLESS]},
            {},
            "is serverless, and costs nothing without calls",
        ),
        ({"ShadowProductionVariants": [SHADOW]}, {}, GONE),
        ({"ProductionVariants": [{"VariantName": "a", "InstancePools": [POOL]}]}, {}, GONE),
        # Its variants name models.
        ({}, {"components": [{"InferenceComponentName": "a"}]}, NO_COMPONENTS),
        ({}, {"status": "Updating"}, "must have status InService, got Updating"),
        ({}, {"status": "Failed"}, "must have status InService, got Failed (no disk)"),
    ],
)
def test_endpoints_that_are_not_deleted(
    account: NightAccount,
    config: Any,
    described: Any,
    message: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Those that can have zero instances, could not be created again, or are not in service."""
    account.add_endpoint()
    account.described_config = config
    account.components = described.get("components", [])
    account.set_status(described.get("status", "InService"))
    account.described = {"FailureReason": "no disk"} if described.get("status") == "Failed" else {}
    assert stop("--force") == 2
    assert message in capsys.readouterr().err
    assert account.exists()
    assert not FILE.exists()


def test_missing_endpoint_is_an_error(
    account: NightAccount, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message has the Region, and asks whether the endpoint is off."""
    assert stop("--json") == 2
    error = json.loads(capsys.readouterr().out)["error"]
    assert (
        "endpoint digits: does not exist in eu-west-1; check the name and --region, and whether"
        in error
    )
    assert error.endswith("turned off by the switch of its stack")


def test_endpoint_of_a_stack_needs_force(
    account: NightAccount, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also on the second evening, when the endpoint has lost the tags that only
    CloudFormation may set.
    """
    account.add_endpoint(STACK_TAGS)
    for _evening in range(2):
        assert stop() == 2
        assert "belongs to CloudFormation stack Vision" in capsys.readouterr().err
        assert account.exists()
        assert stop("--force") == 0
        assert start() == 0
        assert "stack Vision: does not know the new scaling policies" in capsys.readouterr().out
        assert account.state()["tags"] == [{"Key": "team", "Value": "search"}]


def test_switch_of_the_stack_is_named(
    account: NightAccount, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message has the command that turns the endpoint off,
    if the stack has a switch that is on.
    """
    switches = {name: {"Type": "String", "Default": value} for name, value in SWITCHES}
    template = {"Parameters": switches, "Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}}
    account.client("cloudformation").create_stack(
        StackName="Vision", TemplateBody=json.dumps(template)
    )
    account.add_endpoint(STACK_TAGS)
    assert stop() == 2
    advice = (
        "turn it off with `npx cdk deploy --parameters "
        "NightRunning=false` in its app, or add --force"
    )
    assert advice in capsys.readouterr().err
    account.failing["DescribeStacks"] = "AccessDenied"
    assert stop() == 2
    assert "set off_switch in the app" in capsys.readouterr().err


def test_alarms_of_step_policies_are_named(
    account: NightAccount, capsys: pytest.CaptureFixture[str]
) -> None:
    """A new policy has a new ARN.

    An alarm that calls the old one would do nothing, and report no error.
    """
    account.add_endpoint()
    account.add_operation()
    steps = {"AdjustmentType": "ChangeInCapacity", "StepAdjustments": [{"ScalingAdjustment": 1}]}
    account.scaling.put_scaling_policy(
        **KEY, PolicyName="steps", PolicyType="StepScaling", StepScalingPolicyConfiguration=steps
    )
    account.alarms = [
        {"AlarmName": "busy", "AlarmARN": "arn:aws:cloudwatch:eu-west-1:123456789012:alarm:busy"}
    ]
    assert main(["stop", NAME]) == 2
    assert "alarm busy calls a step scaling policy" in capsys.readouterr().err
    assert stop() == 0
    assert start() == 0
    out = capsys.readouterr().out
    [(old, _names)] = json.loads(FILE.read_text())["step_policy_alarms"].items()
    assert f"alarm busy: calls the deleted {old}; let it call arn:" in out


def test_scheduled_actions_whose_time_is_over(
    account: NightAccount, capsys: pytest.CaptureFixture[str]
) -> None:
    """Actions that can never run are named and left out;
    a start in the past is left out of a running one.
    """
    account.add_endpoint()
    account.add_operation()
    assert stop() == 0
    saved = json.loads(FILE.read_text())
    [action] = saved["scheduled_actions"]
    saved["scheduled_actions"] = [
        {**action, "ScheduledActionName": "once", "Schedule": "at(2020-01-01T08:00:00)"},
        {**action, "ScheduledActionName": "later", "Schedule": "at(2999-01-01T08:00:00)"},
        {**action, "ScheduledActionName": "ended", "EndTime": "2020-01-01T08:00:00+00:00"},
        {**action, "ScheduledActionName": "running", "StartTime": "2020-01-01T08:00:00"},
    ]
    FILE.write_text(json.dumps(saved))
    account.calls.clear()
    assert start() == 0
    out = capsys.readouterr().out
    assert "scheduled action once: its time is over" in out
    assert "scheduled action ended: its time is over" in out
    created = account.params_of("PutScheduledAction")
    assert [each["ScheduledActionName"] for each in created] == ["later", "running"]
    assert "StartTime" not in created[1]


def test_file_of_another_endpoint_is_refused(
    account: NightAccount, capsys: pytest.CaptureFixture[str]
) -> None:
    """The file of one endpoint or Region is never replaced by that of another."""
    account.add_endpoint()
    assert stop() == 0
    content = FILE.read_text()
    for command in ("stop", "start"):
        assert main([command, "other", "--file", str(FILE)]) == 2
        assert (
            "is the file of endpoint digits, got other; choose another file"
            in capsys.readouterr().err
        )
    moved = content.replace('"region": "eu-west-1"', '"region": "us-east-1"')
    FILE.write_text(moved)
    assert start() == 2
    assert "is in us-east-1, got eu-west-1; add --region us-east-1" in capsys.readouterr().err
    assert FILE.read_text() == moved


@pytest.mark.parametrize(
    ("member", "value", "message"),
    [
        (
            "phase",
            "asleep",
            "phase: must be one of stopping, stopped, starting, started, got 'asleep'",
        ),
        ("region", 1, "region: must be a string, got 1"),
        ("stack", 1, "stack: must be a string or null, got 1"),
        ("step_policy_alarms", {"arn": "busy"}, "step_policy_alarms: must be an object of arrays"),
        ("scaling_policies", {}, "scaling_policies: must be an array"),
        (
            "scaling_policies",
            [{"PolicyName": "a"}],
            "scaling_policies[0]: Parameter validation failed",
        ),
        ("create_endpoint", [], "create_endpoint: Parameter validation failed"),
        ("scheduled_actions", [NO_MONTH], "scheduled_actions[0]: month must be in 1..12"),
        ("", "{", ""),
        ("", "{}", "must be an object with the members capacities, create_endpoint"),
    ],
)
def test_damaged_file_is_refused(
    account: NightAccount, member: str, value: Any, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before anything is created, and the file stays; one that does not exist is named too."""
    account.add_endpoint()
    assert stop() == 0
    damaged = json.dumps({**json.loads(FILE.read_text()), member: value}) if member else value
    FILE.write_text(damaged)
    assert start() == 2
    assert f"digits.stopped.json: {message}" in capsys.readouterr().err
    assert not account.exists()
    assert FILE.read_text() == damaged
    FILE.unlink()
    assert start() == 2
    assert (
        "does not exist; give the file that `constructs-triton stop` wrote"
        in capsys.readouterr().err
    )


def test_configuration_deployed_meanwhile_is_refused(
    account: NightAccount, capsys: pytest.CaptureFixture[str]
) -> None:
    """A stop that failed does not delete an endpoint that was deployed since."""
    account.add_endpoint()
    account.failing = {"DeleteEndpoint": "ThrottlingException"}
    assert stop() == 2
    assert (
        "digits.stopped.json has what was deleted: run the command again" in capsys.readouterr().err
    )
    account.described = {"EndpointConfigName": "config-2"}
    assert stop() == 2
    assert (
        "has configuration config-2, and digits.stopped.json has config-1"
        in capsys.readouterr().err
    )
    assert account.exists()
    assert phase() == "stopping"
