"""The values of a deployed template in the CloudFormation stand-in."""

from __future__ import annotations

from typing import Any

import pytest

from cdk_rehearse.errors import TemplateError
from cdk_rehearse.stacks.scope import Scope
from constructs_triton_core.cloud_assembly.intrinsics import Evaluator
from constructs_triton_core.cloud_assembly.template import Template


@pytest.fixture
def evaluator() -> Evaluator:
    """Return the evaluator of a stack with one bucket."""
    scope = Scope(
        pseudo={"AWS::Region": "us-east-1"},
        parameters={"Stage": "live"},
        physical_ids={"Bucket": "my-bucket"},
        attributes={"Bucket": {"Arn": "arn:aws:s3:::my-bucket"}},
        exports={"Shared": "value"},
        outputs={("Platform", "Key"): "arn"},
    )
    return Evaluator(Template({}), scope)


def test_values_are_those_of_the_account(evaluator: Evaluator) -> None:
    """Pseudo parameters, parameters, physical IDs, attributes and exports."""
    names = ("AWS::Region", "Stage", "Bucket", "Bucket.Arn")
    text = {"Fn::Sub": "|".join(f"${{{name}}}" for name in names)}
    assert evaluator.evaluate(text) == "us-east-1|live|my-bucket|arn:aws:s3:::my-bucket"
    assert evaluator.evaluate({"Fn::ImportValue": "Shared"}) == "value"
    assert evaluator.evaluate({"Fn::GetStackOutput": {"StackName": "Platform", "OutputName": "Key"}}) == "arn"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"Ref": "Nothing"}, "nothing is called Nothing"),
        ({"Fn::GetAtt": ["Bucket", "Nothing"]}, r"Bucket has no attribute Nothing, only \['Arn'\]"),
        ({"Fn::GetAtt": ["Nothing", "Arn"]}, "no resource is called Nothing"),
        ({"Fn::ImportValue": "Nothing"}, "No export named Nothing found"),
        ({"Fn::GetStackOutput": {"StackName": "Platform", "OutputName": "Vpc"}}, "No output named Vpc found"),
        ({"Fn::GetAZs": ""}, "zones of us-east-1 are not known"),
    ],
)
def test_unknown_names_are_errors(evaluator: Evaluator, value: Any, words: str) -> None:
    """An unknown name or attribute raises an error, and is never passed on unresolved."""
    with pytest.raises(TemplateError, match=words):
        evaluator.evaluate(value)
