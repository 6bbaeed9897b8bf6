"""What services refuse of resources that exist without doing anything."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from shared_endpoint import deploy

from cdk_rehearse import SimulatedAccount
from cdk_rehearse.stacks.service_rules import (
    DELETIONS,
    REPLACEMENTS,
    UPDATES,
    engine_version,
    indexes_of_table,
    way_of_signing_in,
)
from cdk_rehearse.values.stand_ins import StandIns

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
    return {"A": {"Type": f"AWS::{type}", "Properties": properties}}


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
    """The cases above have each type that has a rule, and no other."""
    cases = {f"AWS::{each[0]}" for each in (*_REFUSED, *_PROTECTED)}
    assert cases == {*DELETIONS, *UPDATES, *REPLACEMENTS}
    assert {f"AWS::{each[0]}" for each in _PROTECTED} == set(DELETIONS)


def test_unknown_value_is_not_refused() -> None:
    """A version, an index or an attribute that is not known may be the one that exists."""
    unknown = StandIns("123456789012", "us-east-1").origin("AWS::SSM::Parameter", "S", "A").label
    index = _index("one")
    other = {**index, "KeySchema": unknown}
    assert engine_version({"EngineVersion": "16.8"}, {"EngineVersion": unknown}) == ""
    assert indexes_of_table(_table(index), _table(other)) == ""
    assert way_of_signing_in({"AliasAttributes": ["email"]}, {"AliasAttributes": [unknown]}) == ""
    assert way_of_signing_in({"AliasAttributes": ["email"]}, {"AliasAttributes": []}) != ""
