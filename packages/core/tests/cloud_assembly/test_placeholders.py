"""The values of a template that nothing has deployed."""

from __future__ import annotations

from typing import Any

import pytest

from constructs_triton_core.cloud_assembly.placeholders import Placeholders
from constructs_triton_core.cloud_assembly.template import Template
from constructs_triton_core.errors import TemplateError

BODY = {
    "Parameters": {
        "Prefix": {"Type": "String", "Default": "models"},
        "Zones": {"Type": "CommaDelimitedList", "Default": "a,b"},
        "Bare": {"Type": "String"},
    },
    "Resources": {
        "Bucket": {"Type": "AWS::S3::Bucket"},
        "Named": {
            "Type": "AWS::S3::Bucket",
            "Properties": {"BucketName": {"Fn::Sub": "b-${AWS::Region}"}},
        },
        "Unknown": {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": {"Ref": "Bare"}}},
        "Config": {"Type": "AWS::SageMaker::EndpointConfig"},
    },
}
COMPONENT = {"Type": "AWS::SageMaker::InferenceComponent"}


def of_demo(**settings: Any) -> Placeholders:
    return Placeholders(Template(BODY), "Demo", **settings)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"Ref": "AWS::Region"}, "us-east-1"),
        ({"Ref": "Prefix"}, "models"),
        ({"Ref": "Zones"}, ["a", "b"]),
        ({"Ref": "Bucket"}, "Bucket"),
        ({"Ref": "Named"}, "b-us-east-1"),
        ({"Ref": "Unknown"}, "Unknown"),
        ({"Fn::GetAtt": ["Config", "EndpointConfigName"]}, "Config"),
        ({"Fn::GetAtt": "Bucket.Arn"}, "arn:aws:s3:::Bucket"),
        ({"Fn::GetAtt": "Config.Arn"}, "Config.Arn"),
        (
            {"Fn::Join": ["", ["s3://", {"Ref": "Bucket"}, "/", {"Ref": "Prefix"}]]},
            "s3://Bucket/models",
        ),
        (
            {"Fn::Sub": "x-${AWS::AccountId}-${Named}-${Bucket.Arn}-${!Kept}"},
            "x-123456789012-b-us-east-1-arn:aws:s3:::Bucket-${Kept}",
        ),
        ({"Fn::ImportValue": {"Fn::Sub": "key-${AWS::Region}"}}, "key-us-east-1"),
        ({"Fn::GetStackOutput": {"StackName": "Other", "OutputName": "Key"}}, "Other.Key"),
        ({"Fn::Select": [1, {"Fn::GetAZs": ""}]}, "us-east-1b"),
        ({"Fn::Sub": ["${A}/${AWS::URLSuffix}", {"A": {"Ref": "Prefix"}}]}, "models/amazonaws.com"),
    ],
)
def test_names_are_stable(value: Any, expected: Any) -> None:
    """A name that only a deployment has is that of the template, or the logical ID."""
    assert of_demo().evaluator.evaluate(value) == expected


def test_values_of_the_parent_stack_replace_defaults() -> None:
    """A nested stack gets its parameters from its parent, and the Region decides the partition."""
    evaluator = of_demo(
        region="cn-north-1", parameters={"Prefix": "inner", "Bare": "given"}
    ).evaluator
    assert evaluator.evaluate({"Fn::Sub": "${Prefix}-${Bare}"}) == "inner-given"
    assert evaluator.evaluate({"Fn::Sub": "${AWS::Partition}"}) == "aws-cn"


@pytest.mark.parametrize("name", ["Bare", "Absent"])
def test_parameters_without_a_value_are_reported(name: str) -> None:
    """The error has the name and the fix."""
    message = f"parameter without a default value, got '{name}'; set the parameter's default"
    with pytest.raises(TemplateError, match=message):
        of_demo().evaluator.evaluate({"Ref": name})


@pytest.mark.parametrize(
    ("logical_ids", "names"),
    [
        (["DigitsComponent8c7bc9d1D77CAE6F", "AlertsD77CAE6F"], ["DigitsComponent", "Alerts"]),
        (["Digits8C7BC9D1", "DigitsD77CAE6F"], ["Digits8C7BC9D1", "DigitsD77CAE6F"]),
        (["Plain", "D77CAE6F"], ["Plain", "D77CAE6F"]),
    ],
)
def test_generated_name_is_the_logical_id_without_its_hashes(
    logical_ids: list[str], names: list[str]
) -> None:
    """If that is not clear, it is the whole logical ID."""
    placeholders = Placeholders(
        Template({"Resources": dict.fromkeys(logical_ids, COMPONENT)}), "Demo"
    )
    assert [placeholders.name_of(each) for each in logical_ids] == names


def test_arn_of_a_component_contains_its_name() -> None:
    """``Ref`` and the attribute are the ARN; a long logical ID is cut to the length of a name."""
    long = "D" * 80
    evaluator = Placeholders(Template({"Resources": {long: COMPONENT}}), "Demo").evaluator
    arn = f"arn:aws:sagemaker:us-east-1:123456789012:inference-component/{'D' * 63}"
    assert evaluator.evaluate({"Ref": long}) == arn
    assert evaluator.evaluate({"Fn::GetAtt": [long, "InferenceComponentArn"]}) == arn
