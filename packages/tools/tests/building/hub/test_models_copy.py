"""``models copy``: a repository of Hugging Face in a folder or in S3, whole and verified."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from hub_server import COMMIT, FILES, REPOSITORY, TOKEN, Hub, served_hub
from moto.server import ThreadedMotoServer

from constructs_triton_core.errors import ArchiveError
from constructs_triton_tools.building.hub.copying import copy_to_prefix
from constructs_triton_tools.building.hub.revision import HubRevision

BUCKET = "weights"


@pytest.fixture
def hub() -> Iterator[Hub]:
    with served_hub() as hub:
        yield hub


def copy(
    hub: Hub, cwd: Path, *words: str, token: str | None = TOKEN, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run the command with the hub on the loopback."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("HF_", "AWS_"))
    }
    environment = {**kept, "HF_ENDPOINT": hub.url, "HF_HOME": str(cwd / "home"), **variables}
    if token is not None:
        environment["HF_TOKEN"] = token
    command = [sys.executable, "-m", "constructs_triton.cli", "models", "copy", REPOSITORY, *words]
    done = subprocess.run(
        command, cwd=cwd, env=environment, check=False, capture_output=True, text=True
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert TOKEN not in done.stdout + done.stderr
    return done


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_gated_repository_is_copied_without_links_and_without_the_token(
    hub: Hub, tmp_path: Path
) -> None:
    """The folder has the files of the commit, and no file on this machine has the token."""
    done = copy(hub, tmp_path, "models/llama/1/weights", "--revision", COMMIT, "--json")
    assert done.returncode == 0, done.stderr
    folder = tmp_path / "models" / "llama" / "1" / "weights"
    expected = {name: content for name, (content, _) in FILES.items() if name != ".gitattributes"}
    assert contents(folder) == expected
    assert not any(path.is_symlink() for path in folder.rglob("*"))
    assert [path.name for path in folder.parent.iterdir()] == ["weights"]
    assert json.loads(done.stdout)["revision"] == COMMIT
    assert not any(TOKEN.encode() in content for content in contents(tmp_path).values())


def test_patterns_choose_files(hub: Hub, tmp_path: Path) -> None:
    """``--include`` and ``--exclude`` choose files; a pattern without a file is an error."""
    words = ("--revision", COMMIT, "--include", "*.json", "--include", "*.txt")
    assert copy(hub, tmp_path, "a", *words, "--exclude", "tokenizer/*").returncode == 0
    assert contents(tmp_path / "a").keys() == {"config.json"}
    done = copy(hub, tmp_path, "b", "--revision", COMMIT, "--include", "*.bin")
    assert done.returncode == 2
    assert '"config.json"' in done.stderr


@pytest.mark.parametrize(
    ("name", "is_shorter"),
    [("config.json", False), ("model.safetensors", False), ("config.json", True)],
)
def test_a_damaged_file_leaves_nothing(
    name: str, is_shorter: bool, hub: Hub, tmp_path: Path
) -> None:
    """A file of another size or content is an error, and the folder does not exist afterwards."""
    content, _ = FILES[name]
    hub.replaced[name] = content[:-1] if is_shorter else b"X" + content[1:]
    done = copy(hub, tmp_path, "weights", "--revision", COMMIT)
    assert done.returncode in (1, 2)
    assert "error:" in done.stderr
    assert [each.name for each in tmp_path.iterdir() if each.name != "home"] == []


def test_a_branch_is_refused_with_its_commit(hub: Hub, tmp_path: Path) -> None:
    """A branch changes, so the message has the commit that it is now."""
    done = copy(hub, tmp_path, "weights", "--revision", "main")
    assert done.returncode == 2
    assert f"write --revision {COMMIT}" in done.stderr


@pytest.mark.parametrize(
    "token", [None, "hf_" + "other" * 6], ids=["no token", "token of another account"]
)
def test_no_access_says_what_to_do(token: str | None, hub: Hub, tmp_path: Path) -> None:
    """Without access, the message names the terms and the variable; a stored login is not used."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "token").write_text(TOKEN)
    done = copy(hub, tmp_path, "weights", "--revision", COMMIT, token=token)
    assert done.returncode == 2
    assert "accept its terms" in done.stderr
    assert "HF_TOKEN" in done.stderr
    assert f"Bearer {TOKEN}" not in hub.authorizations


