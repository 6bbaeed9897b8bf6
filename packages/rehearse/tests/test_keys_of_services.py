"""Keys of topics and queues that CloudWatch and EventBridge write to, also under an alias."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from shared_endpoint import Resources
from small_assembly import rehearsal
from test_simulated_keys import ACCOUNT

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("loopback_stack")]

CODE = "rehearse-data-loses-access"
KEY = {"Fn::GetAtt": ["Key", "Arn"]}
ALIAS = {"Fn::Sub": "arn:${AWS::Partition}:kms:${AWS::Region}:${AWS::AccountId}:alias/mine"}
FOREIGN = {"Fn::Sub": "arn:aws:kms:${AWS::Region}:${AWS::AccountId}:alias/of-another-stack"}
ALARM = {
    "ComparisonOperator": "GreaterThanThreshold",
    "EvaluationPeriods": 1,
    "Namespace": "Shop",
    "MetricName": "Errors",
    "Period": 60,
    "Statistic": "Sum",
    "Threshold": 1,
}


def lets(service: str, **condition: Any) -> dict[str, Any]:
    """A statement of a key's policy that lets a service use it."""
    principal = {"Service": f"{service}.amazonaws.com"}
    actions = ["kms:Decrypt", "kms:GenerateDataKey*"]
    statement = {"Effect": "Allow", "Action": actions, "Principal": principal, "Resource": "*"}
    return {**statement, "Condition": condition} if condition else statement


def with_key(*statements: dict[str, Any], **resources: Any) -> Resources:
    """A key that the account and these statements allow, its alias, and more resources."""
    policy = {"Version": "2012-10-17", "Statement": [{**ACCOUNT, "Resource": "*"}, *statements]}
    found: Resources = {
        "Key": {"Type": "AWS::KMS::Key", "Properties": {"KeyPolicy": policy}},
        "Alias": {
            "Type": "AWS::KMS::Alias",
            "Properties": {"AliasName": "alias/mine", "TargetKeyId": KEY},
        },
    }
    for name, (kind, properties) in resources.items():
        found[name] = {"Type": kind, "Properties": properties, "DependsOn": ["Alias"]}
    return found


def notified(key: Any, *statements: dict[str, Any]) -> Resources:
    """An alarm whose topic is under a key."""
    topic = ("AWS::SNS::Topic", {"KmsMasterKeyId": key})
    alarm = ("AWS::CloudWatch::Alarm", {**ALARM, "AlarmActions": [{"Ref": "Topic"}]})
    return with_key(*statements, Topic=topic, Alarm=alarm)


def sent(key: Any, *statements: dict[str, Any], kind: str, is_target: bool) -> Resources:
    """A rule that sends events to a queue or topic under a key, or what it cannot deliver."""
    properties = {"KmsMasterKeyId": key}
    arn = {"Ref": "Place"} if kind == "AWS::SNS::Topic" else {"Fn::GetAtt": ["Place", "Arn"]}
    function = "arn:aws:lambda:us-east-1:123456789012:function:other"
    target = {"Arn": arn} if is_target else {"Arn": function, "DeadLetterConfig": {"Arn": arn}}
    rule = {"EventPattern": {"source": ["shop"]}, "Targets": [{"Id": "t", **target}]}
    return with_key(
        *statements,
        Place=(kind, properties),
        Policy=policy_of(kind, arn),
        Rule=("AWS::Events::Rule", rule),
    )


def policy_of(kind: str, arn: Any, **condition: Any) -> tuple[str, dict[str, Any]]:
    """The policy of a queue or a topic that lets EventBridge send events."""
    is_topic = kind == "AWS::SNS::Topic"
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": "events.amazonaws.com"},
        "Action": "sns:Publish" if is_topic else "sqs:SendMessage",
        "Resource": arn,
        **({"Condition": condition} if condition else {}),
    }
    document = {"Version": "2012-10-17", "Statement": [statement]}
    of = {"Topics": [{"Ref": "Place"}]} if is_topic else {"Queues": [{"Ref": "Place"}]}
    return f"{kind}Policy", {"PolicyDocument": document, **of}


def refusals(folder: Path, resources: Resources) -> list[str]:
    # In other orders too: a place has one name in all of them.
    found = rehearsal(folder, None, resources, orders=3).problems
    assert not any("not-simulated" in each.path for each in found)
    return [f"{each.message}; {each.hint}" for each in found if each.code == CODE]


@pytest.mark.parametrize("key", [KEY, ALIAS, "alias/mine"])
def test_key_of_a_topic_of_alarms_is_followed(tmp_path: Path, key: Any) -> None:
    """The policy of the key decides, also where the topic names an alias of it."""
    (found,) = refusals(tmp_path, notified(key))
    assert "cloudwatch.amazonaws.com may not write alarm notifications, under key Key" in found
    assert refusals(tmp_path, notified(key, lets("cloudwatch"))) == []


