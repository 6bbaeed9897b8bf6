"""CloudFormation's intrinsic functions and conditions, with the values that a resolver has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import pytest

from constructs_triton_core.cloud_assembly.intrinsics import Evaluator, number_of
from constructs_triton_core.cloud_assembly.template import Template
from constructs_triton_core.errors import TemplateError

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


class _Values:
    """A resolver of a stack with one bucket."""

    names: ClassVar[dict[str, Any]] = {
        "AWS::Region": "us-east-1",
        "Stage": "live",
        "Bucket": "my-bucket",
        "Bucket.Arn": "arn:aws:s3:::my-bucket",
        "Zones": ["a", "b"],
    }

    def ref(self, name: str) -> Any:
        if name not in self.names:
            raise TemplateError(f"Ref: nothing is called {name}")
        return self.names[name]

    def get_att(self, logical_id: str, attribute: str) -> Any:
        return self.ref(f"{logical_id}.{attribute}")

    def import_value(self, name: str) -> Any:
        return f"value of {name}"

    def stack_output(self, stack: str, name: str, region: str | None) -> Any:
        return f"{name} of {stack} in {region}"

    def availability_zones(self, region: str) -> Sequence[str]:
        return [f"{region}a", f"{region}b"]


@pytest.fixture
def evaluator() -> Evaluator:
    """Return the evaluator of a template with one bucket."""
    return Evaluator(Template(BODY), _Values())


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"Ref": "AWS::Region"}, "us-east-1"),
        ({"Ref": "Stage"}, "live"),
        ({"Ref": "Bucket"}, "my-bucket"),
        ({"Fn::GetAtt": ["Bucket", "Arn"]}, "arn:aws:s3:::my-bucket"),
        ({"Fn::GetAtt": "Bucket.Arn"}, "arn:aws:s3:::my-bucket"),
        ({"Fn::Join": ["-", ["a", {"Ref": "Stage"}, 3, True]]}, "a-live-3-true"),
        ({"Fn::Join": ["-", {"Ref": "Zones"}]}, "a-b"),
        (
            {"Fn::Sub": "${Bucket}/${Bucket.Arn}/${!Literal}"},
            "my-bucket/arn:aws:s3:::my-bucket/${Literal}",
        ),
        ({"Fn::Sub": ["${Name}-${Stage}", {"Name": {"Ref": "Bucket"}}]}, "my-bucket-live"),
        ({"Fn::Select": ["1", {"Fn::Split": [":", "a:b:c"]}]}, "b"),
        ({"Fn::Base64": "text"}, "dGV4dA=="),
        ({"Fn::Cidr": ["10.0.0.0/16", 2, "8"]}, ["10.0.0.0/24", "10.0.1.0/24"]),
        ({"Fn::Cidr": ["2001:db8::/56", 2, 64]}, ["2001:db8::/64", "2001:db8:0:1::/64"]),
        ({"Fn::Length": ["a", {"Ref": "AWS::NoValue"}, "b"]}, 2),
        ({"Fn::ToJsonString": {"a": [1, {"Ref": "Stage"}]}}, '{"a":[1,"live"]}'),
        ({"Fn::FindInMap": ["Accounts", {"Ref": "AWS::Region"}, "account"]}, "763104351884"),
        ({"Fn::FindInMap": ["Accounts", "mars", "account", {"DefaultValue": "2"}]}, "2"),
        ({"Fn::If": ["IsTest", 1, {"Ref": "Stage"}]}, "live"),
        ({"Fn::If": ["Both", "x", {"Ref": "AWS::NoValue"}]}, None),
        ({"Fn::If": ["Either", 1, 2]}, 1),
        ({"Fn::ImportValue": "Shared"}, "value of Shared"),
        (
            {"Fn::GetStackOutput": {"StackName": {"Ref": "Stage"}, "OutputName": "Key"}},
            "Key of live in None",
        ),
        ({"Fn::GetAZs": ""}, ["us-east-1a", "us-east-1b"]),
        ({"a": {"Ref": "AWS::NoValue"}, "b": [{"Ref": "AWS::NoValue"}, 1]}, {"b": [1]}),
        ({"deep": [{"Ref": "Stage"}, 3, True, None]}, {"deep": ["live", 3, True, None]}),
    ],
)
def test_values_are_evaluated(evaluator: Evaluator, value: Any, expected: Any) -> None:
    """Every supported intrinsic function has CloudFormation's result."""
    assert evaluator.evaluate(value) == expected


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (
            {"Fn::Transform": {"Name": "AWS::Include"}},
            "not supported, got .*Fn::Transform.*; use a literal value, or one",
        ),
        ({"Fn::Join": ["", []], "other": 1}, "is not supported, got .*'other': 1"),
        ({"Ref": "Nothing"}, "nothing is called Nothing"),
        ({"Fn::Select": [3, ["a"]]}, r"has no element 3, got \['a'\]; change the index"),
        (
            {"Fn::FindInMap": ["Accounts", "mars", "account"]},
            "Accounts has no entry for 'mars', 'account'",
        ),
        ({"Fn::If": ["Nothing", 1, 2]}, "condition Nothing: is not declared; add it to Conditions"),
        ({"Fn::Sub": "${Nothing}"}, "nothing is called Nothing"),
        (
            {"Fn::GetStackOutput": {}},
            r"Fn::GetStackOutput: its argument has the wrong form \('StackName'\)",
        ),
        ({"Fn::Cidr": ["10.0.0.0/24", 2, 8]}, "has no room for 2 blocks with 8 bits"),
        ({"Fn::Cidr": ["10.0.0.0/24", 1, 16]}, "has no blocks with 16 bits for addresses"),
        ({"Fn::Cidr": ["10.0.0.0/24", 257, 0]}, "count must be from 1 to 256, got 257"),
        ({"Fn::Join": ["-"]}, r"Fn::Join: its argument has the wrong form .* got \['-'\]; write"),
    ],
)
def test_what_cannot_be_evaluated_is_an_error(evaluator: Evaluator, value: Any, words: str) -> None:
    """An unknown function, name or form raises an error with the value and the fix."""
    with pytest.raises(TemplateError, match=words):
        evaluator.evaluate(value)
    assert evaluator.evaluate_known([value, {"Ref": "Stage"}]) == [value, "live"]


