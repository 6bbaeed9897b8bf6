"""Copies are compared with their source by size and checksum."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber

from constructs_triton_functions.model_sync import placement
from constructs_triton_functions.model_sync.placement import Placement, Source, SyncError

SOURCE_HEAD = {"ContentLength": 5, "ETag": '"aa"', "Metadata": {}}


def place(origin: dict[str, Any], placed: dict[str, Any]) -> None:
    """Place an archive with S3 reporting these attributes of the source and of its copy."""
    client = boto3.client("s3")
    with Stubber(client) as stub:
        stub.add_client_error("head_object", "404", http_status_code=404)
        stub.add_response("head_object", {**SOURCE_HEAD, **origin})
        stub.add_response("copy_object", {})
        stub.add_response("head_object", {**SOURCE_HEAD, **placed})
        Placement(client, "models", "p/", "owner").place(
            Source("assets", "a.tar.gz", 5), "a.tar.gz"
        )
        stub.assert_no_pending_responses()


@pytest.mark.parametrize("name", ["ChecksumCRC32", "ChecksumCRC64NVME", "ChecksumSHA256"])
def test_copy_with_another_checksum_is_an_error(name: str) -> None:
    """A checksum that differs from the source's fails; the same one does not."""
    place({name: "one"}, {name: "one"})
    with pytest.raises(SyncError, match=rf"s3://models/p/a.tar.gz: {name} must be one .*, got two"):
        place({name: "one"}, {name: "two"})


@pytest.mark.parametrize(
    ("origin", "placed"),
    [
        ({"ChecksumCRC32": "one"}, {"ChecksumCRC32": "two-3"}),
        ({"ChecksumCRC32": "one-3"}, {"ChecksumCRC32": "two"}),
        ({}, {"ETag": '"bb-3"'}),
        ({}, {"ETag": '"bb"', "ServerSideEncryption": "aws:kms"}),
    ],
)
def test_checksums_of_parts_and_of_encrypted_objects_are_not_compared(
    origin: dict[str, Any], placed: dict[str, Any]
) -> None:
    """They say nothing about the content: S3 computes them from the parts,
    or from the encrypted bytes.
    """
    place(origin, placed)


@pytest.mark.parametrize(
    ("placed", "words"),
    [({"ETag": '"bb"'}, "ETag must be"), ({"ContentLength": 4}, "must have 5 bytes, got 4")],
)
def test_copy_with_another_md5_or_size_is_an_error(placed: dict[str, Any], words: str) -> None:
    """Without encryption keys the ETag is the MD5 of the content."""
    with pytest.raises(SyncError, match=f"s3://models/p/a.tar.gz: {words}"):
        place({}, placed)


@pytest.mark.parametrize(("age_seconds", "is_aborted"), [(3599, False), (3600, True)])
def test_upload_is_abandoned_after_an_hour(
    age_seconds: int, is_aborted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CloudFormation waits an hour, in which several runs may continue one upload; an older one is
    aborted.
    """
    now = datetime(2026, 1, 1, tzinfo=UTC)

    class Clock(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            assert tz is UTC
            return now

    monkeypatch.setattr(placement, "datetime", Clock)
    upload = {
        "Key": "p/a.tar.gz",
        "UploadId": "1",
        "Initiated": now - timedelta(seconds=age_seconds),
    }
    client = boto3.client("s3")
    with Stubber(client) as stub:
        stub.add_response("list_multipart_uploads", {"Uploads": [upload]})
        if is_aborted:
            named = {"Bucket": "models", "Key": "p/a.tar.gz", "UploadId": "1"}
            stub.add_response("abort_multipart_upload", {}, named)
        Placement(client, "models", "p/", "owner")._abort_abandoned("p/a.tar.gz")
        stub.assert_no_pending_responses()


def test_eight_parts_are_copied_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """No part of eight is finished before all of them have begun."""
    begun = threading.Barrier(8, timeout=10)

    def copy_part(*_: object) -> str:
        begun.wait()
        return "etag"

    monkeypatch.setattr(Placement, "_copy_part", copy_part)
    monkeypatch.setattr(Placement, "_finished_parts", lambda *_: {})
    client = boto3.client("s3")
    origin = {"ContentLength": 8 * placement.MULTIPART_CHUNK_BYTES}
    with Stubber(client) as stub:
        stub.add_response("complete_multipart_upload", {})
        place = Placement(client, "models", "p/", "owner", uploads={"p/a": "1"})
        place._copy_in_parts(Source("assets", "a"), "p/a", origin, {})
        stub.assert_no_pending_responses()
