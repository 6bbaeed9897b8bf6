"""Operations on stacks of the simulated CloudFormation,
with small resources and a small function.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError
from shared_endpoint import trust
from test_simulated_functions import zipped

from cdk_rehearse import SimulatedAccount
from cdk_rehearse.stacks.stack import Stack
from constructs_triton_core.cloud_assembly.template import Template
from constructs_triton_core.errors import TemplateError

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("loopback_stack")]

FUNCTION = """
import json, os, urllib.request
import boto3

def handler(event, context):
    properties = event.get("ResourceProperties", {})
    if properties.get("Hops", "0") != "0":
        hops = str(int(properties["Hops"]) - 1)
        left = {**event, "ResourceProperties": {**properties, "Hops": hops}}
        boto3.client("lambda").invoke(
            FunctionName=context.function_name,
            InvocationType="Event",
            Payload=json.dumps(left).encode(),
        )
        return
    if properties.get("Silent") == "true":
        return
    fails = properties.get("Fails") == "true" and event["RequestType"] != "Delete"
    id = event.get("PhysicalResourceId", "made")
    answer = {"Status": "FAILED" if fails else "SUCCESS", "Reason": "as asked",
              "PhysicalResourceId": id, "StackId": event["StackId"],
              "RequestId": event["RequestId"], "LogicalResourceId": event["LogicalResourceId"],
              "Data": {"Kind": event["RequestType"]}}
    body = json.dumps(answer).encode()
    request = urllib.request.Request(event["ResponseURL"], body, method="PUT")
    urllib.request.urlopen(request).read()
