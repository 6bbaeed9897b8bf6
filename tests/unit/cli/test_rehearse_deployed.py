"""``constructs-triton rehearse --deployed STACK``: OLD is the template of a stack in AWS."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from cdk_rehearse import SimulatedAccount
from cdk_rehearse.template_parsing import parse_template
from constructs_triton.cli import main

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("loopback_stack")]

YAML = """
AWSTemplateFormatVersion: 2010-09-09
Resources:
  Topic:
    Type: AWS::SNS::Topic
    Properties:
      TopicName: !Sub "${AWS::StackName}-alerts"
"""


@pytest.fixture(scope="module")
def deployed() -> Iterator[SimulatedAccount]:
    """An account with the stack ``Json`` and the stack ``Yaml``."""
    with SimulatedAccount() as account:
        topic = {"Type": "AWS::SNS::Topic", "Properties": {"TopicName": "alerts"}}
        for name, text in (("Json", json.dumps({"Resources": {"Topic": topic}})), ("Yaml", YAML)):
            stack = account.stacks.add(name)
            account.deployer.deploy(stack, parse_template(text), {})
            assert stack.status == "CREATE_COMPLETE"
        yield account


@pytest.fixture(autouse=True)
def connected(deployed: SimulatedAccount, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command reads from the account."""
    for name, value in deployed.variables().items():
        monkeypatch.setenv(name, value)


@pytest.fixture
def new(tmp_path: Path) -> str:
    """The new version of the topic, as YAML."""
    path = tmp_path / "new.yaml"
    path.write_text(YAML.replace("-alerts", "-alarms"))
    return str(path)


@pytest.mark.parametrize("stack", ["Json", "Yaml", "ARN"])
def test_deployed_template_is_old(
    stack: str, deployed: SimulatedAccount, new: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The template of a stack by its name or ARN, as JSON or YAML,
    is deployed under the stack's name.
    """
    name = deployed.stack("Yaml").id if stack == "ARN" else stack
    assert main(["rehearse", "--deployed", name, new, "--failures", "none", "--orders", "1"]) == 0
    out = capsys.readouterr().out
    assert "1 resource changed, 1 replaced" in out
    assert re.search(r"replace +\S*Topic +Topic", out)


UPDATABLE = ("UPDATE_ROLLBACK_COMPLETE", "REVIEW_IN_PROGRESS")
REFUSING = ("UPDATE_ROLLBACK_FAILED", "ROLLBACK_COMPLETE", "UPDATE_IN_PROGRESS")


@pytest.mark.parametrize("status", [*UPDATABLE, *REFUSING])
def test_deployed_stack_must_accept_an_update(
    status: str,
    deployed: SimulatedAccount,
    new: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A state in which CloudFormation refuses every update is an error, with what ends it."""
    monkeypatch.setattr(deployed.stack("Json"), "status", status)
    words = ["rehearse", "--deployed", "Json", new, "--failures", "none", "--orders", "1"]
    assert main(words) == (0 if status in UPDATABLE else 2)
    if status in REFUSING:
        error = capsys.readouterr().err
        assert f"stack Json: CloudFormation accepts no update in the state {status}" in error
        assert "npx cdk rollback" in error


PARAMETERS = """
Parameters:
  Stage: {Type: String}
Resources:
  Topic:
    Type: AWS::SNS::Topic
    Properties:
      TopicName: !Sub "alerts-${Stage}"
"""


def test_parameters_keep_the_values_of_the_deployed_stack(
    deployed: SimulatedAccount, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A parameter without a default has the deployed value in both versions;
    ``--parameters`` replaces it.
    """
    if deployed.stacks.find("Given") is None:
        stack = deployed.stacks.add("Given")
        deployed.deployer.deploy(stack, parse_template(PARAMETERS), {"Stage": "live"})
    path = tmp_path / "new.yaml"
    path.write_text(PARAMETERS.replace("Properties:", "Properties:\n      DisplayName: !Ref Stage"))
    command = ["rehearse", "--deployed", "Given", str(path), "--failures", "none", "--orders", "1"]
    assert main(command) == 0
    assert "1 resource changed, 0 replaced" in capsys.readouterr().out
    assert main([*command, "--parameters", "Stage=test", "--json"]) == 0
    assert '"Topic"' in capsys.readouterr().out


def test_unknown_stack_is_one_sentence(new: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The error has the Region, and the option to check."""
    assert main(["rehearse", "--deployed", "Nothing", new]) == 2
    err = capsys.readouterr().err
    assert "stack Nothing: does not exist in us-east-1; check the name and --region" in err
    assert len(err.splitlines()) == 1


def test_absent_credentials_are_one_sentence(
    new: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without credentials nothing is asked of AWS."""
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    assert main(["rehearse", "--deployed", "Json", new]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "no credentials were found" in line
    assert "--profile" in line
