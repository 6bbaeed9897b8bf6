"""Topics of alarms: CloudWatch may publish, and use the key."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from cdk_apps import ENVIRONMENT, add_endpoint, make_app, make_stack, resources, synthesize

from constructs_triton.cdk.monitoring.alarms import TritonAlarms

CLOUDWATCH = {"Service": "cloudwatch.amazonaws.com"}
TOPIC = "arn:aws:sns:eu-west-1:123456789012:on-call"
KEY = "arn:aws:kms:eu-west-1:123456789012:key/11111111-2222-3333-4444-555555555555"


def add_alarms(stack: cdk.Stack, path: Path, *topics: sns.ITopic) -> TritonAlarms:
    return add_endpoint(stack, path).add_alarms(actions=[*map(actions.SnsAction, topics)])


def warnings(alarms: TritonAlarms) -> list[str]:
    """The warnings of alarms after the synthesis."""
    return [str(entry.data) for entry in alarms.node.metadata if entry.type == "aws:cdk:warning"]


def allowed(template: dict[str, Any], kind: str, document: str) -> list[Any]:
    """The actions that each policy of a type allows CloudWatch."""
    found = []
    for resource in resources(template, kind).values():
        statements = resource["Properties"][document]["Statement"]
        given = [each["Action"] for each in statements if each["Principal"] == CLOUDWATCH]
        found.append([*given])
    return found


def test_topic_with_a_policy_and_a_key(tmp_path: Path) -> None:
    """CloudWatch gets each permission once, also for two sets of alarms and an action of later."""
    stack = make_stack()
    there = cdk.Stack(cdk.Stage.of(stack), "Keys", env=ENVIRONMENT)
    topic = sns.Topic(there, "Topic", master_key=kms.Key(there, "Key"), enforce_ssl=True)
    endpoint = add_endpoint(stack, tmp_path)
    first = endpoint.add_alarms(actions=[actions.SnsAction(topic)])
    second = TritonAlarms(stack, "Others", endpoint=endpoint)
    for alarm in second.alarms.values():
        alarm.add_ok_action(actions.SnsAction(topic))
    synthesize(stack)
    template = synthesize(there)
    assert allowed(template, "AWS::SNS::TopicPolicy", "PolicyDocument") == [["sns:Publish"]]
    assert allowed(template, "AWS::KMS::Key", "KeyPolicy") == [
        [["kms:Decrypt", "kms:GenerateDataKey*"]]
    ]
    assert warnings(first) == warnings(second) == []


def test_policy_of_a_topic_stays_where_cloudwatch_may_publish(tmp_path: Path) -> None:
    """Neither a topic without a policy nor one whose policy allows it gets a statement."""
    stack = make_stack()
    plain, open_topic = sns.Topic(stack, "Plain"), sns.Topic(stack, "Open")
    open_topic.grant_publish(iam.ServicePrincipal("cloudwatch.amazonaws.com"))
    alarms = add_alarms(stack, tmp_path, plain, open_topic)
    template = synthesize(stack)
    assert allowed(template, "AWS::SNS::TopicPolicy", "PolicyDocument") == [["sns:Publish"]]
    assert warnings(alarms) == []


def imported_with_a_key(stack: cdk.Stack) -> sns.ITopic:
    return sns.Topic.from_topic_attributes(stack, "Topic", topic_arn=TOPIC, key_arn=KEY)


def with_an_imported_key(stack: cdk.Stack) -> sns.ITopic:
    return sns.Topic(stack, "Topic", master_key=kms.Key.from_key_arn(stack, "Key", KEY))


def with_the_key_of_aws(stack: cdk.Stack) -> sns.ITopic:
    key = kms.Alias.from_alias_name(stack, "Key", "alias/aws/sns")
    return sns.Topic(stack, "Topic", master_key=key)


def with_a_policy_of_its_own(stack: cdk.Stack) -> sns.ITopic:
    topic = sns.Topic(stack, "Topic")
    statement = {"Effect": "Allow", "Action": "sns:Publish", "Principal": {"AWS": "123456789012"}}
    sns.CfnTopicPolicy(
        stack, "Policy", topics=[topic.topic_arn], policy_document={"Statement": [statement]}
    )
    return topic


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (imported_with_a_key, f"encrypted with a KMS key {KEY} whose policy this app cannot"),
        (with_an_imported_key, f"encrypted with a KMS key {KEY} whose policy this app cannot"),
        (with_the_key_of_aws, "AWS managed key alias/aws/sns, which CloudWatch may not use"),
        (with_a_policy_of_its_own, "does not let CloudWatch publish"),
    ],
)
def test_what_the_app_cannot_change_is_a_warning(
    tmp_path: Path, make: Callable[[cdk.Stack], sns.ITopic], message: str
) -> None:
    """An imported key, the key of AWS and a policy without an object of the CDK are reported."""
    stack = make_stack()
    alarms = add_alarms(stack, tmp_path, make(stack))
    synthesize(stack)
    (warning,) = warnings(alarms)
    assert message in warning


def test_topic_of_which_nothing_is_known(tmp_path: Path) -> None:
    """An imported topic without a key has no warning."""
    stack = make_stack()
    alarms = add_alarms(stack, tmp_path, sns.Topic.from_topic_arn(stack, "Topic", TOPIC))
    synthesize(stack)
    assert warnings(alarms) == []


def test_alarms_without_actions_are_a_warning(tmp_path: Path) -> None:
    """Alarms that send nothing have a warning; those that roll updates back have none."""
    stack = cdk.Stack(make_app(), "Test")
    endpoint = add_endpoint(stack, tmp_path, endpoint_name="one")
    silent, rolling, later = (
        TritonAlarms(stack, name, endpoint=endpoint) for name in ("Silent", "Rolling", "Later")
    )
    endpoint.add_rollback_alarms(*rolling.rollback_alarms)
    next(iter(later.alarms.values())).add_alarm_action(actions.SnsAction(sns.Topic(stack, "Topic")))
    synthesize(stack)
    assert ["nothing is sent when" in each for each in warnings(silent)] == [True]
    assert warnings(rolling) == warnings(later) == []
