"""Templates, their values, resource schemas and request shapes of the CloudFormation stand-in."""

from __future__ import annotations

from typing import Any

import pytest

from cdk_rehearse.errors import TemplateError
from cdk_rehearse.providers.provider import Deployed, Physical, Request
from cdk_rehearse.services.request_shapes import conform
from cdk_rehearse.services.resource_schemas import resource_schema
from cdk_rehearse.services.service_api import ServiceApi
from cdk_rehearse.stacks.engine import check_template
from cdk_rehearse.stacks.names import Names
from cdk_rehearse.stacks.stack import Output, Stacks
from cdk_rehearse.template_parsing import parse_template
from constructs_triton_core.cloud_assembly.intrinsics import Evaluator
from constructs_triton_core.cloud_assembly.template import Template
from constructs_triton_core.cloud_assembly.unknown_values import is_unknown

TOPIC = {"Type": "AWS::SNS::Topic"}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"Hooks": {}}, "Hooks is not supported"),
        ({"Resources": {"A": {**TOPIC, "Policy": {}}}}, "Policy is not supported"),
        ({"Resources": {"A": {**TOPIC, "DeletionPolicy": "Forget"}}}, "unknown policy"),
        ({"Resources": {"A": {**TOPIC, "DependsOn": "B"}}}, "Unresolved resource dependencies"),
        ({"Resources": {"A": {**TOPIC, "Condition": "No"}}}, "condition No is not declared"),
        ({"Resources": {"A": {"Properties": {}}}}, "must have a Type"),
        ({"Resources": {"A": {**TOPIC, "DependsOn": "A"}}}, "Circular dependency"),
    ],
)
def test_invalid_templates_are_refused(body: dict[str, Any], message: str) -> None:
    """The error names an unknown section, attribute or reference."""
    with pytest.raises(TemplateError, match=message):
        check_template(Template(body))


def test_short_forms_of_yaml_are_read() -> None:
    """``!Sub``, ``!GetAtt`` and ``!Ref`` are read as their functions, and dates as strings."""
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
    properties = parse_template(text).resources["A"].properties
    assert properties["TopicName"] == {"Fn::Sub": "${AWS::StackName}-topic"}
    assert [tag["Value"] for tag in properties["Tags"]] == [
        "2012-10-17",
        {"Fn::GetAtt": ["B", "TopicName"]},
    ]


def test_create_only_properties_replace() -> None:
    """The resource's schema determines which properties cause a replacement."""
    config, endpoint = (
        resource_schema(f"AWS::SageMaker::{name}") for name in ("EndpointConfig", "Endpoint")
    )
    assert config.replacing_changes({"KmsKeyId": "a"}, {"KmsKeyId": "b"}) == {"KmsKeyId"}
    assert config.recreation("Tags") == "Never"
    assert (
        endpoint.replacing_changes({"EndpointConfigName": "a"}, {"EndpointConfigName": "b"})
        == set()
    )
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
        ("AWS::SQS::Queue", {"DelaySeconds": "1000"}, "maximum of 900"),
        (
            "AWS::EC2::Route",
            {"RouteTableId": "rtb-1", "DestinationCidrBlock": "0.0.0.0/0"},
            "exactly one of",
        ),
        ("AWS::EC2::VPCGatewayAttachment", {"VpcId": "vpc-1"}, "exactly one of"),
    ],
)
def test_properties_are_checked_against_the_schema(
    kind: str, properties: dict[str, Any], message: str
) -> None:
    """The error names a property that is unknown, read-only, missing or of another type."""
    with pytest.raises(TemplateError, match=message):
        resource_schema(kind).check(properties)


def test_scalars_may_be_strings() -> None:
    """CloudFormation accepts numbers and booleans as strings, because parameters are strings."""
    resource_schema("AWS::Logs::LogGroup").check({"RetentionInDays": "30"})
    resource_schema("AWS::SNS::Topic").check({"TopicName": 3})
    resource_schema("AWS::EC2::VPC").check({"CidrBlock": "a", "EnableDnsSupport": "True"})


def test_misspelled_type_is_an_error() -> None:
    """The error names the type that was meant; a type that is only new has an empty schema."""
    with pytest.raises(TemplateError, match=r'Unrecognized .* did you mean "AWS::SQS::Queue"'):
        resource_schema("AWS::SQS::Quue")
    assert resource_schema("AWS::Nothing::AtAll").attributes is None


@pytest.mark.parametrize(
    ("kind", "properties"),
    [
        (
            "AWS::Omics::Workflow",
            {"Name": "a", "ParameterTemplate": {"of a, b": {"Description": "x"}}},
        ),
        ("AWS::SageMaker::ModelPackage", {"CustomerMetadataProperties": {"a": "b"}}),
        ("AWS::SSM::Parameter", {"Type": "String", "Value": "x", "Tags": {"é": "b"}}),
        ("AWS::Glue::UserDefinedFunction", {"FunctionName": "a", "DatabaseName": "b"}),
    ],
)
def test_patterns_that_python_cannot_read_end_no_rehearsal(
    kind: str, properties: dict[str, Any]
) -> None:
    """Names and values that the pattern of a schema allows are accepted,
    also if nothing here reads it.
    """
    resource_schema(kind).check(properties)


