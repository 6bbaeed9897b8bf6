"""The deploy-time function against a real S3 API on loopback, answering a real HTTP server."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from sync_requests import (
    DESTINATION,
    SOURCE,
    CloudFormation,
    Context,
    cloudformation,
    content,
    faults,
    index,
    keys,
    make_event,
    put_archive,
    s3,
    s3_url,
)

from constructs_triton.custom_resource_handlers.model_sync import handler, placement
from constructs_triton.custom_resource_handlers.response import CustomResourceError

__all__ = ["cloudformation", "faults", "s3", "s3_url"]


def test_create_places_every_archive(s3: Any, cloudformation: CloudFormation) -> None:
    """A create copies each archive to its target name below the prefix, and answers with the prefix."""
    archives = [put_archive(s3, "aaaa1", b"first"), put_archive(s3, "bbbb2", b"second")]
    handler.handler(make_event(s3, cloudformation, "Create", archives), Context())
    assert {key: content(s3, key) for key in keys(s3)} == {
        "models/aaaa.tar.gz": b"first",
        "models/bbbb.tar.gz": b"second",
    }
    assert cloudformation.answer["Status"] == "SUCCESS"
    assert cloudformation.answer["PhysicalResourceId"] == f"s3://{DESTINATION}/models/"
    assert index(s3)["target_models"] == {"aaaa": "aaaa.tar.gz", "bbbb": "bbbb.tar.gz"}


def test_repeated_run_copies_nothing_again(
    s3: Any, cloudformation: CloudFormation, faults: Callable[[str, int, int], list[str]]
) -> None:
    """What is already in place, by content and size, is left alone, so that a broken run can be resumed."""
    seen = faults("none", 0, 0)
    first, second = put_archive(s3, "aaaa1", b"first"), put_archive(s3, "bbbb2", b"second")
    handler.handler(make_event(s3, cloudformation, "Create", [first]), Context())
    handler.handler(make_event(s3, cloudformation, "Update", [first, second]), Context())
    assert seen.count("CopyObject") == 2


def test_changed_content_replaces_the_object(s3: Any, cloudformation: CloudFormation) -> None:
    """The same name with other content of the same length is copied anew."""
    old, new = put_archive(s3, "aaaa1", b"11111"), put_archive(s3, "aaaa2", b"22222")
    handler.handler(make_event(s3, cloudformation, "Create", [old]), Context())
    handler.handler(make_event(s3, cloudformation, "Update", [new]), Context())
    assert content(s3, "models/aaaa.tar.gz") == b"22222"


def test_update_keeps_what_is_no_longer_listed(s3: Any, cloudformation: CloudFormation) -> None:
    """A running endpoint may still load an archive that the new template has dropped."""
    first, second = put_archive(s3, "aaaa1", b"first"), put_archive(s3, "bbbb2", b"second")
    handler.handler(make_event(s3, cloudformation, "Create", [first]), Context())
    handler.handler(make_event(s3, cloudformation, "Update", [second]), Context())
    assert keys(s3) == ["models/aaaa.tar.gz", "models/bbbb.tar.gz"]


def test_large_archive_is_copied_in_parts(
    s3: Any, cloudformation: CloudFormation, faults: Callable[[str, int, int], list[str]], monkeypatch: Any
) -> None:
    """Above CopyObject's limit the parts are copied inside S3, and the result is whole."""
    seen = faults("none", 0, 0)
    monkeypatch.setattr(placement, "MULTIPART_THRESHOLD_BYTES", 6 * 1024**2)
    monkeypatch.setattr(placement, "MULTIPART_CHUNK_BYTES", 5 * 1024**2)
    weights = bytes(range(256)) * 4 * 1024 * 11
    archive = put_archive(s3, "cccc1", weights)
    for _ in range(2):
        handler.handler(make_event(s3, cloudformation, "Create", [archive]), Context())
    assert content(s3, "models/cccc.tar.gz") == weights
    assert (seen.count("UploadPartCopy"), seen.count("CopyObject")) == (3, 0)
    assert seen.count("GetObject") == 4  # the list and the index, twice


@pytest.mark.parametrize("operation", ["HeadObject", "CopyObject"])
def test_passing_fault_is_ridden_out(
    s3: Any, cloudformation: CloudFormation, faults: Callable[[str, int, int], list[str]], operation: str
) -> None:
    """Two times 503 from S3 do not fail the deployment."""
    archive = put_archive(s3, "aaaa1", b"first")
    faults(operation, 503, 2)
    handler.handler(make_event(s3, cloudformation, "Create", [archive]), Context())
    assert cloudformation.answer["Status"] == "SUCCESS"
    assert content(s3, "models/aaaa.tar.gz") == b"first"


def test_denied_copy_fails_with_the_archive_named(
    s3: Any, cloudformation: CloudFormation, faults: Callable[[str, int, int], list[str]]
) -> None:
    """A refusal of S3 becomes a failed deployment that names the archive and the log."""
    archive = put_archive(s3, "aaaa1", b"first")
    faults("CopyObject", 403, 1)
    handler.handler(make_event(s3, cloudformation, "Create", [archive]), Context())
    assert cloudformation.answer["Status"] == "FAILED"
    assert "1 of 1 archives were not placed: aaaa.tar.gz" in cloudformation.answer["Reason"]
    assert Context.log_stream_name in cloudformation.answer["Reason"]