"""
TRUST = trust("lambda")


@pytest.fixture(scope="module")
def aws() -> Iterator[SimulatedAccount]:
    with SimulatedAccount(functions="python") as account:
        account.bootstrap()
        account.client("s3").put_object(
            Bucket=asset_bucket(account), Key="code.zip", Body=zipped({"index.py": FUNCTION})
        )
        yield account


def asset_bucket(aws: SimulatedAccount) -> str:
    return f"cdk-hnb659fds-assets-{aws.api.account}-{aws.api.region}"


def deploy(aws: SimulatedAccount, name: str, resources: dict[str, Any], **sections: Any) -> Stack:
    """Create or update a stack of these resources."""
    stack = aws.stacks.find(name) or aws.stacks.add(name)
    aws.deployer.deploy(stack, Template({"Resources": resources, **sections}), {})
    aws.functions.wait()
    return stack


def topic(display: str = "one", **more: Any) -> dict[str, Any]:
    return {"Type": "AWS::SNS::Topic", "Properties": {"DisplayName": display, **more}}


def broken(*depends_on: str) -> dict[str, Any]:
    """Return a resource that its service rejects, created after the others."""
    return {
        "Type": "AWS::CloudWatch::Dashboard",
        "Properties": {"DashboardBody": "{"},
        "DependsOn": list(depends_on),
    }


def custom(*, may_invoke_itself: bool = True, **properties: Any) -> dict[str, Any]:
    """Return a function with its role, and a custom resource that it handles."""
    invoke = {"Effect": "Allow", "Action": "lambda:InvokeFunction", "Resource": "*"}
    policies = (
        [{"PolicyName": "self", "PolicyDocument": {"Version": "2012-10-17", "Statement": [invoke]}}]
        if may_invoke_itself
        else []
    )
    return {
        "Role": {
            "Type": "AWS::IAM::Role",
            "Properties": {"AssumeRolePolicyDocument": TRUST, "Policies": policies},
        },
        "Function": {
            "Type": "AWS::Lambda::Function",
            "Properties": {
                "Code": {
                    "S3Bucket": {
                        "Fn::Sub": "cdk-hnb659fds-assets-${AWS::AccountId}-${AWS::Region}"
                    },
                    "S3Key": "code.zip",
                },
                "Handler": "index.handler",
                "Runtime": "python3.13",
                "Role": {"Fn::GetAtt": ["Role", "Arn"]},
                "Timeout": 60,
            },
        },
        "Answered": {
            "Type": "Custom::Answered",
            "Properties": {"ServiceToken": {"Fn::GetAtt": ["Function", "Arn"]}, **properties},
        },
    }


def display_name(aws: SimulatedAccount, stack: Stack, logical_id: str) -> str:
    arn = stack.resources[logical_id].physical.id
    attributes = aws.client("sns").get_topic_attributes(TopicArn=arn)["Attributes"]
    return str(attributes["DisplayName"])


def topics(aws: SimulatedAccount, stack: Stack) -> list[str]:
    arns = [each["TopicArn"] for each in aws.client("sns").list_topics()["Topics"]]
    return [arn for arn in arns if f":{stack.name}-" in arn]


def statuses(stack: Stack, logical_id: str) -> list[str]:
    return [event.status for event in stack.events if event.logical_id == logical_id]


def test_misspelled_types_are_refused_first(aws: SimulatedAccount) -> None:
    """A type that CloudFormation does not have fails the stack before any resource is created."""
    stack = deploy(aws, "Unknown", {"A": topic(), "B": {"Type": "AWS::SQS::Quue"}})
    assert stack.status == "ROLLBACK_COMPLETE"
    assert "Unrecognized resource types: [AWS::SQS::Quue]" in stack.reason
    assert topics(aws, stack) == []


def test_resources_without_their_condition_are_left_out(aws: SimulatedAccount) -> None:
    """A resource and an output whose condition is false are not created."""
    never = {"Never": {"Fn::Equals": ["a", "b"]}}
    resources = {"A": topic(), "B": {**topic(), "Condition": "Never"}}
    outputs = {
        "Kept": {"Value": {"Ref": "A"}},
        "Left": {"Condition": "Never", "Value": {"Ref": "B"}},
    }
    stack = deploy(aws, "Conditional", resources, Conditions=never, Outputs=outputs)
    assert stack.status == "CREATE_COMPLETE"
    assert list(stack.output_values) == ["Kept"]
    assert len(topics(aws, stack)) == 1


def test_failed_update_restores_properties(aws: SimulatedAccount) -> None:
    """Changed resources get their old properties, new ones are deleted,
    and removed ones are kept.
    """
    stack = deploy(aws, "Restored", {"A": topic("one"), "Dropped": topic()})
    before = {name: each.physical.id for name, each in stack.resources.items()}
    deploy(aws, "Restored", {"A": topic("two"), "Added": topic(), "Z": broken("A", "Added")})
    assert stack.status == "UPDATE_ROLLBACK_COMPLETE"
    assert display_name(aws, stack, "A") == "one"
    assert {name: each.physical.id for name, each in stack.resources.items()} == before
    assert len(topics(aws, stack)) == 2
    assert statuses(stack, "Added")[-1] == "DELETE_COMPLETE"


def test_named_resources_cannot_be_replaced(aws: SimulatedAccount) -> None:
    """The replacement of a resource with a fixed name would have the same name, so it fails."""
    log = {
        "Type": "AWS::IAM::Role",
        "Properties": {"AssumeRolePolicyDocument": TRUST, "RoleName": "fixed"},
    }
    stack = deploy(aws, "Named", {"A": log})
    moved = {**log, "Properties": {**log["Properties"], "Path": "/elsewhere/"}}  # type: ignore[dict-item]
    deploy(aws, "Named", {"A": moved})
    assert stack.status == "UPDATE_ROLLBACK_COMPLETE"
    assert "cannot update a stack when a custom-named resource requires replacing" in stack.reason


def test_retained_resources_outlive_the_stack(aws: SimulatedAccount) -> None:
    """``Retain`` keeps a resource when the stack is deleted, as the events report."""
    stack = deploy(
        aws, "Retaining", {"Kept": {**topic(), "DeletionPolicy": "Retain"}, "Gone": topic()}
    )
    aws.destroy("Retaining")
    assert stack.status == "DELETE_COMPLETE"
    assert [arn for arn in topics(aws, stack) if "-Kept-" in arn] == topics(aws, stack) != []
    assert statuses(stack, "Kept")[-1] == "DELETE_SKIPPED"


def test_bucket_with_objects_stops_the_deletion(aws: SimulatedAccount) -> None:
    """A bucket that contains objects is not deleted, and neither is its stack."""
    stack = deploy(aws, "Holding", {"Bucket": {"Type": "AWS::S3::Bucket"}})
    bucket = stack.resources["Bucket"].physical.id
    aws.client("s3").put_object(Bucket=bucket, Key="a", Body=b"")
    aws.destroy("Holding")
    assert stack.status == "DELETE_FAILED"
    aws.client("s3").delete_object(Bucket=bucket, Key="a")
    aws.destroy("Holding")
    assert stack.status == "DELETE_COMPLETE"


def test_functions_handle_custom_resources(aws: SimulatedAccount) -> None:
    """A function runs for create, update and delete; the data of its response are attributes."""
    outputs = {"Kind": {"Value": {"Fn::GetAtt": ["Answered", "Kind"]}}}
    stack = deploy(aws, "Answering", custom(Colour="red"), Outputs=outputs)
    assert (stack.status, stack.output_values) == ("CREATE_COMPLETE", {"Kind": "Create"})
    deploy(aws, "Answering", custom(Colour="blue"), Outputs=outputs)
    assert (stack.status, stack.output_values) == ("UPDATE_COMPLETE", {"Kind": "Update"})
    aws.destroy("Answering")
    assert stack.status == "DELETE_COMPLETE"


def test_functions_may_invoke_themselves(aws: SimulatedAccount) -> None:
    """A function invokes itself before it responds, if its role allows that."""
    ran = len(aws.functions.invocations)
    assert deploy(aws, "Handing", custom(Hops=2)).status == "CREATE_COMPLETE"
    assert len(aws.functions.invocations) == ran + 3
    refused = deploy(aws, "Refused", custom(may_invoke_itself=False, Hops=1))
    assert refused.status == "ROLLBACK_COMPLETE"
    assert "did not receive a response" in refused.reason


def test_failing_and_silent_functions_fail_the_stack(aws: SimulatedAccount) -> None:
    """A failed resource is deleted by its ID; a function without a response
    fails after its timeout.
    """
    failed = deploy(aws, "Failing", custom(Fails=True))
    assert failed.status == "ROLLBACK_COMPLETE"
    assert "as asked" in failed.reason
    assert statuses(failed, "Answered")[-1] == "DELETE_COMPLETE"
    silent = deploy(aws, "Silent", custom(Silent=True))
    assert silent.status == "ROLLBACK_COMPLETE"
    assert "did not receive a response" in silent.reason


def test_change_sets_show_replacements(aws: SimulatedAccount) -> None:
    """A change set has the changed property, the replacement, and the resources that it affects."""
    policy = {
        "Type": "AWS::SNS::Topic",
        "Properties": {"DisplayName": {"Fn::GetAtt": ["A", "TopicName"]}},
    }
    deploy(aws, "Telling", {"A": topic(TopicName="Telling-a"), "B": policy, "Gone": topic()})
    body = json.dumps(
        {"Resources": {"A": topic(TopicName="Telling-b"), "B": policy, "New": topic()}}
    )
    client = aws.client("cloudformation")
    client.create_change_set(StackName="Telling", ChangeSetName="next", TemplateBody=body)
    described = client.describe_change_set(StackName="Telling", ChangeSetName="next")["Changes"]
    changes = {
        change["ResourceChange"]["LogicalResourceId"]: change["ResourceChange"]
        for change in described
    }
    actions = {
        name: (change["Action"], change.get("Replacement")) for name, change in changes.items()
    }
    assert actions == {
        "A": ("Modify", "True"),
        "B": ("Modify", "False"),
        "New": ("Add", None),
        "Gone": ("Remove", None),
    }
    (cause,) = changes["B"]["Details"]
    assert (cause["ChangeSource"], cause["CausingEntity"]) == ("ResourceReference", "A")


def test_unknown_actions_and_stacks_are_api_errors(aws: SimulatedAccount) -> None:
    """An unknown action and an unknown stack are errors of the API, with a code."""
    client = aws.client("cloudformation")
    with pytest.raises(ClientError, match="InvalidAction"):
        client.list_exports()
    with pytest.raises(ClientError, match="does not exist"):
        client.describe_stacks(StackName="Nothing")


def test_rules_and_parameters_are_checked(aws: SimulatedAccount) -> None:
    """A parameter without a value and a violated rule are errors before anything is created."""
    parameters = {"Stage": {"Type": "String"}}
    with pytest.raises(TemplateError, match="must have values"):
        aws.stacks.read_parameters(Template({"Parameters": parameters}), {})
    rule = {"Assertions": [{"Assert": {"Fn::Not": [{"Fn::Contains": [["a"], {"Ref": "Stage"}]}]}}]}
    declared = {"Stage": {"Type": "String", "Default": "a"}}
    stack = deploy(aws, "Ruled", {"A": topic()}, Parameters=declared, Rules={"NotA": rule})
    assert (stack.status, stack.resources) == ("ROLLBACK_COMPLETE", {})
    assert "NotA" in stack.reason


def test_environment_of_the_process_is_unchanged(aws: SimulatedAccount, tmp_path: Path) -> None:
    """Tools connect to loopback through a separate environment."""
    environment = aws.environment()
    assert environment["AWS_ENDPOINT_URL"] == aws.endpoint_url
    assert base64.b64encode(environment["AWS_ACCESS_KEY_ID"].encode()) == b"dGVzdGluZw=="
    assert all(
        url.startswith("http://") for name, url in environment.items() if "ENDPOINT_URL" in name
    )
