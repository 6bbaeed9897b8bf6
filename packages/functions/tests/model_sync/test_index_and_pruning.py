"""The index that deployments and the command line share, the list of archives, and pruning."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from dataclasses import replace
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber
from sync_requests import DESTINATION, CloudFormation, Context, index, keys, make_event, put_archive

from constructs_triton_core.model_index import ModelIndex
from constructs_triton_functions.model_sync import handler
from constructs_triton_functions.model_sync.index import Index, read_index, update_index
from constructs_triton_functions.model_sync.manifest import ListedArchive, Manifest
from constructs_triton_functions.model_sync.placement import OWNER_METADATA, Placement, SyncError
from constructs_triton_functions.model_sync.pruning import empty_prefix, prune


def deploy(
    s3: Any, cloudformation: CloudFormation, *archives: dict[str, Any], **properties: Any
) -> None:
    handler.handler(make_event(s3, cloudformation, "Update", archives, **properties), Context())
    assert cloudformation.responses[-1]["Status"] == "SUCCESS", cloudformation.responses[-1][
        "Reason"
    ]


def named(archive: dict[str, Any], name: str) -> dict[str, Any]:
    return {**archive, "Name": name}


DEEP = "[" * 100_000


@pytest.mark.parametrize(
    "text",
    [
        DEEP,
        '{"version": 1, "target_models": ' + DEEP,
        '{"version": 1}',
        '{"version": 1, "target_models": "x"}',
        '{"version": 1, "target_models": {"a": 1}}',
        '{"version": 1, "archives": 1}',
        '{"version": 1, "archives": [1]}',
        '{"version": 1, "archives": [{"Name": "a", "SourceKey": "b"}]}',
        '{"version": 1, "archives": [{"Name": "a", "SourceKey": "b", "TargetModel": 1}]}',
        (
            '{"version": 1, "archives": [{"Name": "a", "SourceKey": '
            '"b", "TargetModel": "c", "SizeBytes": []}]}'
        ),
    ],
)
def test_damaged_index_or_manifest_is_an_error(text: str) -> None:
    """Each reader raises its documented error, whatever an object in S3 contains."""
    for read in (Index.from_json, Manifest.from_json, ModelIndex.from_json):
        with pytest.raises(ValueError, match=r"must|is not JSON|Expecting"):
            read(text)


@pytest.mark.parametrize(
    ("field", "value"), [("deployed", 1), ("deployed", []), ("retired", 1), ("retired", {"a": "b"})]
)
def test_error_of_a_damaged_index_names_the_field(field: str, value: Any) -> None:
    """The error says which field of the index must change."""
    with pytest.raises(ValueError, match=f"^{field}: must"):
        Index.from_json(json.dumps({"version": 1, "target_models": {}, field: value}))


def test_client_reads_the_index(s3: Any, cloudformation: CloudFormation) -> None:
    """The client reads the index that a deployment writes."""
    deploy(s3, cloudformation, named(put_archive(s3, "aaaa1", b"first"), "resnet"))
    found = ModelIndex.from_s3(f"s3://{DESTINATION}/models/index.json", s3)
    assert found.target_model("resnet") == "aaaa.tar.gz"


def test_deployment_keeps_names_of_others(s3: Any, cloudformation: CloudFormation) -> None:
    """A name added by hand is kept; a name that the deployment no longer has is removed."""
    first, second = put_archive(s3, "aaaa1", b"first"), put_archive(s3, "bbbb1", b"second")
    deploy(s3, cloudformation, named(first, "a"), named(second, "b"))
    update_index(
        s3, DESTINATION, "models/", lambda found: found.with_models({"mine": "m.tar.gz"}, 1.0)
    )
    deploy(s3, cloudformation, named(second, "b"))
    assert index(s3)["target_models"] == {"b": "bbbb.tar.gz", "mine": "m.tar.gz"}
    assert list(index(s3)["retired"]) == ["aaaa.tar.gz"]


def test_rollback_restores_the_old_names(s3: Any, cloudformation: CloudFormation) -> None:
    """The old list restores the old names, and their archives are no longer retired."""
    old, new = put_archive(s3, "aaaa1", b"old"), put_archive(s3, "bbbb1", b"new")
    for archive in (old, new, old):
        deploy(s3, cloudformation, named(archive, "resnet"))
    assert index(s3)["target_models"] == {"resnet": "aaaa.tar.gz"}
    assert list(index(s3)["retired"]) == ["bbbb.tar.gz"]


def test_pruning_keeps_archives_that_may_be_in_use(
    s3: Any, cloudformation: CloudFormation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only an archive of this deployment is deleted,
    and only after the retention without a name.
    """
    old, new = put_archive(s3, "aaaa1", b"old"), put_archive(s3, "bbbb1", b"new")
    deploy(s3, cloudformation, named(old, "resnet"))
    s3.put_object(Bucket=DESTINATION, Key="models/mine.tar.gz", Body=b"by hand")
    update_index(
        s3, DESTINATION, "models/", lambda found: found.with_models({"mine": "mine.tar.gz"}, 0.0)
    )
    update_index(s3, DESTINATION, "models/", lambda found: found.without_model("mine", 0.0))
    deploy(s3, cloudformation, named(new, "resnet"), PruneAfterSeconds="86400")
    assert keys(s3) == ["models/aaaa.tar.gz", "models/bbbb.tar.gz", "models/mine.tar.gz"]
    later = time.time() + 86_401
    monkeypatch.setattr(time, "time", lambda: later)
    deploy(s3, cloudformation, named(new, "resnet"))
    assert "models/aaaa.tar.gz" in keys(s3)  # without PruneAfterSeconds
    deploy(s3, cloudformation, named(new, "resnet"), PruneAfterSeconds="86400")
    assert keys(s3) == ["models/bbbb.tar.gz", "models/mine.tar.gz"]
    assert "aaaa.tar.gz" not in index(s3)["retired"]


