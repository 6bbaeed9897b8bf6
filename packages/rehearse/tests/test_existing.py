"""What templates name and no stack creates."""

from __future__ import annotations

import pytest

from cdk_rehearse.existing import mentions


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("arn:aws:kms:us-east-1:123456789012:key/0a1b", [("KMS key", "0a1b")]),
        # The policies of `cdk bootstrap` name this in place of a key of your own.
        ("arn:aws:kms:us-east-1:123456789012:key/AWS_MANAGED_KEY", []),
        ("arn:aws:s3:::cdk-hnb659fds-assets-123456789012-us-east-1", []),
        ("arn:aws:s3:::weights", [("bucket", "weights")]),
    ],
)
def test_what_bootstrap_creates_is_not_mentioned(text: str, found: list[tuple[str, str]]) -> None:
    """Resources of the user are found in values of any depth, and none of ``cdk bootstrap``."""
    assert list(mentions({"Policy": [{"Resource": text}]})) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("s3://weights/model.tar.gz", [("bucket", "weights")]),
        ("arn:aws-cn:iam::123456789012:role/service/Reader", [("role", "Reader")]),
        ("arn:aws:iam::123456789012:policy/team/Deny", [("managed policy", "Deny")]),
        # A policy of AWS has no account.
        ("arn:aws:iam::aws:policy/ReadOnlyAccess", []),
        ("arn:aws:sns:us-east-1:123456789012:alarms", [("topic", "alarms")]),
        (
            "123456789012.dkr.ecr.us-east-1.amazonaws.com/team/triton:1",
            [("image repository", "triton")],
        ),
        (
            "arn:aws:ecr:us-east-1:123456789012:repository/team/triton",
            [("image repository", "triton")],
        ),
        # The account of AWS's Deep Learning Containers.
        ("763104351884.dkr.ecr.us-east-1.amazonaws.com/sagemaker-tritonserver:1", []),
        ("vpc-0123abcd", [("VPC", "vpc-0123abcd")]),
        ("subnet-0123abcd", [("subnet", "subnet-0123abcd")]),
        ("sg-0123abcd", [("security group", "sg-0123abcd")]),
    ],
)
def test_each_kind_of_resource_is_mentioned(text: str, found: list[tuple[str, str]]) -> None:
    """A string names a resource of the user; repositories and policies of AWS are not mentioned."""
    assert list(mentions(text)) == found
