"""What services refuse of resources that exist without doing anything."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from shared_endpoint import deploy

from cdk_rehearse import SimulatedAccount
from cdk_rehearse.services.resource_schemas import resource_schema
from cdk_rehearse.stacks.service_rules import _RULES, _TESTS

Properties = dict[str, Any]


def _index(name: str, projection: str = "ALL") -> Properties:
    key = [{"AttributeName": "id", "KeyType": "HASH"}]
    return {"IndexName": name, "KeySchema": key, "Projection": {"ProjectionType": projection}}


def _table(*indexes: Properties, **properties: Any) -> Properties:
    return {
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": "S"}],
        "BillingMode": "PAY_PER_REQUEST",
        "GlobalSecondaryIndexes": list(indexes),
        **properties,
    }


def _replicas(*indexes: Properties, **replica: Any) -> Properties:
    return _table(*indexes, Replicas=[{"Region": "us-east-1", **replica}])


def _user(required: bool) -> Properties:
    return {"Name": "email", "Required": required, "Mutable": True}


def _task(memory: str) -> Properties:
    web = {"Name": "web", "Image": "nginx", "Cpu": 64, "Memory": 64}
    fargate: Properties = {"RequiresCompatibilities": ["FARGATE"], "NetworkMode": "awsvpc"}
    return {"ContainerDefinitions": [web], "Cpu": "256", "Memory": memory, **fargate}


_POOL = {"UserPoolId": "us-east-1_a"}
_CUSTOM = {
    **_POOL,
    "CustomDomainConfig": {"CertificateArn": "arn:aws:acm:us-east-1:123456789012:certificate/a"},
}
_SECURE = {"MasterUsername": "shop", "MasterUserPassword": "not-a-secret"}
_ONE, _TWO, _THREE = _index("one"), _index("two"), _index("three")
_ACCEPTED: list[tuple[str, Properties, Properties]] = [
    ("DynamoDB::Table", _table(_ONE), _table(_ONE, _TWO)),
    ("DynamoDB::Table", _table(_ONE, _TWO), _table(_ONE)),
    ("DynamoDB::GlobalTable", _replicas(_ONE), _replicas(_ONE, _TWO)),
    (
        "RDS::DBInstance",
        {**_SECURE, "EngineVersion": "16.8"},
        {**_SECURE, "EngineVersion": "16.10"},
    ),
    ("RDS::DBInstance", {**_SECURE, "EngineVersion": "16.8"}, {**_SECURE, "EngineVersion": "16"}),
    ("RDS::DBInstance", {"AllocatedStorage": "90"}, {"AllocatedStorage": "100"}),
    ("Cognito::UserPool", {"Schema": [_user(True)]}, {"Schema": [_user(True), {"Name": "plan"}]}),
    (
        "Cognito::UserPoolDomain",
        {**_POOL, "Domain": "shop"},
        {**_CUSTOM, "Domain": "login.example.com"},
    ),
    ("ECS::TaskDefinition", _task("512"), _task("2048")),
    (
        "Events::Rule",
        {"ScheduleExpression": "rate(1 hour)"},
        {"ScheduleExpression": "cron(0 3 ? * MON-FRI *)"},
    ),
    (
        "Events::Rule",
        {"ScheduleExpression": "cron(0/5 8-17 ? * 6#3 *)"},
        {"EventPattern": {"source": ["shop"]}},
    ),
]
_REFUSED: list[tuple[str, Properties, Properties, str]] = [
    ("DynamoDB::Table", _table(), _table(_ONE, _TWO), "more than one GSI"),
    ("DynamoDB::Table", _table(_ONE), _table(_TWO), "more than one GSI"),
    ("DynamoDB::GlobalTable", _replicas(_ONE), _replicas(_ONE, _TWO, _THREE), "more than one GSI"),
    (
        "DynamoDB::Table",
        _table(_ONE),
        _table(_index("one", "KEYS_ONLY")),
        "Cannot update GSI's properties",
    ),
    (
        "DynamoDB::GlobalTable",
        _replicas(_ONE),
        _replicas(_index("one", "KEYS_ONLY")),
        "Cannot update GSI's",
    ),
    (
        "RDS::DBInstance",
        {"EngineVersion": "16.8"},
        {"EngineVersion": "15.12"},
        "upgrade from 16.8 to 15.12",
    ),
    (
        "RDS::DBInstance",
        {"EngineVersion": "16.10"},
        {"EngineVersion": "16.8"},
        "upgrade from 16.10 to 16.8",
    ),
    (
        "RDS::DBInstance",
        {"AllocatedStorage": "100"},
        {"AllocatedStorage": 50},
        "50 is less than 100",
    ),
    (
        "RDS::DBCluster",
        {"EngineVersion": "16.8"},
        {"EngineVersion": "16.6"},
        "upgrade from 16.8 to 16.6",
    ),
    (
        "EC2::Volume",
        {"AvailabilityZone": "a", "Size": 9},
        {"AvailabilityZone": "a", "Size": 8},
        "smaller than",
    ),
    (
        "Cognito::UserPool",
        {"Schema": [_user(True)]},
        {"Schema": [_user(False)]},
        "cannot be modified or deleted",
    ),
    ("Cognito::UserPool", {"Schema": [_user(True)]}, {}, "cannot be modified or deleted"),
    (
        "Cognito::UserPool",
        {"AliasAttributes": ["email"]},
        {},
        "not allowed for property - AliasAttributes",
    ),
    (
        "Cognito::UserPool",
        {},
        {"UsernameAttributes": ["email"]},
        "for property - UsernameAttributes",
    ),
    (
        "Cognito::UserPool",
        {},
        {"UsernameConfiguration": {"CaseSensitive": True}},
        "- UsernameConfiguration",
    ),
    (
        "Cognito::UserPoolDomain",
        {**_POOL, "Domain": "a"},
        {**_POOL, "Domain": "b"},
        "already has a domain",
    ),
    ("ECS::TaskDefinition", _task("512"), _task("4096"), "No Fargate configuration exists"),
    (
        "Events::Rule",
        {"ScheduleExpression": "rate(1 day)"},
        {"ScheduleExpression": "rate(1 days)"},
        "not valid",
    ),
    (
        "Events::Rule",
        {},
        {"ScheduleExpression": "cron(0 3 * * * *)"},
        "ScheduleExpression is not valid",
    ),
    (
        "Events::Rule",
        {},
        {"ScheduleExpression": "cron(0 3 ? * ? *)"},
        "ScheduleExpression is not valid",
    ),
]
_PROTECTED: list[tuple[str, Properties]] = [
    ("DynamoDB::Table", _table(DeletionProtectionEnabled=True)),
    ("DynamoDB::GlobalTable", _replicas(DeletionProtectionEnabled=True)),
    ("RDS::DBInstance", {"DeletionProtection": "true"}),
    ("RDS::DBCluster", {"DeletionProtection": True}),
    ("DocDB::DBCluster", {"DeletionProtection": True}),
    ("Neptune::DBCluster", {"DeletionProtection": True}),
    ("Cognito::UserPool", {"DeletionProtection": "ACTIVE"}),
    (
        "ElasticLoadBalancingV2::LoadBalancer",
        {
            "Subnets": ["a"],
            "LoadBalancerAttributes": [{"Key": "deletion_protection.enabled", "Value": "true"}],
        },
    ),
]


@pytest.fixture(scope="module")
def plain() -> Iterator[SimulatedAccount]:
    with SimulatedAccount() as account:
        account.api.assumes_existing = True
        yield account


def _one(type: str, properties: Properties) -> Properties:
    rule = {"EventPattern": {"source": ["a"]}} if type == "Events::Rule" and not properties else {}
    return {"A": {"Type": f"AWS::{type}", "Properties": {**properties, **rule}}}


@pytest.mark.parametrize(("type", "old", "new", "reason"), _REFUSED)
def test_change_that_a_service_refuses(
    plain: SimulatedAccount, type: str, old: Properties, new: Properties, reason: str
) -> None:
    """The update is rolled back with the reason of the service."""
    stack = deploy(plain, _one(type, old), f"Stack{uuid4()}")
    assert stack.status == "CREATE_COMPLETE", stack.reason
    deploy(plain, _one(type, new), stack.name)
    assert stack.status == "UPDATE_ROLLBACK_COMPLETE"
    assert reason in stack.reason
    plain.deployer.delete(stack)


@pytest.mark.parametrize(("type", "old", "new"), _ACCEPTED)
def test_change_that_a_service_accepts(
    plain: SimulatedAccount, type: str, old: Properties, new: Properties
) -> None:
    """Changes that are near to those that are refused are carried out."""
    stack = deploy(plain, _one(type, old), f"Stack{uuid4()}")
    deploy(plain, _one(type, new), stack.name)
    assert stack.status == "UPDATE_COMPLETE", stack.reason
    plain.deployer.delete(stack)


@pytest.mark.parametrize(("type", "properties"), _PROTECTED)
def test_protected_resource_is_not_deleted(
    plain: SimulatedAccount, type: str, properties: Properties
) -> None:
    """The deletion of the stack fails until the protection is removed, as the fix says."""
    stack = deploy(plain, _one(type, properties), f"Stack{uuid4()}")
    assert stack.status == "CREATE_COMPLETE", stack.reason
    plain.deployer.delete(stack)
    assert stack.status == "DELETE_FAILED"
    assert "failed to delete: [A]" in stack.reason
    stack.status = "CREATE_COMPLETE"
    free = json.loads(
        json.dumps(properties).replace("true", "false").replace('"ACTIVE"', '"INACTIVE"')
    )
    deploy(plain, _one(type, free), stack.name)
    assert stack.status == "UPDATE_COMPLETE", stack.reason
    plain.deployer.delete(stack)
    assert stack.status == "DELETE_COMPLETE"


def test_each_rule_has_a_case() -> None:
    """A rule names a type, a property and a test that exist,
    and the cases above reach each reason.
    """
    cases = {f"AWS::{each[0]}" for each in (*_REFUSED, *_PROTECTED)}
    assert cases == _RULES.keys()
    reached = " ".join(each[3] for each in _REFUSED)
    for kind, rules in _RULES.items():
        for rule in rules:
            assert rule.get("property", "") in {"", *resource_schema(kind).body["properties"]}
            assert rule["test"] in _TESTS
            parts = [word for word in rule["reason"].split() if word in reached]
            assert rule["when"] == ["delete"] or parts, rule["reason"]
