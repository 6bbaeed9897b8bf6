"""Where the assets of an assembly go without the CDK's command line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from small_assembly import BUCKET, write_assembly

from cdk_rehearse import SimulatedAccount
from cdk_rehearse.stacks.publishing import publish
from constructs_triton_core.cloud_assembly.assembly import Assembly

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("loopback_stack")]


@pytest.fixture(scope="module")
def aws() -> Iterator[SimulatedAccount]:
    with SimulatedAccount() as account:
        account.api.assumes_existing = True
        yield account


@pytest.mark.parametrize(
    "name",
    [
        BUCKET,
        {"Fn::Sub": BUCKET.replace("us-east-1", "${AWS::Region}")},
        {"Fn::Join": ["-", [BUCKET.removesuffix("-us-east-1"), {"Ref": "AWS::Region"}]]},
    ],
    ids=["text", "Sub", "Join"],
)
def test_bucket_that_a_stack_creates_is_not_assumed(
    aws: SimulatedAccount, tmp_path: Path, name: Any
) -> None:
    """The staging stack of ``AppStagingSynthesizer`` creates the bucket of its app's assets."""
    bucket = {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": name}}
    folder = write_assembly(tmp_path / "out", {"Staging": bucket})
    assert not publish(Assembly(folder), aws.api)
    assert BUCKET not in aws.api.backend("s3").buckets
