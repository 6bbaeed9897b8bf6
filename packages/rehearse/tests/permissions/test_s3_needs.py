"""The permissions that requests to S3 need."""

from __future__ import annotations

from typing import Any

import pytest

from cdk_rehearse.moto_account.requests import SignedRequest
from cdk_rehearse.permissions.s3_needs import Need, S3Needs


@pytest.mark.parametrize(
    ("resource", "need", "decides"),
    [
        ("arn:aws:s3:::models/a.tar.gz", "s3:ListBucket", True),
        ("arn:aws:s3:::models/a.tar.gz", "s3:GetObject", False),
        ("arn:aws:s3:::models", "s3:ListBucket", False),
    ],
)
def test_permission_to_list_decides_how_a_missing_object_is_answered(
    resource: str, need: str, decides: bool
) -> None:
    """Who reads a missing object gets 404 with it and 403 without, and who lists needs it."""
    account: Any = None  # which is not asked
    request = SignedRequest("key", "s3", "GetObject", resource, "GET", "/", {}, {}, "")
    needed: Need = (need, resource.partition("/")[0], {})
    assert S3Needs(account).decides_only_the_status(needed, request) is decides