OTHER_STACK = "arn:aws:cloudformation:us-east-1:123456789012:stack/other/1"


def two_stacks(
    s3: Any, cloudformation: CloudFormation, monkeypatch: pytest.MonkeyPatch
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The events of a stack that prunes an archive, and of another one that deploys it again."""
    old, new = put_archive(s3, "aaaa1", b"old"), put_archive(s3, "bbbb1", b"new")
    deploy(s3, cloudformation, named(old, "resnet"))
    deploy(s3, cloudformation, named(new, "resnet"))
    later = time.time() + 86_401
    monkeypatch.setattr(time, "time", lambda: later)
    pruning = make_event(
        s3, cloudformation, "Update", [named(new, "resnet")], PruneAfterSeconds="86400"
    )
    naming = make_event(s3, cloudformation, "Create", [named(old, "mine")])
    return pruning, {**naming, "StackId": OTHER_STACK}


def run_before_first_call(
    monkeypatch: pytest.MonkeyPatch, operation: str, key: str, event: dict[str, Any]
) -> None:
    """Run the function for another event before the next call of this operation for a key."""
    make_client = handler._client
    waiting = [event]

    def run(request: Any, event_name: str, **_: object) -> None:
        is_meant = event_name.endswith(f".{operation}") and key in request.url
        if is_meant and waiting:
            handler.handler(waiting.pop(), Context())

    def make() -> Any:
        client = make_client()
        client.meta.events.register("before-send.s3", run)
        return client

    monkeypatch.setattr(handler, "_client", make)


def test_archive_that_another_stack_prunes_meanwhile_is_placed_again(
    s3: Any, cloudformation: CloudFormation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was found in place, and is deleted before the index names it."""
    pruning, naming = two_stacks(s3, cloudformation, monkeypatch)
    run_before_first_call(monkeypatch, "PutObject", "index.json", pruning)
    handler.handler(naming, Context())
    assert {each["Status"] for each in cloudformation.responses} == {"SUCCESS"}
    assert "models/aaaa.tar.gz" in keys(s3)
    assert index(s3)["target_models"]["mine"] == "aaaa.tar.gz"


def test_archive_that_another_stack_names_meanwhile_is_not_pruned(
    s3: Any, cloudformation: CloudFormation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index is looked at before each deletion, not once for all."""
    pruning, naming = two_stacks(s3, cloudformation, monkeypatch)
    s3.put_object(
        Bucket=DESTINATION,
        Key="models/a.tar.gz",
        Body=b"older",
        Metadata={OWNER_METADATA: f"{pruning['StackId']}/{pruning['LogicalResourceId']}"},
    )
    update_index(
        s3,
        DESTINATION,
        "models/",
        lambda found: replace(found, retired={**found.retired, "a.tar.gz": 0.0}),
    )
    run_before_first_call(monkeypatch, "DeleteObject", "models/a.tar.gz", naming)
    handler.handler(pruning, Context())
    assert {each["Status"] for each in cloudformation.responses} == {"SUCCESS"}
    assert keys(s3) == ["models/aaaa.tar.gz", "models/bbbb.tar.gz"]
    assert index(s3)["target_models"]["mine"] == "aaaa.tar.gz"


def test_pruning_ends_before_the_function_does(s3: Any) -> None:
    """Archives for which there is no time stay retired, so the next deployment deletes them."""
    metadata = {OWNER_METADATA: "owner"}
    retired = {f"{number}.tar.gz": 0.0 for number in range(5)}
    for target_model in retired:
        s3.put_object(Bucket=DESTINATION, Key=target_model, Body=b"old", Metadata=metadata)
    update_index(s3, DESTINATION, "", lambda index: replace(index, retired=retired))
    times = iter([False, False, True])
    placement = Placement(s3, DESTINATION, "", "owner", is_time_up=lambda: next(times))
    assert prune(placement, retired) == ["0.tar.gz", "1.tar.gz"]
    left = ["2.tar.gz", "3.tar.gz", "4.tar.gz"]
    assert sorted(read_index(s3, DESTINATION, "").retired) == left
    assert [key for key in keys(s3) if key != "index.json"] == left


def test_archive_that_is_deleted_already_is_forgotten(
    s3: Any, cloudformation: CloudFormation, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that ends after it has deleted an archive leaves it in the index until the next one."""
    old, new = put_archive(s3, "aaaa1", b"first"), put_archive(s3, "bbbb1", b"second")
    deploy(s3, cloudformation, named(old, "resnet"))
    deploy(s3, cloudformation, named(new, "resnet"))
    s3.delete_object(Bucket=DESTINATION, Key="models/aaaa.tar.gz")
    later = time.time() + 86_401
    monkeypatch.setattr(time, "time", lambda: later)
    deploy(s3, cloudformation, named(new, "resnet"), PruneAfterSeconds="86400")
    assert index(s3)["retired"] == {}


def test_parallel_writers_lose_nothing(s3: Any, aws_url: str) -> None:
    """Eight writers that each add a name leave all eight names."""

    def add(number: int) -> None:
        client = boto3.client("s3", endpoint_url=aws_url)
        update_index(
            client, DESTINATION, "", lambda found: found.with_models({str(number): "x.tar.gz"}, 0.0)
        )
        client.close()

    threads = [threading.Thread(target=add, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(read_index(s3, DESTINATION, "").target_models) == [
        str(number) for number in range(8)
    ]


@pytest.mark.parametrize(
    "body", [b"{", b"[]", b'{"version": 2, "target_models": {}}', b'{"version": 1}']
)
def test_other_object_is_not_overwritten(s3: Any, body: bytes) -> None:
    """The error names an object that is not an index, and the object is not changed."""
    s3.put_object(Bucket=DESTINATION, Key="index.json", Body=body)
    with pytest.raises(SyncError, match=r"index.json: is not an index of models"):
        update_index(s3, DESTINATION, "", lambda found: found.with_models({"a": "a.tar.gz"}, 0.0))
    assert s3.get_object(Bucket=DESTINATION, Key="index.json")["Body"].read() == body


def test_index_can_be_read_back() -> None:
    """Every field is the same after writing and reading."""
    given = Index({"a": "a-1.tar.gz"}, {"a": "stack"}, {"a-0.tar.gz": 12.5})
    assert Index.from_json(given.to_json()) == given
    assert json.loads(given.to_json())["version"] == 1


def test_all_versions_are_removed_from_a_deleted_prefix(
    s3: Any, cloudformation: CloudFormation
) -> None:
    """With ``RemoveOnDelete`` every version below the prefix is deleted, and nothing else."""
    s3.put_bucket_versioning(Bucket=DESTINATION, VersioningConfiguration={"Status": "Enabled"})
    s3.put_object(Bucket=DESTINATION, Key="models/by-hand.tar.gz", Body=b"1")
    s3.put_object(Bucket=DESTINATION, Key="models/by-hand.tar.gz", Body=b"2")
    s3.delete_object(Bucket=DESTINATION, Key="models/by-hand.tar.gz")
    elsewhere = s3.put_object(Bucket=DESTINATION, Key="elsewhere", Body=b"3")["VersionId"]
    archive = put_archive(s3, "aaaa1", b"first")
    event = make_event(s3, cloudformation, "Delete", [archive], RemoveOnDelete="true")
    handler.handler(event | {"PhysicalResourceId": f"s3://{DESTINATION}/models/"}, Context())
    assert cloudformation.response["Status"] == "SUCCESS"
    found = s3.list_object_versions(Bucket=DESTINATION)
    assert [row["Key"] for row in found.get("Versions", ())] == ["elsewhere"]
    assert "DeleteMarkers" not in found
    s3.delete_object(Bucket=DESTINATION, Key="elsewhere", VersionId=elsewhere)


def test_names_of_another_deployment_still_belong_to_it() -> None:
    """A deployment that drops a name keeps the owners of the other names under the same prefix."""
    before = Index(
        {"a": "a-1", "b": "b-1", "c": "c-1"}, {"a": "first", "b": "first", "c": "second"}
    )
    after = before.with_deployment("first", {"b": "b-2"}, 7.0)
    assert after.target_models == {"b": "b-2", "c": "c-1"}
    assert after.deployed == {"b": "first", "c": "second"}
    assert after.retired == {"a-1": 7.0, "b-1": 7.0}


def test_name_that_was_removed_is_known_until_a_deployment_restores_it() -> None:
    """The name of a deployment keeps its owner, unless another model takes the name: it is the
    deployment's again with the archive that it had."""
    before = Index({"a": "a-1", "b": "b-1", "mine": "m-1"}, {"a": "first", "b": "first"})
    after = before.without_model("a", 7.0).without_model("mine", 7.0)
    assert (after.target_models, after.removed) == ({"b": "b-1"}, ["a"])
    restored = after.with_deployment("first", {"a": "a-1", "b": "b-1"}, 8.0)
    assert (restored.target_models, restored.removed) == ({"a": "a-1", "b": "b-1"}, [])
    taken = after.with_models({"a": "a-2"}, 8.0)
    assert (taken.deployed, taken.removed) == ({"b": "first"}, [])
    same = after.with_models({"a": "a-1"}, 8.0)
    assert (same.target_models, same.deployed) == ({"a": "a-1", "b": "b-1"}, before.deployed)


@pytest.mark.parametrize(("now", "expired"), [(100.0, []), (100.5, ["a-1"])])
def test_archive_expires_after_the_retention(now: float, expired: list[str]) -> None:
    """An archive that has had no name for exactly the retention is still kept."""
    assert Index(retired={"a-1": 10.0}).expired(90, now) == expired


class FailingClient:
    """An S3 without objects that rejects reading or writing with a status."""

    def __init__(self, *, get: int = 404, put: int = 200) -> None:
        self._statuses = {"GetObject": get, "HeadObject": 404, "PutObject": put}
        self.calls = Counter[str]()

    def get_object(self, **_: object) -> None:
        self._fail("GetObject")

    def head_object(self, **_: object) -> None:
        self._fail("HeadObject")

    def put_object(self, **_: object) -> None:
        self._fail("PutObject")

    def _fail(self, operation: str) -> None:
        self.calls[operation] += 1
        status = self._statuses[operation]
        if status != 200:
            raise ClientError({"ResponseMetadata": {"HTTPStatusCode": status}}, operation)  # type: ignore[typeddict-item]


@pytest.mark.parametrize("status", [409, 412])
def test_writing_fails_if_others_keep_writing(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """After twelve attempts the error names the index."""
    monkeypatch.setattr(time, "sleep", lambda _: None)
    client = FailingClient(put=status)
    with pytest.raises(SyncError, match=r"s3://b/p/index.json: other processes keep writing it"):
        update_index(client, "b", "p/", lambda found: found.with_models({"a": "a.tar.gz"}, 0.0))
    assert client.calls == {"GetObject": 12, "PutObject": 12}


@pytest.mark.parametrize("client", [FailingClient(get=500), FailingClient(put=403)])
def test_other_faults_of_s3_are_raised(client: FailingClient) -> None:
    """An error of the service does not count as an empty index or as another writer."""
    with pytest.raises(ClientError):
        update_index(client, "b", "", lambda found: found.with_models({"a": "a.tar.gz"}, 0.0))
    assert client.calls["GetObject"] == 1


def test_objects_that_cannot_be_deleted_are_named() -> None:
    """S3 reports success for a bulk delete even if it rejected some of the keys."""
    client = boto3.client("s3")
    version = {"Key": "models/a.tar.gz", "VersionId": "1"}
    with Stubber(client) as stub:
        stub.add_response("list_object_versions", {"Versions": [version], "IsTruncated": False})
        stub.add_response(
            "delete_objects", {"Errors": [{"Key": "models/a.tar.gz", "Code": "AccessDenied"}]}
        )
        with pytest.raises(
            SyncError, match=r"1 objects of b could not be deleted: models/a.*: AccessDenied"
        ):
            empty_prefix(client, "b", "models/", lambda: False)


def test_values_that_are_not_known_are_left_out() -> None:
    """By default an archive has no size and comes from the bucket of the CDK assets."""
    manifest = Manifest.of([ListedArchive("net", "1.tar.gz", "net-1.tar.gz")])
    rows = json.loads(manifest.to_json())["archives"]
    assert rows == [{"Name": "net", "SourceKey": "1.tar.gz", "TargetModel": "net-1.tar.gz"}]


def test_manifest_is_read_as_written() -> None:
    """Reading the JSON gives the same archives, with sizes and buckets."""
    archives = [ListedArchive("b", "2", "b-2", 7, 0), ListedArchive("a", "1", "a-1", None, 1)]
    manifest = Manifest.of(archives)
    assert [archive.name for archive in manifest.archives] == ["a", "b"]
    assert Manifest.from_json(manifest.to_json()) == manifest
