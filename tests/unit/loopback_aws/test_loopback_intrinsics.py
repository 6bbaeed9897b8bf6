"""Intrinsic functions and conditions of the CloudFormation stand-in."""

from __future__ import annotations

from typing import Any

import pytest
from loopback_aws.errors import TemplateError
from loopback_aws.intrinsics import Resolver, Scope
from loopback_aws.template import Template

BODY: dict[str, Any] = {
    "Parameters": {"Stage": {"Type": "String"}},
    "Mappings": {"Accounts": {"us-east-1": {"account": "763104351884"}}},
    "Conditions": {
        "IsLive": {"Fn::Equals": [{"Ref": "Stage"}, "live"]},
        "IsTest": {"Fn::Not": [{"Condition": "IsLive"}]},
        "Both": {"Fn::And": [{"Condition": "IsLive"}, {"Condition": "IsTest"}]},
        "Either": {"Fn::Or": [{"Condition": "IsLive"}, {"Condition": "IsTest"}]},
    },
    "Resources": {"Bucket": {"Type": "AWS::S3::Bucket"}},
}


@pytest.fixture
def resolver() -> Resolver:
    """Return the resolver of a stack with one bucket."""
    scope = Scope(
        pseudo={"AWS::Region": "us-east-1", "AWS::AccountId": "123456789012"},
        parameters={"Stage": "live"},
        physical_ids={"Bucket": "my-bucket"},
        attributes={"Bucket": {"Arn": "arn:aws:s3:::my-bucket"}},
        exports={"Shared": "value"},
    )
    return Resolver(Template(BODY), scope)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"Ref": "AWS::Region"}, "us-east-1"),
        ({"Ref": "Stage"}, "live"),
        ({"Ref": "Bucket"}, "my-bucket"),
        ({"Fn::GetAtt": ["Bucket", "Arn"]}, "arn:aws:s3:::my-bucket"),
        ({"Fn::GetAtt": "Bucket.Arn"}, "arn:aws:s3:::my-bucket"),
        ({"Fn::Join": ["-", ["a", {"Ref": "Stage"}, 3]]}, "a-live-3"),
        ({"Fn::Sub": "${Bucket}/${Bucket.Arn}/${!Literal}"}, "my-bucket/arn:aws:s3:::my-bucket/${Literal}"),
        ({"Fn::Sub": ["${Name}-${Stage}", {"Name": {"Ref": "Bucket"}}]}, "my-bucket-live"),
        ({"Fn::Select": ["1", {"Fn::Split": [":", "a:b:c"]}]}, "b"),
        ({"Fn::Base64": "text"}, "dGV4dA=="),
        ({"Fn::FindInMap": ["Accounts", {"Ref": "AWS::Region"}, "account"]}, "763104351884"),
        ({"Fn::If": ["IsTest", 1, {"Ref": "Stage"}]}, "live"),
        ({"Fn::ImportValue": "Shared"}, "value"),
        ({"a": {"Ref": "AWS::NoValue"}, "b": [{"Ref": "AWS::NoValue"}, 1]}, {"b": [1]}),
    ],
)
def test_values_are_resolved(resolver: Resolver, value: Any, expected: Any) -> None:
    """Every supported intrinsic function has CloudFormation's result."""
    assert resolver.resolve(value) == expected


@pytest.mark.parametrize(
    "value",
    [
        {"Fn::Cidr": ["10.0.0.0/16", 1, 8]},
        {"Fn::Join": ["", []], "other": 1},
        {"Ref": "Nothing"},
        {"Fn::GetAtt": ["Bucket", "Nothing"]},
        {"Fn::GetAtt": ["Nothing", "Arn"]},
        {"Fn::Select": [3, ["a"]]},
        {"Fn::FindInMap": ["Accounts", "eu-west-1", "account"]},
        {"Fn::If": ["Nothing", 1, 2]},
        {"Fn::ImportValue": "Nothing"},
        {"Fn::Sub": "${Nothing}"},
    ],
)
def test_unknown_names_are_errors(resolver: Resolver, value: Any) -> None:
    """An unknown function, name or attribute raises an error, and is never passed on unresolved."""
    with pytest.raises(TemplateError):
        resolver.resolve(value)


def test_conditions_combine(resolver: Resolver) -> None:
    """Conditions refer to each other through Not, And and Or."""
    verdicts = {name: resolver.condition(name) for name in BODY["Conditions"]}
    assert verdicts == {"IsLive": True, "IsTest": False, "Both": False, "Either": True}
    assert resolver.holds({"Fn::Contains": [["test", "live"], {"Ref": "Stage"}]})
    with pytest.raises(TemplateError, match="condition function is not supported"):
        resolver.holds({"Fn::EachMemberIn": [[], []]})
