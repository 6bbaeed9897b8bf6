"""Names and what loses them: the index that deployments and the command line share, and pruning."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import boto3
import pytest
from sync_requests import (
    DESTINATION,
    CloudFormation,
    Context,
    cloudformation,
    index,
    keys,
    make_event,
    put_archive,
    s3,
    s3_url,
)

from constructs_triton.client.model_index import ModelIndex
from constructs_triton.model_sync import handler
from constructs_triton.model_sync.index import Index, read_index, update_index
from constructs_triton.model_sync.placement import SyncError

__all__ = ["cloudformation", "s3", "s3_url"]


def deploy(s3: Any, cloudformation: CloudFormation, *archives: dict[str, Any], **properties: Any) -> None:
    handler.handler(make_event(s3, cloudformation, "Update", archives, **properties), Context())
    assert cloudformation.answers[-1]["Status"] == "SUCCESS", cloudformation.answers[-1]["Reason"]


def named(archive: dict[str, Any], name: str) -> dict[str, Any]:
    return {**archive, "Name": name}


def test_client_reads_the_index(s3: Any, cloudformation: CloudFormation) -> None:
    """What a deployment writes is what the client looks names up in."""
    deploy(s3, cloudformation, named(put_archive(s3, "aaaa1", b"first"), "resnet"))
    found = ModelIndex.from_s3(f"s3://{DESTINATION}/models/index.json", s3)
    assert found.target_model("resnet") == "aaaa.tar.gz"


def test_deployment_leaves_names_of_others_alone(s3: Any, cloudformation: CloudFormation) -> None:
    """A name added by hand survives deployments; a name that the deployment has dropped does not."""
    first, second = put_archive(s3, "aaaa1", b"first"), put_archive(s3, "bbbb1", b"second")
    deploy(s3, cloudformation, named(first, "a"), named(second, "b"))
    update_index(s3, DESTINATION, "models/", lambda found: found.with_models({"mine": "m.tar.gz"}, 1.0))
    deploy(s3, cloudformation, named(second, "b"))
    assert index(s3)["target_models"] == {"b": "bbbb.tar.gz", "mine": "m.tar.gz"}
    assert list(index(s3)["retired"]) == ["aaaa.tar.gz"]


def test_rolled_back_deployment_gives_the_old_names_back(s3: Any, cloudformation: CloudFormation) -> None:
    """The old list restores the old names, and what they stand for is retired no more."""
    old, new = put_archive(s3, "aaaa1", b"old"), put_archive(s3, "bbbb1", b"new")
    for archive in (old, new, old):
        deploy(s3, cloudformation, named(archive, "resnet"))
    assert index(s3)["target_models"] == {"resnet": "aaaa.tar.gz"}
    assert list(index(s3)["retired"]) == ["bbbb.tar.gz"]


def test_pruning_spares_what_may_be_in_use(
    s3: Any, cloudformation: CloudFormation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only an archive that was placed by the deployment and has had no name for long enough goes."""
    old, new = put_archive(s3, "aaaa1", b"old"), put_archive(s3, "bbbb1", b"new")
    deploy(s3, cloudformation, named(old, "resnet"))
    s3.put_object(Bucket=DESTINATION, Key="models/mine.tar.gz", Body=b"by hand")
    update_index(s3, DESTINATION, "models/", lambda found: found.with_models({"mine": "mine.tar.gz"}, 0.0))
    update_index(s3, DESTINATION, "models/", lambda found: found.without_model("mine", 0.0))
    deploy(s3, cloudformation, named(new, "resnet"), PruneAfterSeconds="86400")
    assert keys(s3) == ["models/aaaa.tar.gz", "models/bbbb.tar.gz", "models/mine.tar.gz"]
    later = time.time() + 86_401
    monkeypatch.setattr(time, "time", lambda: later)
    deploy(s3, cloudformation, named(new, "resnet"))
    assert "models/aaaa.tar.gz" in keys(s3)  # not asked for
    deploy(s3, cloudformation, named(new, "resnet"), PruneAfterSeconds="86400")
    assert keys(s3) == ["models/bbbb.tar.gz", "models/mine.tar.gz"]
    assert "aaaa.tar.gz" not in index(s3)["retired"]


def test_writers_at_the_same_time_lose_nothing(s3: Any, s3_url: str) -> None:
    """Eight writers that each add a name leave all eight."""

    def add(number: int) -> None:
        client = boto3.client("s3", endpoint_url=s3_url)
        update_index(client, DESTINATION, "", lambda found: found.with_models({str(number): "x.tar.gz"}, 0.0))
        client.close()

    threads = [threading.Thread(target=add, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(read_index(s3, DESTINATION, "").target_models) == [str(number) for number in range(8)]


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"version": 2, "target_models": {}}', b'{"version": 1}'])
def test_what_is_no_index_is_not_overwritten(s3: Any, body: bytes) -> None:
    """An object that is no index is named, and stays."""
    s3.put_object(Bucket=DESTINATION, Key="index.json", Body=body)
    with pytest.raises(SyncError, match=r"index.json: is no index of models"):
        update_index(s3, DESTINATION, "", lambda found: found.with_models({"a": "a.tar.gz"}, 0.0))
    assert s3.get_object(Bucket=DESTINATION, Key="index.json")["Body"].read() == body


def test_index_text_is_read_back() -> None:
    """Every field survives its text."""
    given = Index({"a": "a-1.tar.gz"}, {"a": "stack"}, {"a-0.tar.gz": 12.5})
    assert Index.from_json(given.to_json()) == given
    assert json.loads(given.to_json())["version"] == 1


def test_bucket_that_goes_is_emptied_of_all_versions(s3: Any, cloudformation: CloudFormation) -> None:
    """A resource that takes its archives along removes every version below the prefix and nothing else."""
    s3.put_bucket_versioning(Bucket=DESTINATION, VersioningConfiguration={"Status": "Enabled"})
    s3.put_object(Bucket=DESTINATION, Key="models/by-hand.tar.gz", Body=b"1")
    s3.put_object(Bucket=DESTINATION, Key="models/by-hand.tar.gz", Body=b"2")
    s3.delete_object(Bucket=DESTINATION, Key="models/by-hand.tar.gz")
    elsewhere = s3.put_object(Bucket=DESTINATION, Key="elsewhere", Body=b"3")["VersionId"]
    archive = put_archive(s3, "aaaa1", b"first")
    event = make_event(s3, cloudformation, "Delete", [archive], RemoveOnDelete="true")
    handler.handler(event | {"PhysicalResourceId": f"s3://{DESTINATION}/models/"}, Context())
    assert cloudformation.answer["Status"] == "SUCCESS"
    found = s3.list_object_versions(Bucket=DESTINATION)
    assert [row["Key"] for row in found.get("Versions", ())] == ["elsewhere"]
    assert "DeleteMarkers" not in found
    s3.delete_object(Bucket=DESTINATION, Key="elsewhere", VersionId=elsewhere)
