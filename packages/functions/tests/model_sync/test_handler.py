"""The function with a real S3 API on loopback and a real HTTP server for the responses."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest
from sync_requests import (
    DESTINATION,
    SOURCE,
    CloudFormation,
    Context,
    Faults,
    content,
    index,
    keys,
    make_event,
    put_archive,
)

from constructs_triton_functions import response, retries
from constructs_triton_functions.model_sync import handler, placement
from constructs_triton_functions.response import CustomResourceError


def test_create_places_every_archive(s3: Any, cloudformation: CloudFormation) -> None:
    """A create copies each archive to its target name below the prefix,
    and the response has the prefix.
    """
    archives = [put_archive(s3, "aaaa1", b"first"), put_archive(s3, "bbbb2", b"second")]
    handler.handler(make_event(s3, cloudformation, "Create", archives), Context())
    assert {key: content(s3, key) for key in keys(s3)} == {
        "models/aaaa.tar.gz": b"first",
        "models/bbbb.tar.gz": b"second",
    }
    assert cloudformation.response["Status"] == "SUCCESS"
    assert cloudformation.response["PhysicalResourceId"] == f"s3://{DESTINATION}/models/"
    assert index(s3)["target_models"] == {"aaaa": "aaaa.tar.gz", "bbbb": "bbbb.tar.gz"}


def test_repeated_run_copies_nothing_again(
    s3: Any, cloudformation: CloudFormation, faults: Faults
) -> None:
    """An archive in place, by content and size, is not copied again,
    so an interrupted run can be resumed.
    """
    seen = faults("none", 0, 0)
    first, second = put_archive(s3, "aaaa1", b"first"), put_archive(s3, "bbbb2", b"second")
    handler.handler(make_event(s3, cloudformation, "Create", [first]), Context())
    handler.handler(make_event(s3, cloudformation, "Update", [first, second]), Context())
    assert seen.count("CopyObject") == 2


def test_changed_content_replaces_the_object(s3: Any, cloudformation: CloudFormation) -> None:
    """Other content of the same size under the same name is copied."""
    old, new = put_archive(s3, "aaaa1", b"11111"), put_archive(s3, "aaaa2", b"22222")
    handler.handler(make_event(s3, cloudformation, "Create", [old]), Context())
    handler.handler(make_event(s3, cloudformation, "Update", [new]), Context())
    assert content(s3, "models/aaaa.tar.gz") == b"22222"


def test_large_archive_is_copied_in_parts(
    s3: Any, cloudformation: CloudFormation, faults: Faults, monkeypatch: Any
) -> None:
    """Above CopyObject's limit the parts are copied inside S3, and the result is complete."""
    seen = faults("none", 0, 0)
    monkeypatch.setattr(placement, "MULTIPART_THRESHOLD_BYTES", 6 * 1024**2)
    monkeypatch.setattr(placement, "MULTIPART_CHUNK_BYTES", 5 * 1024**2)
    weights = bytes(range(256)) * 4 * 1024 * 11
    archive = put_archive(s3, "cccc1", weights)
    for _ in range(2):
        handler.handler(make_event(s3, cloudformation, "Create", [archive]), Context())
    assert content(s3, "models/cccc.tar.gz") == weights
    assert (seen.count("UploadPartCopy"), seen.count("CopyObject")) == (3, 0)
    assert seen.count("GetObject") == 6  # the list, and the index before and after placing, twice


@pytest.mark.parametrize("operation", ["HeadObject", "CopyObject"])
def test_temporary_fault_is_retried(
    s3: Any, cloudformation: CloudFormation, faults: Faults, operation: str
) -> None:
    """Two responses of S3 with 503 do not fail the deployment."""
    archive = put_archive(s3, "aaaa1", b"first")
    faults(operation, 503, 2)
    handler.handler(make_event(s3, cloudformation, "Create", [archive]), Context())
    assert cloudformation.response["Status"] == "SUCCESS"
    assert content(s3, "models/aaaa.tar.gz") == b"first"


def test_reason_of_a_denied_copy_names_the_archive(
    s3: Any, cloudformation: CloudFormation, faults: Faults, monkeypatch: Any
) -> None:
    """If S3 denies access, the deployment fails with the archive and the
    log stream in its reason.
    """
    monkeypatch.setattr(retries, "PROPAGATION_SECONDS", 0)
    archive = put_archive(s3, "aaaa1", b"first")
    faults("CopyObject", 403, 1)
    handler.handler(make_event(s3, cloudformation, "Create", [archive]), Context())
    assert cloudformation.response["Status"] == "FAILED"
    assert "1 of 1 archives were not placed: aaaa.tar.gz" in cloudformation.response["Reason"]
    assert Context.log_stream_name in cloudformation.response["Reason"]


def test_all_failures_are_reported_and_the_rest_is_placed(
    s3: Any, cloudformation: CloudFormation
) -> None:
    """Two missing archives are both named, and the existing one is placed."""
    missing = [
        {
            "Name": name,
            "SourceKey": f"{name}.tar.gz",
            "TargetModel": f"{name}.tar.gz",
            "SizeBytes": 1,
        }
        for name in "xy"
    ]
    good = put_archive(s3, "aaaa1", b"first")
    handler.handler(
        make_event(s3, cloudformation, "Create", [missing[0], good, missing[1]]), Context()
    )
    assert cloudformation.response["Reason"].startswith(
        "2 of 3 archives were not placed: x.tar.gz: "
    )
    assert "; y.tar.gz: " in cloudformation.response["Reason"]
    assert keys(s3) == ["models/aaaa.tar.gz"]


