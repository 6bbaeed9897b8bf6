"""CloudFormation's intrinsic functions, evaluated without a deployed stack."""

from __future__ import annotations

from typing import Any

import pytest

from constructs_triton.errors import LocalEndpointError
from constructs_triton.local.sources.intrinsics import Template

BODY = {
    "Parameters": {"Prefix": {"Type": "String", "Default": "models"}, "Bare": {"Type": "String"}},
    "Mappings": {"Accounts": {"us-east-1": {"account": "1111"}}},
    "Conditions": {
        "InVirginia": {"Fn::Equals": [{"Ref": "AWS::Region"}, "us-east-1"]},
        "Elsewhere": {"Fn::Not": [{"Condition": "InVirginia"}]},
        "Never": {"Fn::And": [{"Condition": "InVirginia"}, {"Condition": "Elsewhere"}]},
        "Always": {"Fn::Or": [{"Condition": "InVirginia"}, {"Condition": "Elsewhere"}]},
    },
    "Resources": {
        "Bucket": {"Type": "AWS::S3::Bucket"},
        "Named": {
            "Type": "AWS::S3::Bucket",
            "Properties": {"BucketName": {"Fn::Sub": "b-${AWS::Region}"}, "Gone": {"Ref": "AWS::NoValue"}},
        },
        "Config": {"Type": "AWS::SageMaker::EndpointConfig"},
    },
}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"Ref": "AWS::Region"}, "us-east-1"),
        ({"Ref": "Prefix"}, "models"),
        ({"Ref": "Bucket"}, "Bucket"),
        ({"Ref": "Named"}, "b-us-east-1"),
        ({"Fn::GetAtt": ["Config", "EndpointConfigName"]}, "Config"),
        ({"Fn::GetAtt": "Bucket.Arn"}, "Bucket.Arn"),
        ({"Fn::Join": ["", ["s3://", {"Ref": "Bucket"}, "/", {"Ref": "Prefix"}]]}, "s3://Bucket/models"),
        ({"Fn::Sub": "x-${AWS::AccountId}-${Named}-${Bucket.Arn}-${!Kept}"},
         "x-123456789012-b-us-east-1-Bucket.Arn-${Kept}"),
        ({"Fn::Sub": ["${A}/${AWS::URLSuffix}", {"A": {"Ref": "Prefix"}}]}, "models/amazonaws.com"),
        ({"Fn::FindInMap": ["Accounts", {"Ref": "AWS::Region"}, "account"]}, "1111"),
        ({"Fn::FindInMap": ["Accounts", "mars", "account", {"DefaultValue": "2"}]}, "2"),
        ({"Fn::Select": ["1", {"Fn::Split": ["/", "a/b/c"]}]}, "b"),
        ({"Fn::If": ["InVirginia", "here", "there"]}, "here"),
        ({"Fn::If": ["Never", "here", {"Ref": "AWS::NoValue"}]}, None),
        ({"Fn::If": ["Always", 1, 2]}, 1),
        ({"deep": [{"Ref": "Prefix"}, 3, True]}, {"deep": ["models", 3, True]}),
    ],
)  # fmt: skip
def test_evaluates(value: Any, expected: Any) -> None:
    """Each function has CloudFormation's result; names that only a deployment has are stable."""
    assert Template("Demo", BODY).evaluate(value) == expected


def test_properties_without_a_value_are_left_out() -> None:
    """``AWS::NoValue`` removes the property, as CloudFormation does."""
    assert Template("Demo", BODY).properties("Named") == {"BucketName": "b-us-east-1"}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"Fn::ImportValue": "x"}, "Demo: Fn::ImportValue cannot be evaluated .* got 'x'"),
        ({"Ref": "Bare"}, "parameter without a default value, got 'Bare'"),
        ({"Ref": "Absent"}, "parameter without a default value, got 'Absent'"),
        ({"Fn::FindInMap": ["Accounts", "mars", "account"]}, "mapping Accounts has no entry for 'mars'"),
    ],
)
def test_functions_that_need_a_deployment_are_reported(value: Any, words: str) -> None:
    """The error names the stack, the function and its argument."""
    with pytest.raises(LocalEndpointError, match=words):
        Template("Demo", BODY).evaluate(value)