def test_alias_that_no_stack_has_is_no_problem(tmp_path: Path) -> None:
    """Which key it names is not known."""
    assert refusals(tmp_path, notified(FOREIGN)) == []


@pytest.mark.parametrize(
    ("kind", "is_target"),
    [("AWS::SQS::Queue", False), ("AWS::SQS::Queue", True), ("AWS::SNS::Topic", True)],
)
def test_keys_of_the_targets_of_rules(tmp_path: Path, kind: str, is_target: bool) -> None:
    """EventBridge needs the key of a queue or topic, which the key of AWS never allows."""

    def found(key: Any, *statements: dict[str, Any]) -> list[str]:
        resources = sent(key, *statements, kind=kind, is_target=is_target)
        return refusals(tmp_path, resources)

    for key in (KEY, ALIAS):
        (refused,) = found(key)
        assert "events.amazonaws.com may not write events, under key Key" in refused
        assert 'key.grant_encrypt_decrypt(iam.ServicePrincipal("events.amazonaws.com"))' in refused
    own = {"StringEquals": {"aws:SourceAccount": "123456789012"}}
    assert found(KEY, lets("events")) == found(KEY, lets("events", **own)) == []
    of_aws = "alias/aws/sns" if kind == "AWS::SNS::Topic" else "alias/aws/sqs"
    (refused,) = found(of_aws)
    assert f"{of_aws}; give the {kind.rpartition('::')[2].lower()} a key of your own" in refused
    assert found("") == []


@pytest.mark.parametrize("kind", ["AWS::SQS::Queue", "AWS::SNS::Topic"])
def test_policies_of_the_targets_of_rules(tmp_path: Path, kind: str) -> None:
    """EventBridge needs the policy of a queue or a topic of the stacks, unless a role sends."""
    arn = {"Ref": "Place"} if kind == "AWS::SNS::Topic" else {"Fn::GetAtt": ["Place", "Arn"]}

    def found(policy: tuple[str, dict[str, Any]] | None, **target: Any) -> list[str]:
        targets = [{"Id": "t", "Arn": arn, **target}]
        rule = {"EventPattern": {"source": ["shop"]}, "Targets": targets}
        more = {} if policy is None else {"Policy": policy}
        resources = with_key(Place=(kind, {}), Rule=("AWS::Events::Rule", rule), **more)
        return refusals(tmp_path, resources)

    (refused,) = found(None)
    assert "events.amazonaws.com may not write events: s" in refused
    assert "where the" in refused
    assert found(policy_of(kind, arn)) == []
    role = "arn:aws:iam::123456789012:role/sender"
    assert found(None, RoleArn=role) == []


@pytest.mark.parametrize("kind", ["AWS::SQS::Queue", "AWS::SNS::Topic"])
def test_policy_for_one_rule_is_right(tmp_path: Path, kind: str) -> None:
    """The condition of the CDK's target for queues names the rule, whose ARN is not simulated."""
    arn = {"Ref": "Place"} if kind == "AWS::SNS::Topic" else {"Fn::GetAtt": ["Place", "Arn"]}
    condition = {"aws:SourceArn": {"Fn::GetAtt": ["Rule", "Arn"]}}
    rule = {"EventPattern": {"source": ["shop"]}, "Targets": [{"Id": "t", "Arn": arn}]}
    policy = policy_of(kind, arn, ArnEquals=condition)
    resources = with_key(Place=(kind, {}), Rule=("AWS::Events::Rule", rule), Policy=policy)
    assert refusals(tmp_path, resources) == []


def test_queue_outside_of_the_stacks_is_unknown(tmp_path: Path) -> None:
    """The policy of a queue that no stack of the rehearsal creates is not known."""
    arn = "arn:aws:sqs:us-east-1:123456789012:of-another-stack"
    rule = {"EventPattern": {"source": ["shop"]}, "Targets": [{"Id": "t", "Arn": arn}]}
    assert refusals(tmp_path, with_key(Rule=("AWS::Events::Rule", rule))) == []


@pytest.mark.parametrize("source", ["shop", "warehouse"])
def test_what_was_refused_before_is_no_finding_of_an_update(tmp_path: Path, source: str) -> None:
    """An update is silent about a policy that its app lacked before, also without endpoints."""
    arn = {"Fn::GetAtt": ["Place", "Arn"]}

    def app(name: str) -> Resources:
        rule = {"EventPattern": {"source": [name]}, "Targets": [{"Id": "t", "Arn": arn}]}
        return with_key(Place=("AWS::SQS::Queue", {}), Rule=("AWS::Events::Rule", rule))

    found = rehearsal(tmp_path, app("shop"), app(source)).problems
    assert [each.code for each in found] == []