def test_hidden_absence_is_absence(
    s3: Any, cloudformation: CloudFormation, faults: Callable[[str, int, int], list[str]]
) -> None:
    """Where S3 says 403 for a key that is not there, the archive is placed all the same."""
    archive = put_archive(s3, "aaaa1", b"first")
    faults("HeadObject", 403, 1)
    handler.handler(make_event(s3, cloudformation, "Create", [archive]), Context())
    assert keys(s3) == ["models/aaaa.tar.gz"]


def test_all_failures_are_reported_and_the_rest_is_placed(s3: Any, cloudformation: CloudFormation) -> None:
    """Two missing archives are both named, and the one that is there is placed."""
    missing = [
        {"Name": name, "SourceKey": f"{name}.tar.gz", "TargetModel": f"{name}.tar.gz", "SizeBytes": 1}
        for name in "xy"
    ]
    good = put_archive(s3, "aaaa1", b"first")
    handler.handler(make_event(s3, cloudformation, "Create", [missing[0], good, missing[1]]), Context())
    assert cloudformation.answer["Reason"].startswith("2 of 3 archives were not placed: x.tar.gz: ")
    assert "; y.tar.gz: " in cloudformation.answer["Reason"]
    assert keys(s3) == ["models/aaaa.tar.gz"]


def test_wrong_size_is_refused_before_copying(s3: Any, cloudformation: CloudFormation) -> None:
    """An archive that is not as long as the template says is not placed."""
    archive = put_archive(s3, "aaaa1", b"first") | {"SizeBytes": 6}
    handler.handler(make_event(s3, cloudformation, "Create", [archive]), Context())
    assert f"s3://{SOURCE}/aaaa1.tar.gz: must have 6 bytes, got 5" in cloudformation.answer["Reason"]
    assert keys(s3) == []


@pytest.mark.parametrize(("wish", "left"), [({}, 1), ({"RemoveOnDelete": "true"}, 0)])
def test_delete_removes_only_when_asked(
    s3: Any, cloudformation: CloudFormation, wish: dict[str, str], left: int
) -> None:
    """A deleted resource leaves its archives, unless it was told to take them along."""
    archive = put_archive(s3, "aaaa1", b"first")
    handler.handler(make_event(s3, cloudformation, "Create", [archive]), Context())
    event = make_event(s3, cloudformation, "Delete", [archive], **wish)
    handler.handler(event | {"PhysicalResourceId": f"s3://{DESTINATION}/models/"}, Context())
    assert len(keys(s3)) == left
    assert [answer["Status"] for answer in cloudformation.answers] == ["SUCCESS", "SUCCESS"]


def test_failed_create_can_be_deleted(s3: Any, cloudformation: CloudFormation) -> None:
    """Properties that cannot be read fail the create and do not keep the stack from being deleted."""
    event = make_event(s3, cloudformation, "Create", [{"Name": "a", "SourceKey": "a.tar.gz"}])
    handler.handler(event, Context())
    failed_id = cloudformation.answers[0]["PhysicalResourceId"]
    handler.handler(event | {"RequestType": "Delete", "PhysicalResourceId": failed_id}, Context())
    assert [answer["Status"] for answer in cloudformation.answers] == ["FAILED", "SUCCESS"]
    assert "KeyError: 'TargetModel'" in cloudformation.answers[0]["Reason"]


def test_answer_is_repeated_until_it_arrives(
    s3: Any, cloudformation: CloudFormation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two refused answers are followed by a third."""
    monkeypatch.setattr(time, "sleep", lambda _: None)
    cloudformation.refusals = 2
    handler.handler(make_event(s3, cloudformation, "Create"), Context())
    assert cloudformation.answer["Status"] == "SUCCESS"


def test_answer_stays_below_cloudformations_limit(s3: Any, cloudformation: CloudFormation) -> None:
    """However many archives fail, with whatever names, the answer has at most 4,096 bytes."""
    names = [f"{index}-äöü-{'n' * 200}.tar.gz" for index in range(40)]
    archives = [{"Name": name, "SourceKey": "gone", "TargetModel": name, "SizeBytes": 1} for name in names]
    handler.handler(make_event(s3, cloudformation, "Create", archives), Context())
    assert cloudformation.answer["Status"] == "FAILED"
    assert cloudformation.sizes[0] <= 4096


def test_changed_list_of_archives_is_not_used(s3: Any, cloudformation: CloudFormation) -> None:
    """A list with another digest than the template's fails, and nothing is placed."""
    event = make_event(s3, cloudformation, "Create", [put_archive(s3, "aaaa1", b"first")])
    key = event["ResourceProperties"]["ManifestKey"]
    s3.put_object(Bucket=SOURCE, Key=key, Body=b'{"version": 1, "archives": []}')
    handler.handler(event, Context())
    assert cloudformation.answer["Status"] == "FAILED"
    digest = event["ResourceProperties"]["ManifestDigest"]
    assert f"s3://{SOURCE}/{key}: SHA-256 must be {digest}, got " in cloudformation.answer["Reason"]
    assert keys(s3) == []


def test_response_that_never_arrives_fails_the_run(
    s3: Any, cloudformation: CloudFormation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After four attempts the run fails, so that AWS Lambda starts it again."""
    monkeypatch.setattr(time, "sleep", lambda _: None)
    cloudformation.refusals = 4
    with pytest.raises(CustomResourceError, match="could not be sent"):
        handler.handler(make_event(s3, cloudformation, "Create"), Context())
    assert cloudformation.refusals == 0
