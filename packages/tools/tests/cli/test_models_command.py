"""``constructs-triton models`` against a real S3 API on loopback."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.stub import Stubber
from sample_repositories import MODEL_CODE, MODEL_CONFIG, write_models

from constructs_triton_core.errors import ArchiveError, InvalidValueError, RepositoryError
from constructs_triton_functions.model_sync.index import update_index
from constructs_triton_tools.cli import models
from constructs_triton_tools.operations import model_prefix
from constructs_triton_tools.operations.model_prefix import find_prefix
from triton_model_check.model_repository import ModelRepository, pack
from triton_model_check.model_repository.packing import fingerprint

Command = Callable[..., Any]


def run(*words: str) -> int:
    parser = argparse.ArgumentParser()
    models.add_arguments(parser)
    return models.run(parser.parse_args(words))


@pytest.fixture
def command(s3: Any, capsys: pytest.CaptureFixture[str]) -> Command:
    """Runs an action on the bucket and returns the JSON that it prints."""

    def call(action: str, *words: str) -> Any:
        assert run(action, "--bucket", "models", "--json", *words) == 0
        return json.loads(capsys.readouterr().out)

    return call


def archives(s3: Any) -> list[str]:
    found = [item["Key"] for item in s3.list_objects_v2(Bucket="models").get("Contents", ())]
    return [key for key in found if key != "models/index.json"]


def test_added_model_has_a_name(tmp_path: Path, s3: Any, command: Command) -> None:
    """A folder becomes an archive named after its content, and the list shows the model's name."""
    path = write_models(tmp_path / "r", "net")
    digest = fingerprint(ModelRepository.from_directory(path), ["net"])
    target_model = f"resnet-{digest[:8]}.tar.gz"
    assert command("add", "resnet", str(path)) == {"target_models": {"resnet": target_model}}
    assert archives(s3) == [f"models/{target_model}"]
    (row,) = command("list")["models"]
    assert (row["name"], row["target_model"], row["is_deployed"]) == ("resnet", target_model, False)
    assert row["size_bytes"] > 0


def test_new_content_takes_over_the_name(tmp_path: Path, s3: Any, command: Command) -> None:
    """The old archive is kept without a name, because requests may still use it."""
    path = write_models(tmp_path / "r", "net")
    (old,) = command("add", "resnet", str(path))["target_models"].values()
    (path / "net" / "1" / "model.py").write_text(MODEL_CODE + "# new\n")
    (new,) = command("add", "resnet", str(path))["target_models"].values()
    listed = command("list")
    assert [row["target_model"] for row in listed["models"]] == [new]
    assert listed["nameless_archives"] == [old]


def test_archive_of_another_tool_is_inspected(tmp_path: Path, s3: Any, command: Command) -> None:
    """A ``.tar.gz`` is added unchanged, under the digest of its content;
    other files are rejected.
    """
    repository = ModelRepository.from_directory(write_models(tmp_path / "r", "net"))
    archive = pack(repository, ["net"], tmp_path / "out")
    (target_model,) = command("add", "net", str(archive.path))["target_models"].values()
    assert target_model == f"net-{archive.digest[:8]}.tar.gz"
    body = s3.get_object(Bucket="models", Key=f"models/{target_model}")["Body"].read()
    assert body == archive.path.read_bytes()
    (tmp_path / "no.tar.gz").write_bytes(b"no archive")
    with pytest.raises(ArchiveError, match=r"no.tar.gz: cannot be read as .tar.gz"):
        command("add", "net", str(tmp_path / "no.tar.gz"))


