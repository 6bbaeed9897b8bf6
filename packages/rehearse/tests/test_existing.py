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
