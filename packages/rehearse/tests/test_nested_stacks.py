"""Nested stacks, stored values, and values of what is not simulated, within one operation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from small_assembly import BUCKET as ASSETS
from small_assembly import rehearsal

from cdk_rehearse import SimulatedAccount
from cdk_rehearse.stacks.stack import Stack
from constructs_triton_core.cloud_assembly.template import Template

pytestmark = pytest.mark.e2e
BUCKET = "templates"


@pytest.fixture(scope="module")
def aws() -> Iterator[SimulatedAccount]:
    with SimulatedAccount() as account:
        account.client("s3").create_bucket(Bucket=BUCKET)
        yield account


def inner(**topic: Any) -> dict[str, Any]:
    """Return a template with a topic and a queue,
    whose output is the name that its parameter gives.
    """
    return {
        "Parameters": {"Label": {"Type": "String"}},
        "Resources": {
            "Topic": {
                "Type": "AWS::SNS::Topic",
                "Properties": {"DisplayName": {"Ref": "Label"}, **topic},
            },
            "Queue": {"Type": "AWS::SQS::Queue"},
        },
        "Outputs": {
            "Topic": {"Value": {"Ref": "Topic"}},
            "Queue": {"Value": {"Fn::GetAtt": "Queue.Arn"}},
        },
    }


def deploy(
    aws: SimulatedAccount, name: str, template: dict[str, Any], *, dashboard: str = "{}"
) -> tuple[Stack, Stack]:
    """Deploy a stack with a nested stack of this template,
    and with a dashboard that depends on it.
    """
    body = json.dumps(template)
    key = f"{abs(hash(body))}.json"
    aws.client("s3").put_object(Bucket=BUCKET, Key=key, Body=body)
    url = f"https://{BUCKET}.s3.us-east-1.amazonaws.com/{key}"
    nested = {"TemplateURL": url, "Parameters": {"Label": "a label"}}
    resources = {
        "Nested": {"Type": "AWS::CloudFormation::Stack", "Properties": nested},
        "Dashboard": {
            "Type": "AWS::CloudWatch::Dashboard",
            "Properties": {"DashboardBody": dashboard},
            "DependsOn": "Nested",
        },
    }
    outputs = {"Topic": {"Value": {"Fn::GetAtt": ["Nested", "Outputs.Topic"]}}}
    stack = aws.stacks.find(name) or aws.stacks.add(name)
    aws.deployer.deploy(stack, Template({"Resources": resources, "Outputs": outputs}), {})
    found = aws.stacks.find(stack.resources["Nested"].physical.id) if stack.resources else None
    return stack, found or stack


def topics(aws: SimulatedAccount) -> list[str]:
    """The names of the topics of the account."""
    listed = aws.client("sns").list_topics()["Topics"]
    return [topic["TopicArn"].rpartition(":")[2] for topic in listed]


def physical_ids(stack: Stack) -> dict[str, str]:
    """The physical ID of each resource of a stack."""
    return {name: deployed.physical.id for name, deployed in stack.resources.items()}


def test_nested_stack_is_a_part_of_the_operation_on_its_parent(aws: SimulatedAccount) -> None:
    """It is created with its parameters, updated before what depends on it,
    and deleted with its parent.
    """
    stack, nested = deploy(aws, "Parent", inner(TopicName="one"))
    assert (stack.status, nested.status) == ("CREATE_COMPLETE", "CREATE_COMPLETE"), stack.reason
    arn = stack.output_values["Topic"]
    assert (
        aws.client("sns").get_topic_attributes(TopicArn=arn)["Attributes"]["DisplayName"]
        == "a label"
    )

    stack, again = deploy(aws, "Parent", inner(TopicName="two"))
    assert (stack.status, again.id) == ("UPDATE_COMPLETE", nested.id), stack.reason
    assert stack.output_values["Topic"].endswith(":two")
    assert topics(aws) == ["two"]
    ends = [(event.logical_id, event.status) for event in nested.events]
    assert ends.index(("Topic", "UPDATE_COMPLETE")) < ends.index(("Topic", "DELETE_COMPLETE"))

    assert aws.destroy("Parent").status == "DELETE_COMPLETE"
    assert (nested.status, topics(aws)) == ("DELETE_COMPLETE", [])


def test_nested_stack_is_rolled_back_with_its_parent(aws: SimulatedAccount) -> None:
    """After a failure of the parent the nested stack has its old resources,
    which were never deleted.
    """
    _, nested = deploy(aws, "Restored", inner(TopicName="old"))
    before = physical_ids(nested)

    stack, _ = deploy(aws, "Restored", inner(TopicName="new"), dashboard="{")
    assert (stack.status, nested.status) == ("UPDATE_ROLLBACK_COMPLETE", "UPDATE_ROLLBACK_COMPLETE")
    assert physical_ids(nested) == before
    assert topics(aws) == ["old"]
    deleted = {event.physical_id for event in nested.events if event.status == "DELETE_COMPLETE"}
    assert before["Topic"] not in deleted
    assert deploy(aws, "Restored", inner(TopicName="new"))[0].status == "UPDATE_COMPLETE"
    assert aws.destroy("Restored").status == "DELETE_COMPLETE"


def test_failed_nested_stack_fails_its_parent(aws: SimulatedAccount) -> None:
    """The reason contains that of the nested stack, and nothing is left."""
    stack, _ = deploy(aws, "Failing", inner(Unknown="property"))
    assert stack.status == "ROLLBACK_COMPLETE"
    assert "was not successfully created" in stack.reason
    assert "Unknown" in stack.reason
    assert topics(aws) == []


def test_values_of_resources_that_are_not_simulated_stay_opaque(aws: SimulatedAccount) -> None:
    """They pass patterns and enumerations, are replaced as the schema says,
    and never equal a known value.
    """

    def versions(fifo: bool) -> Stack:
        stack = aws.stacks.find("Opaque") or aws.stacks.add("Opaque")
        name = {"Ref": "Domain"}
        queue = {"Type": "AWS::SQS::Queue", "Properties": {"FifoQueue": True} if fifo else {}}
        group = {
            "LogGroupName": name,
            "RetentionInDays": 7,
            "KmsKeyId": {"Fn::GetAtt": "Other.KeyArn"},
        }
        resources = {
            "Queue": queue,
            "Domain": {
                "Type": "AWS::SageMaker::Space",
                "Properties": {"DomainId": "d-1", "SpaceName": "s"},
            },
            "Other": {
                "Type": "Datadog::Monitors::Monitor",
                "Properties": {"Anything": {"Ref": "Queue"}},
            },
            "Group": {"Type": "AWS::Logs::LogGroup", "Properties": group},
            "Value": {
                "Type": "AWS::SSM::Parameter",
                "Properties": {"Type": "String", "Value": "{{resolve:ssm:/absent:1}}"},
            },
        }
        aws.deployer.deploy(stack, Template({"Resources": resources}), {})
        return stack

    created = versions(fifo=False)
    assert created.status == "CREATE_COMPLETE", created.reason
    before = created.resources["Queue"].physical
    assert before.attributes["Arn"].startswith("arn:aws:sqs:us-east-1:123456789012:not-simulated-")
    assert "QueueArn" not in before.attributes
    assert (
        "not-simulated"
        in aws.client("ssm").get_parameter(Name=created.resources["Value"].physical.id)[
            "Parameter"
        ]["Value"]
    )
    updated = versions(fifo=True)
    assert updated.status == "UPDATE_COMPLETE", updated.reason
    assert updated.resources["Queue"].physical.id != before.id
    assert aws.not_simulated["Datadog::Monitors::Monitor"] == ["Opaque/Other"]
    assert aws.not_simulated["value of AWS::SSM::Parameter"] == ["/absent:1"]
    assert aws.destroy("Opaque").status == "DELETE_COMPLETE"


def test_stack_that_is_nested_in_itself_fails(aws: SimulatedAccount) -> None:
    """With a reason at a bounded depth, and everything is deleted."""
    url = f"https://{BUCKET}.s3.us-east-1.amazonaws.com/self.json"
    body = {
        "Resources": {
            "A": {"Type": "AWS::CloudFormation::Stack", "Properties": {"TemplateURL": url}}
        }
    }
    aws.client("s3").put_object(Bucket=BUCKET, Key="self.json", Body=json.dumps(body))
    stack = aws.stacks.add("endless")
    aws.deployer.deploy(stack, Template(body), {})
    assert stack.status == "ROLLBACK_COMPLETE"
    assert "stacks are nested more than 16 deep; is one nested in itself?" in stack.reason


def test_values_that_double_fail_the_operation(aws: SimulatedAccount) -> None:
    """A value that has the one before four times, thirty deep, is the reason of a rollback."""
    values: list[Any] = [
        "aaaa",
        *({"Fn::Join": ["", [{"Fn::GetAtt": f"P{one}.Value"}] * 4]} for one in range(30)),
    ]
    parameters = {
        f"P{number}": {
            "Type": "AWS::SSM::Parameter",
            "Properties": {"Type": "String", "Value": value},
        }
        for number, value in enumerate(values)
    }
    stack = aws.stacks.add("doubled")
    aws.deployer.deploy(stack, Template({"Resources": parameters}), {})
    assert stack.status == "ROLLBACK_COMPLETE"
    assert stack.reason.startswith("P9: Fn::Join: its value has more than 1,000,000 characters")


def test_retained_resource_of_a_nested_stack_is_left_behind(tmp_path: Path) -> None:
    """An update that removes a nested stack says what the nested stack retains."""
    key = {
        "Type": "AWS::KMS::Key",
        "DeletionPolicy": "Retain",
        "Properties": {"KeyPolicy": {"Statement": []}},
    }
    url = f"https://s3.us-east-1.amazonaws.com/{ASSETS}/inner.json"
    topic = {"Topic": {"Type": "AWS::SNS::Topic"}}
    nested = {"Nested": {"Type": "AWS::CloudFormation::Stack", "Properties": {"TemplateURL": url}}}
    files = {"inner.json": json.dumps({"Resources": {"Key": key}}).encode()}
    found = rehearsal(tmp_path, {**topic, **nested}, topic, files=files)
    assert found.status == {"S": "UPDATE_COMPLETE"}
    assert [leftover.logical_id for leftover in found.leftovers] == ["Key"]


def test_step_of_a_nested_stack_that_fails_rolls_its_parent_back(tmp_path: Path) -> None:
    """Each step fails once, also those of nested stacks, and then the whole update is undone."""

    def resources(label: str) -> dict[str, Any]:
        url = f"https://s3.us-east-1.amazonaws.com/{ASSETS}/inner.json"
        inside = {"TemplateURL": url, "Parameters": {"Label": label}}
        return {"Nested": {"Type": "AWS::CloudFormation::Stack", "Properties": inside}}

    files = {"inner.json": json.dumps(inner()).encode()}
    found = rehearsal(
        tmp_path, resources("a label"), resources("another"), failures="each", files=files
    )
    assert [step.logical_id for step in found.steps] == ["Topic", "Nested"]
    assert [(failure.logical_id, failure.status) for failure in found.failures] == [
        ("Topic", "UPDATE_ROLLBACK_COMPLETE"),
        ("Nested", "UPDATE_ROLLBACK_COMPLETE"),
    ]


def test_instances_of_a_nested_stack_fail_one_by_one(tmp_path: Path) -> None:
    """Of two nested stacks with the same logical IDs, the step that fails is in the one that the
    report names, by the path of its construct.
    """
    url = f"https://s3.us-east-1.amazonaws.com/{ASSETS}/inner.json"

    def resources(label: str) -> dict[str, Any]:
        inside = {"TemplateURL": url, "Parameters": {"Label": label}}
        nested = {"Type": "AWS::CloudFormation::Stack", "Properties": inside}
        return {"North": nested, "South": {**nested, "DependsOn": "North"}}

    files = {"inner.json": json.dumps(inner()).encode()}
    found = rehearsal(tmp_path, resources("one"), resources("two"), failures="each", files=files)
    steps = ["North/Topic", "North", "South/Topic", "South"]
    assert [step.place for step in found.steps] == steps
    assert [(failure.place, failure.reason.split(": ")[0]) for failure in found.failures] == [
        ("North/Topic", "North"),
        ("North", "North"),
        ("South/Topic", "South"),
        ("South", "South"),
    ]
    assert {step.type for step in found.steps} == {"AWS::SNS::Topic", "AWS::CloudFormation::Stack"}