def test_sync_uploads_only_new_archives(
    tmp_path: Path, s3: Any, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first run uploads all models, a second none, and one after a change only one."""
    path = write_models(tmp_path / "r", "one", "two", "three")
    sent: list[str] = []
    upload = model_prefix.ModelPrefix.upload

    def watched(prefix: Any, name: str, archive: Any) -> tuple[str, bool]:
        target_model, is_sent = upload(prefix, name, archive)
        sent.extend([name] if is_sent else [])
        return target_model, is_sent

    monkeypatch.setattr(model_prefix.ModelPrefix, "upload", watched)
    first = command("sync", str(path))
    assert sorted(sent) == ["one", "three", "two"]
    assert command("sync", str(path)) == first
    (path / "two" / "1" / "model.py").write_text(MODEL_CODE + "# new\n")
    assert command("sync", str(path)) != first
    assert sorted(sent) == ["one", "three", "two", "two"]


def test_a_removed_model_keeps_its_archive_by_default(
    tmp_path: Path, s3: Any, command: Command
) -> None:
    """The name is removed at once, the archive only with ``--delete-archive``
    and a confirmation.
    """
    path = write_models(tmp_path / "r", "one", "two")
    command("sync", str(path))
    command("remove", "one")
    assert len(archives(s3)) == 2
    with pytest.raises(InvalidValueError, match="no terminal can answer; add --yes"):
        command("remove", "two", "--delete-archive")
    command("remove", "two", "--delete-archive", "--yes")
    assert [key.split("-")[0] for key in archives(s3)] == ["models/one"]
    assert command("list")["models"] == []
    with pytest.raises(
        InvalidValueError, match='has 0 models, and none is named "one"; add models'
    ):
        command("remove", "one")


def test_model_of_a_stack_is_removed_after_a_question(
    tmp_path: Path, s3: Any, command: Command
) -> None:
    """Its callers get errors, so the removal needs an answer; the list shows what is missing."""
    path = write_models(tmp_path / "r", "one", "two")
    targets = command("sync", str(path))["target_models"]
    update_index(s3, "models", "models/", lambda index: index.with_deployment("S", targets, 1.0))
    with pytest.raises(InvalidValueError, match="no terminal can answer; add --yes"):
        command("remove", "one")
    assert [row["name"] for row in command("list")["models"]] == ["one", "two"]
    command("remove", "one", "--yes")
    listed = command("list")
    assert [row["name"] for row in listed["models"]] == ["two"]
    assert listed["removed_models"] == ["one"]
    command("add", "one", str(path), "--model", "one")
    restored = command("list")
    assert [(row["name"], row["is_deployed"]) for row in restored["models"]] == [
        ("one", True),
        ("two", True),
    ]
    command("remove", "one", "--yes")
    update_index(s3, "models", "models/", lambda index: index.with_deployment("S", targets, 2.0))
    assert command("list")["removed_models"] == []


@pytest.mark.parametrize("name", ["", "../../x", "/abs", "a\nb", "?a=b", "a//b", ".a", "a" * 600])
def test_name_that_is_no_key_is_an_error(
    tmp_path: Path, s3: Any, command: Command, name: str
) -> None:
    """A name becomes part of a key, so the command line accepts the same
    names as the constructs.
    """
    model = write_models(tmp_path / "r", "net")
    with pytest.raises(InvalidValueError, match="name: must be letters"):
        command("add", name, str(model))
    assert s3.list_objects_v2(Bucket="models")["KeyCount"] == 0


def test_rejected_models_are_not_uploaded(tmp_path: Path, s3: Any, command: Command) -> None:
    """A model that Triton rejects is not uploaded, unless the check is turned off."""
    path = write_models(tmp_path / "r", "net")
    (path / "net" / "config.pbtxt").write_text(MODEL_CONFIG + 'name: "other"\n')
    (path / "net" / "1" / "model.py").unlink()
    with pytest.raises(RepositoryError):
        command("add", "net", str(path))
    assert archives(s3) == []
    command("add", "net", str(path), "--no-check")
    assert len(archives(s3)) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["list", "--prefix", "models"],
            r'prefix: must end with "/".*got "models"; write "models/"',
        ),
        (["sync", "r", "--prune-after-days", "0"], "--prune-after-days: must be at least 1, got 0"),
        (
            ["add", "net", "r"],
            "must contain one top-level model.*got one, two; choose one with model",
        ),
    ],
)
def test_wrong_use_is_reported(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: Command,
    words: list[str],
    message: str,
) -> None:
    """A wrong prefix, retention or source is reported with its fix."""
    write_models(tmp_path / "r", "one", "two")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidValueError, match=message):
        command(*words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--bucket", "nowhere"],
            r"s3://nowhere/models/: s3:ListObjectsV2: NoSuchBucket: .*check the name and --region",
        ),
        (
            ["--bucket", "models", "--profile", "absent"],
            r"AWS: cannot be reached \(.*absent.*\); set --region or --prof",
        ),
    ],
)
def test_an_error_of_aws_is_reported(s3: Any, words: list[str], message: str) -> None:
    """A bucket or a profile that does not exist is one line with its fix,
    in place of boto3's traceback.
    """
    with pytest.raises((ArchiveError, InvalidValueError), match=message):
        run("list", *words)


@pytest.mark.parametrize(
    ("found", "resource", "url"),
    [
        ({"A": "s3://one/models/"}, None, "s3://one/models/"),
        ({"A": "s3://one/models/", "B": "s3://two/x/"}, "B", "s3://two/x/"),
        ({"A": "s3://one/models/", "B": "s3://two/x/"}, None, None),
        ({}, None, None),
    ],
    ids=["one", "chosen", "several", "none"],
)
def test_prefix_is_read_from_the_stack(
    monkeypatch: pytest.MonkeyPatch,
    s3: Any,
    found: dict[str, str],
    resource: str | None,
    url: str | None,
) -> None:
    """A stack's custom resource contains the prefix; with several, one has to be chosen."""
    session = boto3.Session()
    cloudformation = session.client("cloudformation")
    created = {"ResourceStatus": "CREATE_COMPLETE", "LastUpdatedTimestamp": "2026-01-01T00:00:00Z"}
    rows = [
        {
            "ResourceType": "Custom::TritonModelSync",
            "LogicalResourceId": name,
            "PhysicalResourceId": place,
        }
        for name, place in found.items()
    ]
    make = session.client
    stubbed = {"cloudformation": cloudformation}
    monkeypatch.setattr(
        session, "client", lambda name, **_settings: stubbed.get(name) or make(name)
    )
    with Stubber(cloudformation) as stub:
        # A stack of more than a hundred resources is returned in pages.
        first = {"StackResourceSummaries": [], "NextToken": "more"}
        stub.add_response("list_stack_resources", first, {"StackName": "Demo"})
        rest = {"StackName": "Demo", "NextToken": "more"}
        stub.add_response(
            "list_stack_resources",
            {"StackResourceSummaries": [row | created for row in rows]},
            rest,
        )
        if url is None:
            with pytest.raises(
                InvalidValueError, match=r"must have one Custom::TritonModelSync, got .*--resource"
            ):
                find_prefix(session, "Demo", resource)
        else:
            assert find_prefix(session, "Demo", resource).url == url


def test_region_and_profile_reach_the_session(monkeypatch: pytest.MonkeyPatch, s3: Any) -> None:
    """An option that is not given is None, so that boto3 decides."""
    made: list[dict[str, Any]] = []

    def session(**keywords: Any) -> Any:
        made.append(keywords)
        return real()

    real = boto3.Session
    monkeypatch.setattr(boto3, "Session", session)
    for options in ([], ["--region", "eu-west-1"], ["--profile", "p"]):
        run("list", "--bucket", "models", *options)
    found = [(each["region_name"], each["profile_name"]) for each in made]
    assert found == [(None, None), ("eu-west-1", None), (None, "p")]


def test_removed_model_is_restored_with_its_last_archive(
    tmp_path: Path, s3: Any, command: Command
) -> None:
    """Of the archives that a name has had, the one that it had when it was removed serves again;
    a model of a stack belongs to the stack as before.
    """
    path = write_models(tmp_path / "r", "net")
    command("add", "net", str(path))
    (path / "net" / "1" / "model.py").write_text(MODEL_CODE + "# new\n")
    newer = command("add", "net", str(path))["target_models"]
    command("add", "nest", str(path), "--model", "net")
    update_index(s3, "models", "models/", lambda index: index.with_deployment("S", newer, 1.0))
    command("remove", "net", "--yes")
    command("remove", "nest")
    assert command("restore", "net")["target_models"] == newer
    assert command("restore", "net")["target_models"] == newer
    listed = command("list")
    assert [(row["name"], row["is_deployed"]) for row in listed["models"]] == [("net", True)]
    assert listed["removed_models"] == []


def test_model_without_an_archive_is_not_restored(
    tmp_path: Path, s3: Any, command: Command
) -> None:
    """After ``--delete-archive``, and for a name that never existed, the error says what to do."""
    command("add", "net", str(write_models(tmp_path / "r", "net")))
    command("remove", "net", "--delete-archive", "--yes")
    for name in ("net", "never"):
        with pytest.raises(
            InvalidValueError, match=f"add the model with `models add {name} SOURCE"
        ):
            command("restore", name)
