"""Resource types that the project's own stacks use little: created, updated and deleted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from shared_endpoint import deploy, trust

from cdk_rehearse import SimulatedAccount
from cdk_rehearse.stacks.stack import Stack

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("loopback_stack")]

POLICY = {
    "Version": "2012-10-17",
    "Statement": [
        {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::bucket/*"}
    ],
}
KEY_POLICY = {
    "Version": "2012-10-17",
    "Statement": [{"Effect": "Allow", "Action": "kms:*", "Resource": "*", "Principal": "*"}],
}
TRUST = trust("lambda")


@pytest.fixture(scope="module")
def aws() -> Iterator[SimulatedAccount]:
    with SimulatedAccount() as account:
        yield account


def deployed(
    aws: SimulatedAccount, name: str, resources: dict[str, tuple[str, dict[str, Any]]]
) -> Stack:
    """Create or update a stack."""
    body = {key: {"Type": kind, "Properties": each} for key, (kind, each) in resources.items()}
    return deploy(aws, body, name)


def resources(value: str, days: int) -> dict[str, tuple[str, dict[str, Any]]]:
    """Return one resource of each type; an update changes ``value`` and ``days``."""
    return {
        "Key": (
            "AWS::KMS::Key",
            {"KeyPolicy": {**KEY_POLICY, "Id": value}, "EnableKeyRotation": True},
        ),
        "Alias": ("AWS::KMS::Alias", {"AliasName": "alias/small", "TargetKeyId": {"Ref": "Key"}}),
        "Parameter": ("AWS::SSM::Parameter", {"Type": "String", "Value": value, "Name": "/small"}),
        "Log": ("AWS::Logs::LogGroup", {"RetentionInDays": days}),
        "Images": ("AWS::ECR::Repository", {"RepositoryName": "small"}),
        "Role": ("AWS::IAM::Role", {"AssumeRolePolicyDocument": TRUST}),
        "Managed": (
            "AWS::IAM::ManagedPolicy",
            {"PolicyDocument": POLICY, "Roles": [{"Ref": "Role"}]},
        ),
        "Schedule": (
            "AWS::Scheduler::Schedule",
            {
                "ScheduleExpression": f"rate({days} days)",
                "FlexibleTimeWindow": {"Mode": "OFF"},
                "Target": {
                    "Arn": "arn:aws:sns:us-east-1:1:t",
                    "RoleArn": {"Fn::GetAtt": ["Role", "Arn"]},
                },
            },
        ),
        "Bucket": (
            "AWS::S3::Bucket",
            {
                "Tags": [{"Key": "value", "Value": value}],
                "LoggingConfiguration": {"DestinationBucketName": "access-logs"},
            },
        ),
    }


def test_small_resources_are_created_updated_and_deleted(aws: SimulatedAccount) -> None:
    """Each is created as declared, updated without a replacement, and deleted."""
    aws.client("s3").create_bucket(Bucket="access-logs")
    stack = deployed(aws, "Small", resources("one", 7))
    assert stack.status == "CREATE_COMPLETE", stack.reason
    physical = {name: each.physical.id for name, each in stack.resources.items()}
    assert aws.client("kms").get_key_rotation_status(KeyId=physical["Key"])["KeyRotationEnabled"]
    (attached,) = aws.client("iam").list_attached_role_policies(RoleName=physical["Role"])[
        "AttachedPolicies"
    ]
    assert attached["PolicyArn"] == physical["Managed"]

    assert deployed(aws, "Small", resources("two", 14)).status == "UPDATE_COMPLETE", stack.reason
    assert {name: each.physical.id for name, each in stack.resources.items()} == physical
    assert aws.client("ssm").get_parameter(Name="/small")["Parameter"]["Value"] == "two"
    (group,) = aws.client("logs").describe_log_groups(logGroupNamePrefix="Small-")["logGroups"]
    assert group["retentionInDays"] == 14
    schedule = aws.client("scheduler").get_schedule(Name=physical["Schedule"])
    assert schedule["ScheduleExpression"] == "rate(14 days)"
    tags = aws.client("s3").get_bucket_tagging(Bucket=physical["Bucket"])["TagSet"]
    assert tags == [{"Key": "value", "Value": "two"}]

    assert aws.destroy("Small").status == "DELETE_COMPLETE", stack.reason
    assert aws.client("ecr").describe_repositories()["repositories"] == []
    assert aws.client("scheduler").list_schedules()["Schedules"] == []
    state = aws.client("kms").describe_key(KeyId=physical["Key"])["KeyMetadata"]["KeyState"]
    assert state == "PendingDeletion"


@pytest.mark.parametrize(
    ("kind", "properties", "noted"),
    [
        (
            "AWS::S3::Bucket",
            {"WebsiteConfiguration": {"IndexDocument": "index.html"}},
            ".WebsiteConfiguration",
        ),
        ("AWS::S3::Bucket", {"AccessControl": "PublicRead"}, ".AccessControl"),
        ("AWS::Logs::LogGroup", {"LogGroupClass": "DELIVERY"}, ".LogGroupClass"),
        ("AWS::KMS::Key", {"KeyPolicy": KEY_POLICY, "Origin": "EXTERNAL"}, ".Origin"),
        ("AWS::SNS::Topic", {"FifoTopic": True}, ".FifoTopic"),
        (
            "AWS::StepFunctions::StateMachine",
            {"RoleArn": "arn", "Definition": {"StartAt": "A"}},
            "",
        ),
        ("AWS::EC2::Subnet", {"VpcId": "vpc-of-another-account", "CidrBlock": "10.0.0.0/24"}, ""),
        # IPAM chooses the addresses, and a subnet may have those of IPv6 only.
        ("AWS::EC2::VPC", {"Ipv4IpamPoolId": "ipam-pool-0", "Ipv4NetmaskLength": 24}, ""),
        ("AWS::EC2::Subnet", {"VpcId": "vpc-0", "Ipv6CidrBlock": "::/64", "Ipv6Native": True}, ""),
    ],
)
def test_what_a_provider_does_not_know_is_noted(
    aws: SimulatedAccount, kind: str, properties: dict[str, Any], noted: str
) -> None:
    """An unknown property, or a resource of another account, is named as not simulated."""
    name = f"Noted{kind}{noted}".translate({ord(":"): None, ord("."): None})
    stack = deployed(aws, name, {"A": (kind, properties)})
    assert stack.status == "CREATE_COMPLETE", stack.reason
    assert f"{name}/A" in aws.not_simulated[f"{kind}{noted}"]
    assert stack.resources["A"].physical.is_simulated == bool(noted)
    assert aws.destroy(name).status == "DELETE_COMPLETE", stack.reason


NETWORK: dict[str, tuple[str, dict[str, Any]]] = {
    "Vpc": ("AWS::EC2::VPC", {"CidrBlock": "10.0.0.0/16", "EnableDnsHostnames": True}),
    "Subnet": (
        "AWS::EC2::Subnet",
        {
            "VpcId": {"Ref": "Vpc"},
            "CidrBlock": "10.0.0.0/24",
            "AvailabilityZone": {"Fn::Select": [1, {"Fn::GetAZs": ""}]},
            "Tags": [{"Key": "Name", "Value": "inside"}],
        },
    ),
    "Group": (
        "AWS::EC2::SecurityGroup",
        {
            "GroupDescription": "in by TLS, out to nobody",
            "VpcId": {"Ref": "Vpc"},
            "SecurityGroupIngress": [
                {
                    "CidrIp": {"Fn::GetAtt": ["Vpc", "CidrBlock"]},
                    "IpProtocol": "tcp",
                    "FromPort": 443,
                    "ToPort": 443,
                }
            ],
            "SecurityGroupEgress": [
                {
                    "CidrIp": "255.255.255.255/32",
                    "IpProtocol": "icmp",
                    "FromPort": 252,
                    "ToPort": 86,
                }
            ],
        },
    ),
}


def test_network_is_created_and_deleted(aws: SimulatedAccount) -> None:
    """Zone, tags, DNS and rules are those of the template, without EC2's default rule."""
    stack = deployed(aws, "Network", NETWORK)
    assert stack.status == "CREATE_COMPLETE", stack.reason

    ec2 = aws.client("ec2")
    created = {name: resource.physical.id for name, resource in stack.resources.items()}
    (subnet,) = ec2.describe_subnets(SubnetIds=[created["Subnet"]])["Subnets"]
    assert subnet["AvailabilityZone"] == "us-east-1b"
    assert subnet["Tags"] == [{"Key": "Name", "Value": "inside"}]
    dns = ec2.describe_vpc_attribute(VpcId=created["Vpc"], Attribute="enableDnsHostnames")
    assert dns["EnableDnsHostnames"]["Value"] is True
    (group,) = ec2.describe_security_groups(GroupIds=[created["Group"]])["SecurityGroups"]
    (ingress,) = group["IpPermissions"]
    (egress,) = group["IpPermissionsEgress"]
    assert [address["CidrIp"] for address in ingress["IpRanges"]] == ["10.0.0.0/16"]
    assert [address["CidrIp"] for address in egress["IpRanges"]] == ["255.255.255.255/32"]

    assert aws.destroy("Network").status == "DELETE_COMPLETE"
    assert created["Vpc"] not in [vpc["VpcId"] for vpc in ec2.describe_vpcs()["Vpcs"]]
