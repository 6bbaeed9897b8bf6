"""Templates, resource schemas and request shapes as the CloudFormation stand-in reads them."""

from __future__ import annotations

from typing import Any

import pytest
from loopback_aws.errors import TemplateError
from loopback_aws.request_shapes import conform
from loopback_aws.resource_schemas import resource_schema
from loopback_aws.template import Template

TOPIC = {"Type": "AWS::SNS::Topic"}


def test_order_follows_every_kind_of_reference() -> None:
    """Ref, GetAtt, Sub and DependsOn all put what they lead to first."""
    body = {
        "Resources": {
            "A": {"Type": "T", "Properties": {"x": [{"Ref": "B"}]}},
            "B": {"Type": "T", "Properties": {"x": {"Fn::GetAtt": ["C", "Arn"]}}},
            "C": {"Type": "T", "Properties": {"x": {"Fn::Sub": "${D.Arn}/${!E}/${AWS::Region}"}}},
            "D": {"Type": "T", "DependsOn": "E"},
            "E": {"Type": "T", "Properties": {"x": {"Fn::Sub": ["${Own}", {"Own": "value"}]}}},
        }
    }
    assert Template(body).order == ("E", "D", "C", "B", "A")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"Transform": "AWS::Serverless"}, "Transform is not supported"),
        ({"Resources": {"A": {**TOPIC, "CreationPolicy": {}}}}, "CreationPolicy is not supported"),
        ({"Resources": {"A": {**TOPIC, "DeletionPolicy": "Forget"}}}, "unknown policy"),
        ({"Resources": {"A": {**TOPIC, "DependsOn": "B"}}}, "Unresolved resource dependencies"),
        ({"Resources": {"A": {"Properties": {}}}}, "must have a Type"),
    ],
)
def test_templates_that_are_wrong_are_refused(body: dict[str, Any], message: str) -> None:
    """A section, an attribute or a reference that is not known is named."""
    with pytest.raises(TemplateError, match=message):
        Template(body)


def test_circles_are_refused() -> None:
    """Resources that need each other are named."""
    body = {"Resources": {"A": {**TOPIC, "DependsOn": "B"}, "B": {**TOPIC, "DependsOn": "A"}}}
    with pytest.raises(TemplateError, match="Circular dependency"):
        _ = Template(body).order


def test_short_forms_of_yaml_are_read() -> None:
    """``!Sub``, ``!GetAtt`` and ``!Ref`` are the functions they stand for, and dates stay texts."""
    text = """
Resources:
  A:
    Type: AWS::SNS::Topic
    Properties:
      TopicName: !Sub "${AWS::StackName}-topic"
      Tags: [{Key: version, Value: 2012-10-17}, {Key: b, Value: !GetAtt B.TopicName}]
  B:
    Type: AWS::SNS::Topic
"""
    properties = Template.parse(text).resources["A"].properties
    assert properties["TopicName"] == {"Fn::Sub": "${AWS::StackName}-topic"}
    assert [tag["Value"] for tag in properties["Tags"]] == ["2012-10-17", {"Fn::GetAtt": ["B", "TopicName"]}]


def test_create_only_properties_replace() -> None:
    """What forces a replacement comes from the resource's schema."""
    config, endpoint = (resource_schema(f"AWS::SageMaker::{name}") for name in ("EndpointConfig", "Endpoint"))
    assert config.replacing_changes({"KmsKeyId": "a"}, {"KmsKeyId": "b"}) == {"KmsKeyId"}
    assert config.recreation("Tags") == "Never"
    assert endpoint.replacing_changes({"EndpointConfigName": "a"}, {"EndpointConfigName": "b"}) == set()
    assert endpoint.recreation("EndpointName") == "Always"


@pytest.mark.parametrize(
    ("kind", "properties", "message"),
    [
        ("AWS::SNS::Topic", {"Colour": "red"}, "Colour"),
        ("AWS::SNS::Topic", {"TopicArn": "arn"}, "read-only"),
        ("AWS::SageMaker::Endpoint", {}, "EndpointConfigName"),
        ("AWS::Logs::LogGroup", {"RetentionInDays": "soon"}, "RetentionInDays"),
        ("AWS::Logs::LogGroup", {"RetentionInDays": "31"}, "not one of"),
        ("AWS::CloudWatch::Alarm", {"EvaluationPeriods": [3]}, "EvaluationPeriods"),
    ],
)
def test_properties_are_held_against_the_schema(kind: str, properties: dict[str, Any], message: str) -> None:
    """A property that is unknown, read-only, missing or of another type is named."""
    with pytest.raises(TemplateError, match=message):
        resource_schema(kind).check(properties)


def test_scalars_may_be_texts() -> None:
    """CloudFormation takes numbers and booleans as texts, which is what parameters are."""
    resource_schema("AWS::Logs::LogGroup").check({"RetentionInDays": "30"})
    with pytest.raises(TemplateError, match="Unrecognized resource types"):
        resource_schema("AWS::Nothing::AtAll")


def test_requests_are_held_against_the_service_model() -> None:
    """Enumerations, maxima and patterns count, which botocore itself leaves out; scalars are converted."""
    variant = {"VariantName": "a", "ModelName": "m", "InstanceType": "ml.g5.xlarge"}
    request = {"EndpointConfigName": "c", "ProductionVariants": [{**variant, "InitialInstanceCount": "2"}]}
    converted, errors = conform("sagemaker", "CreateEndpointConfig", request)
    assert errors == []
    assert converted["ProductionVariants"][0]["InitialInstanceCount"] == 2
    wrong = {**variant, "InstanceType": "ml.bogus.large", "VariantName": "no spaces", "Colour": "red"}
    _, errors = conform("sagemaker", "CreateEndpointConfig", {"ProductionVariants": [wrong]})
    text = "; ".join(errors)
    for part in ("EndpointConfigName is missing", "unknown member Colour", "ml.bogus.large", "no spaces"):
        assert part in text
