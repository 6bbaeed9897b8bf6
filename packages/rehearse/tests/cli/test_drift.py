"""What ``rehearse --deployed`` says of what was changed in AWS outside of CloudFormation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from cdk_rehearse import rehearse
from cdk_rehearse.cli.deployed import read_deployed
from cdk_rehearse.updates.report import Problem
from cdk_rehearse.updates.versions import Drift, deployed_version
from constructs_triton_core.aws_reader import AwsReader

NOW = datetime(2026, 11, 30, tzinfo=UTC)
STACK = {"StackName": "Shop", "CreationTime": NOW, "StackStatus": "CREATE_COMPLETE"}
ROW = {
    "StackId": "arn:aws:cloudformation:us-east-1:123456789012:stack/Shop/1",
    "LogicalResourceId": "Jobs",
    "ResourceType": "AWS::SQS::Queue",
    "StackResourceDriftStatus": "MODIFIED",
    "Timestamp": NOW,
    "PropertyDifferences": [
        {
            "PropertyPath": "/VisibilityTimeout",
            "ExpectedValue": "30",
            "ActualValue": "60",
            "DifferenceType": "NOT_EQUAL",
        }
    ],
}
CHANGED = Drift("Jobs", "AWS::SQS::Queue", (("VisibilityTimeout", "30", "60"),))


@pytest.fixture
def cloudformation(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stubber]:
    """A client whose answers have the shapes of the service model."""
    client = boto3.client(
        "cloudformation",
        region_name="us-east-1",
        aws_access_key_id="x",
        aws_secret_access_key="x",
    )
    monkeypatch.setattr(AwsReader, "client", lambda *_: client)
    with Stubber(client) as stubber:
        stubber.add_response("get_template", {"TemplateBody": "{}"})
        yield stubber
        stubber.assert_no_pending_responses()


def _read() -> tuple[tuple[Drift, ...], str]:
    found = read_deployed(boto3.Session(region_name="us-east-1"), "Shop")
    return found.drifts, found.note


def _describe(stubber: Stubber, status: str) -> None:
    drift = {"DriftInformation": {"StackDriftStatus": status}}
    stubber.add_response("describe_stacks", {"Stacks": [{**STACK, **drift}]})


def test_drift_is_read_from_all_pages(cloudformation: Stubber) -> None:
    """The last detection counts; the command starts none."""
    _describe(cloudformation, "DRIFTED")
    deleted = {**ROW, "LogicalResourceId": "Old", "PropertyDifferences": []}
    for row, token in ((ROW, {"NextToken": "2"}), (deleted, {})):
        page = {"StackResourceDrifts": [row], **token}
        cloudformation.add_response("describe_stack_resource_drifts", page)
    assert _read() == ((CHANGED, Drift("Old", "AWS::SQS::Queue")), "")


@pytest.mark.parametrize(
    ("status", "note"), [("IN_SYNC", ""), ("NOT_CHECKED", "detect-stack-drift --stack-name Shop")]
)
def test_no_detection_is_unknown_and_not_good(
    cloudformation: Stubber, status: str, note: str
) -> None:
    """Without a detection, the note names the command that makes one."""
    _describe(cloudformation, status)
    drifts, said = _read()
    assert drifts == ()
    assert note in said
    assert bool(said) is bool(note)


def test_refused_permission_is_a_note(cloudformation: Stubber) -> None:
    """The rehearsal goes on without what it may not read."""
    _describe(cloudformation, "DRIFTED")
    cloudformation.add_client_error("describe_stack_resource_drifts", "AccessDenied")
    drifts, said = _read()
    assert drifts == ()
    assert "how is not known" in said


def _queue(**properties: Any) -> dict[str, Any]:
    return {"Resources": {"Jobs": {"Type": "AWS::SQS::Queue", "Properties": properties}}}


@pytest.mark.parametrize(
    ("drift", "new", "text"),
    [
        (CHANGED, {"VisibilityTimeout": 30, "DelaySeconds": 5}, "this update keeps that unless"),
        (CHANGED, {"FifoQueue": True, "QueueName": "a.fifo"}, "creates the resource again"),
        (Drift("Jobs", "AWS::SQS::Queue"), {"DelaySeconds": 5}, "this update changes it, and fail"),
        (Drift("Jobs", "AWS::SQS::Queue"), {"VisibilityTimeout": 30}, "update does not notice"),
    ],
)
def test_drifted_resource_is_a_warning_that_says_what_the_update_does(
    drift: Drift, new: dict[str, Any], text: str
) -> None:
    """CloudFormation compares templates, so it keeps, replaces or misses what was changed."""
    old = deployed_version("Shop", _json(_queue(VisibilityTimeout=30)), {}, [drift])
    new_version = deployed_version("Shop", _json(_queue(**new)), {})
    found = rehearse(old, new_version, failures="none", orders=1)
    (problem,) = [each for each in found.problems if each.code == "rehearse-drifted"]
    assert isinstance(problem, Problem)
    assert text in problem.message
    assert problem.path == "Jobs"


def _json(template: dict[str, Any]) -> str:
    return json.dumps(template)
