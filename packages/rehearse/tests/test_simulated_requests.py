"""The requests that a custom resource gets in an unfriendly AWS: both ways to roll back,
and duplicates.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from shared_endpoint import trust

from cdk_rehearse import Behaviour, SimulatedAccount
from cdk_rehearse.behaviour import CALM
from cdk_rehearse.stacks.stack import Stack
from constructs_triton_core.cloud_assembly.template import Template

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("loopback_stack")]

FUNCTION = """
import json, urllib.request

def handler(event, context):
    properties = event["ResourceProperties"]
    is_deletion = event["RequestType"] == "Delete"
    id = event["PhysicalResourceId"] if is_deletion else "id-" + properties["Id"]
    with open(properties["Log"], "a") as log:
        line = [event["RequestType"], event["RequestId"], properties["Version"], id]
        log.write(json.dumps(line) + "\\n")
    answer = {"Status": "SUCCESS", "PhysicalResourceId": id, "StackId": event["StackId"],
              "RequestId": event["RequestId"], "LogicalResourceId": event["LogicalResourceId"]}
    body = json.dumps(answer).encode()
    request = urllib.request.Request(event["ResponseURL"], body, method="PUT")
    urllib.request.urlopen(request).read()
"""
TRUST = trust("lambda")
FUNCTION_PROPERTIES = {
    "Code": {"ZipFile": FUNCTION},
    "Handler": "index.handler",
    "Runtime": "python3.13",
    "Role": {"Fn::GetAtt": ["Role", "Arn"]},
    "Timeout": 60,
}


@pytest.fixture(scope="module")
def account() -> Iterator[SimulatedAccount]:
    with SimulatedAccount(functions="python") as aws:
        yield aws


@pytest.fixture
def aws(account: SimulatedAccount) -> Iterator[SimulatedAccount]:
    """The account, calm before and after the test."""
    account.behaviour = CALM
    yield account
    account.behaviour = CALM


def deploy(
    aws: SimulatedAccount, name: str, properties: dict[str, str], *, fails: bool = False
) -> Stack:
    """Create or update a stack with one custom resource,
    and with a resource after it that may fail.
    """
    dashboard = "{" if fails else "{}"
    resources: dict[str, Any] = {
        "Role": {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": TRUST}},
        "Function": {"Type": "AWS::Lambda::Function", "Properties": FUNCTION_PROPERTIES},
        "Noted": {
            "Type": "Custom::Noted",
            "Properties": {"ServiceToken": {"Fn::GetAtt": ["Function", "Arn"]}, **properties},
        },
        "Last": {
            "Type": "AWS::CloudWatch::Dashboard",
            "Properties": {"DashboardBody": dashboard},
            "DependsOn": ["Noted"],
        },
    }
    stack = aws.stacks.find(name) or aws.stacks.add(name)
    aws.deployer.deploy(stack, Template({"Resources": resources}), {})
    aws.functions.wait()
    return stack


def requests(log: Path) -> list[tuple[str, str, str]]:
    """Type, version and physical id of each request, in order."""
    return [
        (kind, version, given)
        for kind, _, version, given in map(json.loads, log.read_text().splitlines())
    ]


@pytest.mark.parametrize("is_updated", [True, False])
@pytest.mark.parametrize("new_id", ["new", "old"])
def test_custom_resource_is_rolled_back_in_two_ways(
    aws: SimulatedAccount, tmp_path: Path, is_updated: bool, new_id: str
) -> None:
    """A rollback sends an Update, and deletes a new physical id;
    for a new id it may leave out the Update.
    """
    log, name, is_new = tmp_path / "log", f"Rolled{is_updated}{new_id}", new_id == "new"
    old = {"Log": str(log), "Id": "old", "Version": "1"}
    assert deploy(aws, name, old).status == "CREATE_COMPLETE"
    aws.behaviour = Behaviour(updates_replaced_on_rollback=is_updated)
    stack = deploy(aws, name, {**old, "Id": new_id, "Version": "2"}, fails=True)
    assert stack.status == "UPDATE_ROLLBACK_COMPLETE"
    rollback = [("Update", "1", "id-old")] if is_updated or not is_new else []
    deletion = [("Delete", "2", "id-new")] if is_new else []
    assert requests(log)[1:] == [("Update", "2", f"id-{new_id}"), *rollback, *deletion]
    assert stack.resources["Noted"].physical.id == "id-old"


def test_requests_are_delivered_twice(aws: SimulatedAccount, tmp_path: Path) -> None:
    """About every second request arrives again with the same request id;
    the stack is not affected.
    """
    delivered = []
    for seed in range(4):
        log, name = tmp_path / f"log{seed}", f"Twice{seed}"
        aws.behaviour = Behaviour(seed=seed, duplicates_events=True)
        assert (
            deploy(aws, name, {"Log": str(log), "Id": "one", "Version": "1"}).status
            == "CREATE_COMPLETE"
        )
        assert aws.destroy(name).status == "DELETE_COMPLETE"
        ids = [json.loads(line)[1] for line in log.read_text().splitlines()]
        assert ids == sorted(ids, key=ids.index)  # a repetition directly follows its request
        delivered += [ids.count(each) for each in dict.fromkeys(ids)]
    assert set(delivered) == {1, 2}


def test_denied_requests_have_the_form_of_their_service(aws: SimulatedAccount) -> None:
    """Services with a JSON protocol answer AccessDeniedException, with status
    400 or, for Lambda, 403.
    """
    aws.client("iam").create_role(RoleName="powerless", AssumeRolePolicyDocument=json.dumps(TRUST))
    arn = f"arn:aws:iam::{aws.api.account}:role/powerless"
    credentials = aws.access.assume(arn, service="lambda.amazonaws.com", context={})
    expected: list[tuple[str, str, dict[str, Any], int]] = [
        (
            "application-autoscaling",
            "describe_scalable_targets",
            {"ServiceNamespace": "sagemaker"},
            400,
        ),
        ("sagemaker", "describe_endpoint", {"EndpointName": "any"}, 400),
        ("ssm", "get_parameter", {"Name": "any"}, 400),
        ("lambda", "invoke", {"FunctionName": "any", "Payload": b"{}"}, 403),
    ]
    for service, operation, request, status in expected:
        with pytest.raises(ClientError) as caught:
            getattr(aws.client(service, credentials), operation)(**request)
        answer = caught.value.response
        assert answer["Error"]["Code"] == "AccessDeniedException"
        assert answer["ResponseMetadata"]["HTTPStatusCode"] == status