def test_unknown_part_leaves_the_whole_function(evaluator: Evaluator) -> None:
    """What is known beside it is evaluated, and a string is never made from half of its parts."""
    unknown = {"Fn::Join": ["", ["a", {"Ref": "Nothing"}]]}
    known = evaluator.evaluate_known(
        {"a": unknown, "b": {"Ref": "Stage"}, "c": {"Ref": "AWS::NoValue"}}
    )
    assert known == {"a": unknown, "b": "live"}


def test_conditions_combine(evaluator: Evaluator) -> None:
    """Conditions refer to each other through Not, And and Or."""
    verdicts = {name: evaluator.condition(name) for name in BODY["Conditions"]}
    assert verdicts == {"IsLive": True, "IsTest": False, "Both": False, "Either": True}
    assert evaluator.holds({"Fn::Contains": [["test", "live"], {"Ref": "Stage"}]})
    assert evaluator.holds({"Fn::Equals": [True, "true"]})
    with pytest.raises(
        TemplateError, match=r"condition function is not supported, got .*; use one of"
    ):
        evaluator.holds({"Fn::ValueOf": ["Stage", "Tags.Owner"]})


@pytest.mark.parametrize("text", ["x", "[" * 100_000, "9" * 5000], ids=["word", "nested", "long"])
def test_string_that_is_no_number_stays_one(text: str) -> None:
    """A string in place of a number is not an error of the parser, however it looks."""
    assert number_of(text) == text
    assert number_of("1.5") == 1.5
