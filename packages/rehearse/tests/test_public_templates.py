"""What public templates have and apps of the CDK rarely do."""

from __future__ import annotations

from typing import Any

from shared_endpoint import deploy

from cdk_rehearse import SimulatedAccount
from constructs_triton_core.cloud_assembly.template import Template


def test_bucket_with_access_logs_is_deleted() -> None:
    """S3 delivers access logs hours later, so that none is there right after the deployment."""
    logged = {"LoggingConfiguration": {"DestinationBucketName": {"Ref": "Logs"}}}
    resources = {
        "Logs": {"Type": "AWS::S3::Bucket"},
        "Data": {"Type": "AWS::S3::Bucket", "Properties": logged},
    }
    with SimulatedAccount() as account:
        stack = deploy(account, resources, "Logged")
        assert stack.status == "CREATE_COMPLETE", stack.reason
        account.client("s3").list_objects_v2(Bucket=stack.resources["Data"].physical.id)
        assert account.destroy("Logged").status == "DELETE_COMPLETE"


def test_custom_resource_may_have_a_version() -> None:
    """Examples of AWS write ``Version`` beside its type; another resource has no such key."""
    token = {"ServiceToken": "arn:aws:lambda:us-east-1:123456789012:function:f"}
    custom: dict[str, Any] = {"Type": "Custom::Made", "Version": "1.0", "Properties": token}
    topic: dict[str, Any] = {"Type": "AWS::SNS::Topic", "Version": "1.0"}
    with SimulatedAccount() as account:
        stack = deploy(account, {"Made": custom}, "Custom")
        assert stack.status == "CREATE_COMPLETE", stack.reason
        assert "Version is not supported" in deploy(account, {"Topic": topic}, "Topic").reason


def test_allowed_value_of_a_parameter_may_be_a_number() -> None:
    """A deployment passes the string of a number that the template allows, and no other one."""
    body = {
        "Parameters": {"Count": {"Type": "Number", "AllowedValues": [1, 2], "Default": "2"}},
        "Resources": {"Topic": {"Type": "AWS::SNS::Topic"}},
    }
    with SimulatedAccount() as account:
        for value, status in (("1", "CREATE_COMPLETE"), ("3", "ROLLBACK_COMPLETE")):
            stack = account.stacks.add(f"Count{value}")
            account.deployer.deploy(stack, Template(body), {"Count": value})
            assert stack.status == status, stack.reason