def test_wrong_size_is_an_error_before_copying(s3: Any, cloudformation: CloudFormation) -> None:
    """An archive with another size than in the template is not placed."""
    archive = put_archive(s3, "aaaa1", b"first") | {"SizeBytes": 6}
    handler.handler(make_event(s3, cloudformation, "Create", [archive]), Context())
    assert (
        f"s3://{SOURCE}/aaaa1.tar.gz: must have 6 bytes, got 5" in cloudformation.response["Reason"]
    )
    assert keys(s3) == []


@pytest.mark.parametrize(("properties", "left"), [({}, 1), ({"RemoveOnDelete": "true"}, 0)])
def test_delete_removes_archives_only_if_configured(
    s3: Any, cloudformation: CloudFormation, properties: dict[str, str], left: int
) -> None:
    """Deleting the resource keeps its archives, unless ``RemoveOnDelete`` is set."""
    archive = put_archive(s3, "aaaa1", b"first")
    handler.handler(make_event(s3, cloudformation, "Create", [archive]), Context())
    event = make_event(s3, cloudformation, "Delete", [archive], **properties)
    handler.handler(event | {"PhysicalResourceId": f"s3://{DESTINATION}/models/"}, Context())
    assert len(keys(s3)) == left
    assert [response["Status"] for response in cloudformation.responses] == ["SUCCESS", "SUCCESS"]


def test_failed_create_can_be_deleted(s3: Any, cloudformation: CloudFormation) -> None:
    """Properties that cannot be read fail the create, and the stack can still be deleted."""
    event = make_event(s3, cloudformation, "Create", [{"Name": "a", "SourceKey": "a.tar.gz"}])
    handler.handler(event, Context())
    failed_id = cloudformation.responses[0]["PhysicalResourceId"]
    handler.handler(event | {"RequestType": "Delete", "PhysicalResourceId": failed_id}, Context())
    assert [response["Status"] for response in cloudformation.responses] == ["FAILED", "SUCCESS"]
    assert (
        "must list archives with Name, SourceKey and TargetModel"
        in cloudformation.responses[0]["Reason"]
    )


def test_response_is_sent_again_until_it_is_accepted(
    s3: Any, cloudformation: CloudFormation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After two rejected responses, a third is sent."""
    monkeypatch.setattr(time, "sleep", lambda _: None)
    cloudformation.refusals = 2
    handler.handler(make_event(s3, cloudformation, "Create"), Context())
    assert cloudformation.response["Status"] == "SUCCESS"


def test_response_is_below_the_limit_of_cloudformation(
    s3: Any, cloudformation: CloudFormation
) -> None:
    """The response has at most 4,096 bytes, with many failed archives and long names."""
    names = [f"{index}-äöü-{'n' * 200}.tar.gz" for index in range(40)]
    archives = [
        {"Name": name, "SourceKey": "gone", "TargetModel": name, "SizeBytes": 1} for name in names
    ]
    handler.handler(make_event(s3, cloudformation, "Create", archives), Context())
    assert cloudformation.response["Status"] == "FAILED"
    assert cloudformation.sizes[0] <= 4096


def test_changed_list_of_archives_is_not_used(s3: Any, cloudformation: CloudFormation) -> None:
    """A list with another digest than the template's fails, and nothing is placed."""
    event = make_event(s3, cloudformation, "Create", [put_archive(s3, "aaaa1", b"first")])
    key = event["ResourceProperties"]["ManifestKey"]
    s3.put_object(Bucket=SOURCE, Key=key, Body=b'{"version": 1, "archives": []}')
    handler.handler(event, Context())
    assert cloudformation.response["Status"] == "FAILED"
    digest = event["ResourceProperties"]["ManifestDigest"]
    assert (
        f"s3://{SOURCE}/{key}: SHA-256 must be {digest}, got " in cloudformation.response["Reason"]
    )
    assert keys(s3) == []


def test_run_fails_if_no_response_is_accepted(
    s3: Any, cloudformation: CloudFormation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After four attempts with growing pauses the run fails, so that AWS Lambda starts it again."""
    pauses: list[float] = []
    monkeypatch.setattr(response, "time", SimpleNamespace(sleep=pauses.append))
    cloudformation.refusals = 4
    with pytest.raises(CustomResourceError, match="could not be sent"):
        handler.handler(make_event(s3, cloudformation, "Create"), Context())
    assert cloudformation.refusals == 0
    assert pauses == [0, 1, 2, 3]


def test_every_part_copied_at_once_has_a_connection() -> None:
    """No thread waits for a connection: 16 archives of 8 parts each are copied at once."""
    assert handler._client().meta.config.max_pool_connections == 128


@pytest.mark.parametrize(
    ("properties", "sent"), [({"CreatesBucket": "true"}, b"AES256"), ({}, None)]
)
def test_writes_to_the_repository_s_bucket_say_how_they_are_encrypted(
    s3: Any, cloudformation: CloudFormation, monkeypatch: Any, properties: Any, sent: bytes | None
) -> None:
    """A bucket policy may demand the header; the keys of a bucket that the
    user passes are not known.
    """
    headers: dict[str, Any] = {}

    def note(request: Any, event_name: str, **_: object) -> None:
        headers[event_name.rsplit(".", 1)[1]] = request.headers.get("x-amz-server-side-encryption")

    client = handler._client()
    client.meta.events.register("before-send.s3", note)
    monkeypatch.setattr(handler, "_client", lambda: client)
    monkeypatch.setattr(placement, "MULTIPART_THRESHOLD_BYTES", 6)
    archives = [put_archive(s3, "aaaa1", b"small"), put_archive(s3, "bbbb2", b"in parts")]
    handler.handler(make_event(s3, cloudformation, "Create", archives, **properties), Context())
    assert cloudformation.response["Status"] == "SUCCESS"
    assert {headers[name] for name in ("CopyObject", "CreateMultipartUpload", "PutObject")} == {
        sent
    }
