"""Calls that S3 denies, because a new policy takes some seconds to take effect."""

from __future__ import annotations

import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from sync_requests import (
    DESTINATION,
    CloudFormation,
    Context,
    keys,
    make_event,
    put_archive,
)

from constructs_triton_functions import retries
from constructs_triton_functions.model_sync import handler, placement

PART = 5 * 1024**2
OPERATIONS = [
    "GetObject",
    "HeadObject",
    "CopyObject",
    "PutObject",
    "ListMultipartUploads",
    "CreateMultipartUpload",
    "ListParts",
    "UploadPartCopy",
    "CompleteMultipartUpload",
]


class Clock:
    """A clock that only sleeping moves."""

    now = 0.0

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "sleep", clock.sleep)
    monkeypatch.setattr(retries, "time", SimpleNamespace(monotonic=lambda: clock.now))
    monkeypatch.setattr(placement, "MULTIPART_THRESHOLD_BYTES", PART)
    monkeypatch.setattr(placement, "MULTIPART_CHUNK_BYTES", PART)
    return clock


@pytest.mark.parametrize("operation", OPERATIONS)
def test_function_waits_for_a_new_policy(
    s3: Any,
    cloudformation: CloudFormation,
    faults: Callable[[str, int, int], list[str]],
    clock: Clock,
    operation: str,
) -> None:
    """S3 may deny any of the first calls; the function repeats it."""
    archives = [put_archive(s3, "aaaa1", b"first"), put_archive(s3, "cccc1", bytes(2 * PART))]
    event = make_event(s3, cloudformation, "Create", archives)
    faults(operation, 403, 3)
    handler.handler(event, Context())
    assert cloudformation.response["Status"] == "SUCCESS"
    assert clock.now >= 2


def test_denied_deletion_is_repeated(
    s3: Any, cloudformation: CloudFormation, faults: Callable[[str, int, int], list[str]], clock: Clock
) -> None:
    """The calls that empty a prefix wait for a new policy too."""
    event = make_event(s3, cloudformation, "Delete", [put_archive(s3, "aaaa1", b"first")])
    event["ResourceProperties"]["RemoveOnDelete"] = "true"
    event["PhysicalResourceId"] = f"s3://{DESTINATION}/models/"
    s3.put_object(Bucket=DESTINATION, Key="models/aaaa.tar.gz", Body=b"first")
    for operation in ("ListObjectVersions", "DeleteObjects"):
        faults(operation, 403, 2)
    handler.handler(event, Context())
    assert cloudformation.response["Status"] == "SUCCESS"
    assert not keys(s3)
    assert clock.now == 8


def test_missing_permission_delays_a_deployment_once(
    s3: Any, cloudformation: CloudFormation, faults: Callable[[str, int, int], list[str]], clock: Clock
) -> None:
    """All calls share the 40 seconds, so twelve denied archives do not take twelve times as long."""
    archives = [put_archive(s3, f"{number:04d}x", b"first") for number in range(12)]
    event = make_event(s3, cloudformation, "Create", archives)
    faults("CopyObject", 403, 1000)
    handler.handler(event, Context())
    assert "12 of 12 archives were not placed" in cloudformation.response["Reason"]
    assert 40 < clock.now <= 40 + 2 * 12
