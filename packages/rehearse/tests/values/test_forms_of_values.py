"""Stand-ins of values that a rehearsal does not know."""

from __future__ import annotations

import re

import pytest

from cdk_rehearse.services.resource_schemas import resource_schema
from cdk_rehearse.values.stand_ins import StandIns, is_opaque
from constructs_triton_core.cloud_assembly.unknown_values import Unknown, UnknownList


@pytest.fixture
def stand_ins() -> StandIns:
    """Return the stand-ins of a new account."""
    return StandIns("123456789012", "us-east-1")


@pytest.mark.parametrize(
    ("type", "name", "form"),
    [
        (
            "AWS::SecretsManager::Secret",
            "Id",
            r"arn:aws:secretsmanager:us-east-1:\d+:secret:.+-\w{6}",
        ),
        ("AWS::Lambda::Function", "Arn", r"arn:aws:lambda:us-east-1:\d+:function:.+"),
        ("AWS::Lambda::Url", "FunctionUrl", r"https://\w+\.lambda-url\.us-east-1\.on\.aws/"),
        ("AWS::SQS::Queue", "QueueUrl", r"https://sqs\.us-east-1\.amazonaws\.com/\d+/.+"),
        ("AWS::EC2::VPC", "DefaultSecurityGroup", "sg-[0-9a-f]{17}"),
        ("AWS::Glue::Registry", "Arn", r"arn:aws:glue:us-east-1:123456789012:.+"),
        ("AWS::CloudFront::Distribution", "Arn", r"arn:aws:cloudfront::123456789012:.+"),
    ],
)
def test_stand_ins_have_the_form_of_aws(
    stand_ins: StandIns, type: str, name: str, form: str
) -> None:
    """A table has the forms of common types; otherwise the name of the attribute says the form."""
    origin = stand_ins.origin(type, "Shop", "It")
    value = stand_ins.attribute(origin, name, *resource_schema(type).form_of(name))
    assert is_opaque(value)
    assert re.fullmatch(form, value)


def test_arn_of_a_given_name_is_known(stand_ins: StandIns) -> None:
    """It has no part that AWS makes up, so that other stacks may write it too."""
    origin = stand_ins.origin("AWS::SQS::Queue", "Shop", "Jobs", "jobs")
    found = stand_ins.attribute(origin, "Arn")
    assert found == "arn:aws:sqs:us-east-1:123456789012:jobs"
    assert not is_opaque(found)


def test_stand_ins_are_equal_in_each_run() -> None:
    """A report of the same versions is the same, and a replacement has other values."""
    first, second = (StandIns("123456789012", "us-east-1") for _ in range(2))
    values = [first.origin("AWS::SQS::Queue", "Shop", "Jobs").label for _ in range(2)]
    assert values[0] == second.origin("AWS::SQS::Queue", "Shop", "Jobs").label
    assert values[0] != values[1]


def test_lists_are_unknown_lists(stand_ins: StandIns) -> None:
    """The schema says which attributes are lists."""
    origin = stand_ins.origin("AWS::EC2::VPC", "Shop", "Vpc")
    form = resource_schema("AWS::EC2::VPC").form_of("Ipv6CidrBlocks")
    assert isinstance(stand_ins.attribute(origin, "Ipv6CidrBlocks", *form), UnknownList)


def test_messages_name_where_a_value_comes_from(stand_ins: StandIns) -> None:
    """A stand-in never appears, nor a part of it, also in a string that a service has stored."""
    origin = stand_ins.origin("AWS::EC2::VPC", "Shop", "Vpc")
    group = stand_ins.attribute(origin, "DefaultNetworkAcl")
    topic = stand_ins.attribute(stand_ins.origin("AWS::SNS::Topic", "Shop", "News"), "TopicArn")
    part = Unknown(topic).split_at(":").element(5)
    assert stand_ins.shown(f"{group} already exists") == "${Vpc.DefaultNetworkAcl} already exists"
    assert stand_ins.shown(f"no {part}, {topic}.") == "no ${News}, ${News.TopicArn}."
    assert is_opaque(str(part))
