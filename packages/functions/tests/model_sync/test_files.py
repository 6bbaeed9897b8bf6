"""The function places the files of a model: large ones by copies inside S3,
small ones from a zip.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping
from typing import Any

import pytest
from sync_requests import (
    DESTINATION,
    PART,
    SOURCE,
    CloudFormation,
    Context,
    Faults,
    ShortRun,
    content,
    make_event,
)

from constructs_triton_functions.model_sync import FILES_RESOURCE_TYPE, file_placement, handler
from constructs_triton_functions.model_sync.manifest import FileManifest, ListedFile

Files = Mapping[str, bytes]
PREFIX = "models/files/net/"
SMALL = {"net/config.pbtxt": b"name", "net/1/labels.txt": b"cat", "net/1/empty.txt": b""}
LARGE = {"net/1/model.onnx": b"L" * 5_000}
DAY = 24 * 60 * 60


def files_event(
    s3: Any,
    cloudformation: CloudFormation,
    request_type: str,
    small: Files,
    large: Files,
    **properties: Any,
) -> dict[str, Any]:
    """A request of CloudFormation; the assets are in the asset bucket."""
    zip_content, listed = b"PK", []
    for path, body in small.items():
        listed.append(ListedFile(path, len(body), offset=len(zip_content), crc32=zlib.crc32(body)))
        zip_content += body + b"PK"
    zip_key = f"{hashlib.sha256(zip_content).hexdigest()}.zip"
    s3.put_object(Bucket=SOURCE, Key=zip_key, Body=zip_content)
    for path, body in large.items():
        key = f"{hashlib.sha256(body).hexdigest()}.modelfile"
        s3.put_object(Bucket=SOURCE, Key=key, Body=body)
        listed.append(ListedFile(path, len(body), key))
    manifest = FileManifest.of(listed, zip_key if small else None)
    s3.put_object(Bucket=SOURCE, Key=f"{manifest.digest}.json", Body=manifest.to_json().encode())
    event = make_event(s3, cloudformation, request_type)
    event["ResourceType"] = FILES_RESOURCE_TYPE
    event["ResourceProperties"] |= {
        "ManifestKey": f"{manifest.digest}.json",
        "ManifestDigest": manifest.digest,
        "DestinationPrefix": PREFIX,
        "DestinationFolder": f"{folder_of(small, large)}",
        **properties,
    }
    return event


def folder_of(small: Files, large: Files) -> str:
    return hashlib.sha256(repr(sorted({**small, **large}.items())).encode()).hexdigest()[:32] + "/"


def placed(s3: Any, small: Files, large: Files) -> dict[str, bytes]:
    prefix = PREFIX + folder_of(small, large)
    found = s3.list_objects_v2(Bucket=DESTINATION, Prefix=prefix).get("Contents", ())
    return {item["Key"].removeprefix(prefix): content(s3, item["Key"]) for item in found}


def index(s3: Any) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(content(s3, f"{PREFIX}index.json"))
    return value


def run(
    event: dict[str, Any], cloudformation: CloudFormation, context: Context | None = None
) -> str:
    """Run the function; returns the status, with the reason of a failure."""
    handler.handler(event, context or Context())
    response = cloudformation.responses.pop()
    return f"{response['Status']} {response['Reason']}".strip()


@pytest.mark.parametrize(("small", "large"), [(SMALL, LARGE), (SMALL, {}), ({}, LARGE)])
def test_every_file_is_placed(
    s3: Any, cloudformation: CloudFormation, small: Files, large: Files
) -> None:
    """Each object, in the zip or not, has its file's content;
    the resource's id is the model's prefix.
    """
    handler.handler(files_event(s3, cloudformation, "Create", small, large), Context())
    assert cloudformation.response["Status"] == "SUCCESS", cloudformation.response
    assert cloudformation.response["PhysicalResourceId"] == f"s3://{DESTINATION}/{PREFIX}"
    assert placed(s3, small, large) == {**small, **large}
    assert list(index(s3)["target_models"].values()) == [folder_of(small, large)]


def test_repeated_request_places_nothing(
    s3: Any, cloudformation: CloudFormation, faults: Faults
) -> None:
    """What is in place is not placed again, which also makes a rollback quick."""
    event = files_event(s3, cloudformation, "Create", SMALL, LARGE)
    seen = faults("CopyObject", 500, 0)
    assert run(event, cloudformation) == "SUCCESS"
    seen.clear()
    assert run(event, cloudformation) == "SUCCESS"
    assert {"CopyObject", "PutObject"}.isdisjoint(seen)


def test_changed_model_keeps_the_old_files(s3: Any, cloudformation: CloudFormation) -> None:
    """An update has a folder of its own; the old one is retired,
    and used again after a rollback.
    """
    first = files_event(s3, cloudformation, "Create", SMALL, LARGE)
    changed = {**SMALL, "net/1/labels.txt": b"dog"}
    second = files_event(s3, cloudformation, "Update", changed, LARGE)
    assert [run(event, cloudformation) for event in (first, second)] == ["SUCCESS"] * 2
    assert placed(s3, SMALL, LARGE) == {**SMALL, **LARGE}
    assert placed(s3, changed, LARGE) == {**changed, **LARGE}
    assert list(index(s3)["retired"]) == [folder_of(SMALL, LARGE)]
    assert run({**first, "RequestType": "Update"}, cloudformation) == "SUCCESS"
    assert list(index(s3)["retired"]) == [folder_of(changed, LARGE)]


@pytest.mark.parametrize(
    ("age", "owner", "is_pruned"), [(3, "me", True), (1, "me", False), (3, "other", False)]
)
def test_old_files_are_pruned(
    s3: Any, cloudformation: CloudFormation, age: int, owner: str, is_pruned: bool
) -> None:
    """A folder is deleted when its owner deploys after ``PruneAfterSeconds``,
    and by no other stack.
    """
    first = files_event(s3, cloudformation, "Create", SMALL, LARGE)
    changed = {**SMALL, "net/1/labels.txt": b"dog"}
    second = files_event(
        s3, cloudformation, "Update", changed, LARGE, PruneAfterSeconds=str(2 * DAY)
    )
    assert [run(event, cloudformation) for event in (first, second)] == ["SUCCESS"] * 2
    aged = index(s3)
    aged["retired"] = {folder: since - age * DAY for folder, since in aged["retired"].items()}
    s3.put_object(Bucket=DESTINATION, Key=f"{PREFIX}index.json", Body=json.dumps(aged).encode())
    if owner == "other":
        second["LogicalResourceId"] = "Other"
    assert run(second, cloudformation) == "SUCCESS"
    assert (placed(s3, SMALL, LARGE) == {}) is is_pruned
    assert placed(s3, changed, LARGE) == {**changed, **LARGE}
    assert (list(index(s3)["retired"]) == []) is is_pruned


def test_content_of_the_zip_is_verified(s3: Any, cloudformation: CloudFormation) -> None:
    """A zip with another content than the list says fails the deployment before
    an object is written.
    """
    event = files_event(s3, cloudformation, "Create", {"net/config.pbtxt": b"name"}, {})
    (key,) = [
        each["Key"]
        for each in s3.list_objects_v2(Bucket=SOURCE)["Contents"]
        if each["Key"].endswith(".zip")
    ]
    s3.put_object(Bucket=SOURCE, Key=key, Body=b"PKnoneyPK")
    reason = run(event, cloudformation)
    assert "1 of 1 files were not placed" in reason
    assert "must have CRC-32" in reason
    assert placed(s3, {"net/config.pbtxt": b"name"}, {}) == {}


def test_large_file_of_another_size_is_refused(s3: Any, cloudformation: CloudFormation) -> None:
    """An asset that was uploaded in part fails the deployment."""
    event = files_event(s3, cloudformation, "Create", {}, LARGE)
    key = f"{hashlib.sha256(LARGE['net/1/model.onnx']).hexdigest()}.modelfile"
    s3.put_object(Bucket=SOURCE, Key=key, Body=b"short")
    assert "must have 5000 bytes, got 5" in run(event, cloudformation)


def test_strange_objects_below_the_prefix_are_reported(
    s3: Any, cloudformation: CloudFormation
) -> None:
    """The console's folder markers and other files would become part of the model,
    so they are refused.
    """
    event = files_event(s3, cloudformation, "Create", SMALL, LARGE)
    for name in ("net/", "notes.txt"):
        s3.put_object(Bucket=DESTINATION, Key=PREFIX + folder_of(SMALL, LARGE) + name, Body=b"")
    reason = run(event, cloudformation)
    assert (
        "has 2 objects that are not files of the model, got 'net/', 'notes.txt'; move them to "
        "another prefix" in reason
    )


def test_many_files_and_parts_are_resumed(
    s3: Any, cloudformation: CloudFormation, small_parts: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs that end early continue with what is missing, in parts above the limit of one copy."""
    monkeypatch.setattr(file_placement, "BATCH_BYTES", 50)
    small = {f"net/1/{number}.txt": b"%d" % number * 10 for number in range(30)}
    large = {"net/1/a.bin": b"a" * (11 * PART // 5), "net/1/b.bin": b"b" * 5_000}
    event = files_event(s3, cloudformation, "Create", small, large)
    runs, handed_over = 0, []
    monkeypatch.setattr(
        handler, "_continue", lambda event, _, left: handed_over.append((event, left))
    )
    monkeypatch.setattr(handler, "CONCURRENT_TASKS", 2)
    while not cloudformation.responses:
        runs += 1
        handler.handler(event, ShortRun(4 + 4 * runs))
        if handed_over:
            event = {**event, "Continuation": handed_over.pop()[1].to_event()}
        assert runs < 30
    assert cloudformation.response["Status"] == "SUCCESS", cloudformation.response
    assert runs > 2
    assert placed(s3, small, large) == {**small, **large}


def test_archives_are_removed_without_the_files(s3: Any, cloudformation: CloudFormation) -> None:
    """Removing a multi-model endpoint deletes its archives,
    and keeps files that other endpoints load.
    """
    assert run(files_event(s3, cloudformation, "Create", SMALL, LARGE), cloudformation) == "SUCCESS"
    s3.put_object(Bucket=DESTINATION, Key="models/net-0.tar.gz", Body=b"archive")
    archives = make_event(s3, cloudformation, "Delete", RemoveOnDelete="true")
    archives["PhysicalResourceId"] = f"s3://{DESTINATION}/models/"
    assert run(archives, cloudformation) == "SUCCESS"
    keys = [each["Key"] for each in s3.list_objects_v2(Bucket=DESTINATION)["Contents"]]
    assert "models/net-0.tar.gz" not in keys
    assert placed(s3, SMALL, LARGE) == {**SMALL, **LARGE}
    files = files_event(s3, cloudformation, "Delete", SMALL, LARGE, RemoveOnDelete="true")
    files["PhysicalResourceId"] = f"s3://{DESTINATION}/{PREFIX}"
    assert run(files, cloudformation) == "SUCCESS"
    assert s3.list_objects_v2(Bucket=DESTINATION).get("Contents", []) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        '{"version": 2, "files": []}',
        '{"version": 1}',
        '{"version": 1, "files": [{"Path": "a", "SizeBytes": 1}], "zip": "z"}',
        '{"version": 1, "files": [{"Path": "a", "SizeBytes": 1, "Offset": 1, "Crc32": 1}]}',
        '{"version": 1, "files": [{"Path": "a", "SizeBytes": -1, "SourceKey": "k"}]}',
        pytest.param("[" * 100_000, id="nested deeply"),
    ],
)
def test_manifest_of_another_form_is_refused(text: str) -> None:
    """A list that is damaged or of another version is an error."""
    with pytest.raises(ValueError, match=r"manifest|Expecting"):
        FileManifest.from_json(text)