@pytest.mark.parametrize("kind", ["files", "links", "is a link", "is a file"])
def test_a_folder_with_other_files_is_kept(kind: str, hub: Hub, tmp_path: Path) -> None:
    """A folder that has files or links, or is a link, is refused as it is."""
    folder = tmp_path / "weights"
    if kind == "is a file":
        folder.write_text("a")
    elif kind == "is a link":
        folder.symlink_to(tmp_path)
    else:
        folder.mkdir()
        (folder / "a.bin").symlink_to("/etc/hosts") if kind == "links" else (
            folder / "a.bin"
        ).write_text("a")
    done = copy(hub, tmp_path, "weights", "--revision", COMMIT)
    assert done.returncode == 2
    assert ("link" in done.stderr) == ("link" in kind)
    assert os.path.lexists(folder if kind.startswith("is") else folder / "a.bin")


@pytest.mark.parametrize("path", ["../outside.txt", "/etc/outside.txt"])
def test_a_file_outside_the_folder_is_refused(path: str, hub: Hub, tmp_path: Path) -> None:
    """A repository cannot write outside its folder."""
    hub.listed.append({"type": "file", "path": path, "size": 1, "oid": "0" * 40})
    done = copy(hub, tmp_path, "weights", "--revision", COMMIT)
    assert done.returncode == 2
    assert "outside its folder" in done.stderr


def test_without_a_network_the_message_says_so(tmp_path: Path) -> None:
    """A hub that does not answer is an error with what to check."""
    done = copy(Hub("http://127.0.0.1:9"), tmp_path, "weights", "--revision", COMMIT)
    assert done.returncode == 2
    assert "cannot be reached" in done.stderr


@pytest.fixture(scope="module")
def aws() -> Iterator[dict[str, str]]:
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
    }
    server.stop()


def objects(client: Any) -> list[str]:
    return [each["Key"] for each in client.list_objects_v2(Bucket=BUCKET).get("Contents", [])]


def test_a_prefix_of_s3_gets_all_files_or_none(
    hub: Hub, aws: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A damaged file leaves an empty prefix; later the prefix has the files, and is not mixed."""
    for name, value in aws.items():
        monkeypatch.setenv(name, value)
    client = boto3.client("s3")
    client.create_bucket(Bucket=BUCKET)
    url = f"s3://{BUCKET}/llama"
    hub.replaced["tokenizer/vocab.txt"] = b"c\nd\n"
    assert copy(hub, tmp_path, url, "--revision", COMMIT, **aws).returncode == 1
    assert objects(client) == []

    hub.replaced.clear()
    done = copy(hub, tmp_path, url, "--revision", COMMIT, **aws)
    assert done.returncode == 0, done.stderr
    names = ("config.json", "model.safetensors", "tokenizer/vocab.txt")
    assert objects(client) == [f"llama/{name}" for name in names]

    done = copy(hub, tmp_path, url, "--revision", COMMIT, **aws)
    assert done.returncode == 2
    assert "must be empty" in done.stderr
    assert copy(hub, tmp_path, f"s3://{BUCKET}", "--revision", COMMIT, **aws).returncode == 2


def test_an_object_that_differs_from_its_file_leaves_an_empty_prefix(
    hub: Hub, aws: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each object is compared after its upload; if one differs, all are deleted."""
    for name, value in {**aws, "HF_ENDPOINT": hub.url, "HF_TOKEN": TOKEN}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    boto3.client("s3").create_bucket(Bucket=BUCKET)
    session = boto3.Session()

    def damage(params: Any, **_: object) -> None:
        if params["url_path"].endswith("model.safetensors"):
            boto3.client("s3").put_object(
                Bucket=BUCKET, Key="other/model.safetensors", Body=b"", ChecksumAlgorithm="SHA256"
            )

    session.events.register("before-call.s3.HeadObject", damage)
    revision = HubRevision.of(REPOSITORY, COMMIT)
    notes: list[str] = []
    with pytest.raises(
        ArchiveError, match=r"other/model\.safetensors: must have 70000 bytes, got 0"
    ):
        copy_to_prefix(revision, revision.files([], []), (BUCKET, "other/"), session, notes.append)
    assert any("upload model.safetensors" in note for note in notes)
    assert [key for key in objects(boto3.client("s3")) if key.startswith("other/")] == []