def test_requests_are_checked_against_the_service_model() -> None:
    """Enumerations, maxima and patterns are checked, which botocore does not do;
    scalars are converted.
    """
    variant = {"VariantName": "a", "ModelName": "m", "InstanceType": "ml.g5.xlarge"}
    request = {
        "EndpointConfigName": "c",
        "ProductionVariants": [{**variant, "InitialInstanceCount": "2"}],
    }
    converted, errors = conform("sagemaker", "CreateEndpointConfig", request)
    assert errors == []
    assert converted["ProductionVariants"][0]["InitialInstanceCount"] == 2
    wrong = {
        **variant,
        "InstanceType": "ml.bogus.large",
        "VariantName": "no spaces",
        "Colour": "red",
    }
    _, errors = conform("sagemaker", "CreateEndpointConfig", {"ProductionVariants": [wrong]})
    text = "; ".join(errors)
    for part in (
        "EndpointConfigName is missing",
        "unknown member Colour",
        "ml.bogus.large",
        "no spaces",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: &a [1]\nb: *a\n", "knows no aliases"),
        ("a: " + "[" * 120 + "]" * 120, "nested more than 100 deep"),
        ("# " + "x" * 1_000_000, "more than 1000000 bytes"),
        ("Resources: !!python/object/apply:os.getcwd []", "could not determine a constructor"),
        ("Resources: {A: .nan}", "a number must be finite"),
        ("Resources: !!binary aGk=", "not JSON serializable"),
        ("[", "cannot be read as YAML"),
        ('{"Resources": ', "cannot be read as JSON"),
        ("- Resources", "must be an object"),
    ],
)
def test_template_beyond_the_bounds_is_refused(text: str, message: str) -> None:
    """The error is one sentence with the place."""
    with pytest.raises(TemplateError, match=message) as caught:
        parse_template(text, "stack Shop")
    assert str(caught.value).startswith("stack Shop: ")
    assert "\n" not in str(caught.value)


def test_names_in_yaml_are_strings() -> None:
    """An account ID is a name in a mapping, not a number."""
    assert parse_template("Mappings: {A: {123456789012: {k: on}}}").mappings == {
        "A": {"123456789012": {"k": True}}
    }


@pytest.fixture
def evaluator() -> Evaluator:
    """Return the evaluator of a stack with one bucket."""
    stacks = Stacks(ServiceApi("http://127.0.0.1", "123456789012", "us-east-1", None))
    stack = stacks.add("Shop")
    stacks.add("Platform").outputs = [
        Output("Key", "arn"),
        Output("S", "value", export_name="Shared"),
    ]
    request = Request(stack.name, stack.id, "Bucket", "AWS::S3::Bucket", {})
    bucket = Deployed(request, Physical("my-bucket", {"Arn": "arn:aws:s3:::my-bucket"}))
    return Names(stacks, stack, {"Stage": "live"}, {"Bucket": bucket}).evaluator(Template({}))


def test_values_are_those_of_the_account(evaluator: Evaluator) -> None:
    """Pseudo parameters, parameters, physical IDs, attributes and exports."""
    names = ("AWS::Region", "Stage", "Bucket", "Bucket.Arn")
    text = {"Fn::Sub": "|".join(f"${{{name}}}" for name in names)}
    assert evaluator.evaluate(text) == "us-east-1|live|my-bucket|arn:aws:s3:::my-bucket"
    assert evaluator.evaluate({"Fn::ImportValue": "Shared"}) == "value"
    assert (
        evaluator.evaluate({"Fn::GetStackOutput": {"StackName": "Platform", "OutputName": "Key"}})
        == "arn"
    )


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({"Ref": "Nothing"}, "nothing is called Nothing"),
        ({"Fn::GetAtt": ["Nothing", "Arn"]}, "no resource is called Nothing"),
        ({"Fn::ImportValue": "Nothing"}, "No export named Nothing found"),
        (
            {"Fn::GetStackOutput": {"StackName": "Platform", "OutputName": "Vpc"}},
            "No output named Vpc found",
        ),
    ],
)
def test_unknown_names_are_errors(evaluator: Evaluator, value: Any, words: str) -> None:
    """An unknown name raises an error, and is never passed on unresolved."""
    with pytest.raises(TemplateError, match=words):
        evaluator.evaluate(value)


@pytest.mark.parametrize(
    "value",
    [
        {"Fn::GetAtt": ["Bucket", "WebsiteURL"]},
        {"Fn::GetAtt": ["Bucket", "AttributeOfNextYear"]},
        {"Fn::GetAZs": "eu-west-1"},
        {"Fn::FunctionOfNextYear": {}},
    ],
)
def test_values_that_are_not_simulated_are_unknown(evaluator: Evaluator, value: Any) -> None:
    """An attribute, Zone or function that the account lacks is never an error."""
    assert is_unknown(evaluator.evaluate(value))
