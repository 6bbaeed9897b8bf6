"""Packing models: always the same bytes, and nothing is read or compressed twice."""

from __future__ import annotations

import gzip
import os
import random
import subprocess
import tarfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sample_repositories import ENSEMBLE_CONFIG, write_repository

from constructs_triton_core.errors import ArchiveError, InvalidValueError
from constructs_triton_core.untrusted import drafts
from triton_model_check.model_repository import (
    ModelRepository,
    archive_cache,
    pack,
    packing,
)
from triton_model_check.model_repository.archive import BLOCK_BYTES
from triton_model_check.model_repository.archive_inspection import inspect_archive
from triton_model_check.model_repository.packing import fingerprint, pack_folder

PYTHON_CONFIG = b"""
backend: "python"
input [{ name: "x" data_type: TYPE_FP32 dims: [1] }]
output [{ name: "y" data_type: TYPE_FP32 dims: [1] }]
"""
NET = {
    "net/config.pbtxt": PYTHON_CONFIG,
    "net/1/model.py": b"class TritonPythonModel:\n    def execute(self, requests): ...\n",
}


NO_NAME = r"archive_name: must be a file name ending in \.tar\.gz"


def names_in(path: Path) -> list[str]:
    with tarfile.open(path) as tar:
        return tar.getnames()


def test_folder_is_the_root_of_its_archive(tmp_path: Path) -> None:
    """The archive of a folder has its files without the folder's name,
    on which it does not depend.
    """
    written = []
    for name in ("one", "two"):
        folder = tmp_path / name / name
        (folder / "below").mkdir(parents=True)
        (folder / "a.json").write_text("{}")
        (folder / "below" / "b.txt").write_text("b")
        written.append(pack_folder(folder, tmp_path / "packed" / name))
    assert names_in(written[0].path) == ["a.json", "below", "below/b.txt"]
    assert written[0].digest == written[1].digest
    assert written[0].path.read_bytes() == written[1].path.read_bytes()


def test_same_content_gives_same_bytes(tmp_path: Path) -> None:
    """Directory, order of writing, umask, times and the archive's name do not change the bytes."""
    files = {
        **NET,
        "net/1/weights.bin": random.Random(1).randbytes(BLOCK_BYTES + 77),
        "net/1/a/é.txt": b"x",
    }
    first = pack(write_repository(tmp_path / "one", files), ["net"], tmp_path / "out")
    previous = os.umask(0o077)
    try:
        second_repository = write_repository(tmp_path / "two", dict(reversed(files.items())))
    finally:
        os.umask(previous)
    os.utime(tmp_path / "two/net/1/model.py", (1, 1))
    second = pack(
        second_repository, ["net"], tmp_path / "out", archive_name="n.tar.gz", use_cache=False
    )
    assert first.digest == second.digest
    assert first.path.name == f"{first.digest}.tar.gz"
    assert first.path.read_bytes() == second.path.read_bytes()


def test_archive_contains_no_owner_or_time(tmp_path: Path) -> None:
    """Owners, times and names are empty, modes are 0644 or 0755,
    and model directories are at the root.
    """
    repository = write_repository(tmp_path / "r", {**NET, "net/1/run.sh": b"#!/bin/sh\n"})
    (tmp_path / "r/net/1/run.sh").chmod(0o700)
    path = pack(repository, ["net"], tmp_path / "out").path
    with tarfile.open(path) as tar:
        members = tar.getmembers()
    assert {(m.uid, m.gid, m.uname, m.gname, m.mtime) for m in members} == {(0, 0, "", "", 0)}
    assert {m.name: oct(m.mode) for m in members} == {
        "net": "0o755",
        "net/1": "0o755",
        "net/1/model.py": "0o644",
        "net/1/run.sh": "0o755",
        "net/config.pbtxt": "0o644",
    }
    assert path.read_bytes()[:10] == b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff"


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "net/1/model.py").write_bytes(b"class TritonPythonModel: pass\n"),
        lambda root: (root / "net/1/tool").chmod(0o755),
        lambda root: (root / "net/1/model.py").rename(root / "net/1/other.py"),
        lambda root: (root / "net/1/empty").mkdir(),
    ],
    ids=["content", "mode", "name", "empty folder"],
)
def test_digest_changes_with_every_change(tmp_path: Path, change) -> None:  # type: ignore[no-untyped-def]
    """Content, mode, name and an empty folder are each part of the digest."""
    repository = write_repository(tmp_path / "r", {**NET, "net/1/tool": b"#!/bin/sh\n"})
    before = fingerprint(repository, ["net"])
    change(tmp_path / "r")
    assert fingerprint(repository, ["net"]) != before


def test_execute_bit_of_code_and_models_is_not_part_of_the_digest(tmp_path: Path) -> None:
    """A checkout or a file system that sets the bit for all files gives the same archive."""
    repository = write_repository(tmp_path / "r", {**NET, "net/1/model.onnx": b"x"})
    before = pack(repository, ["net"], tmp_path / "before")
    for path in (tmp_path / "r").rglob("*.*"):
        path.chmod(0o777)
    after = pack(repository, ["net"], tmp_path / "after")
    assert after.digest == before.digest
    assert after.path.read_bytes() == before.path.read_bytes()
    assert inspect_archive(after.path).digest == before.digest


def test_deep_folders_are_an_error(tmp_path: Path) -> None:
    """Folders nested more than a hundred deep are reported, whatever Python's stack allows."""
    repository = write_repository(tmp_path / "r", NET)
    folder = os.open(tmp_path / "r/net", os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("d", dir_fd=folder)
        below = os.open("d", os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(folder)
    with pytest.raises(ArchiveError, match="is nested too deeply, got 101 folders"):
        pack(repository, ["net"], tmp_path / "out")
    subprocess.run(["rm", "-rf", tmp_path / "r"], check=True)


def test_ensemble_gets_the_version_directory_that_git_dropped(tmp_path: Path) -> None:
    """An ensemble without a version directory is packed with one,
    which removes the error of its check.
    """
    repository = write_repository(tmp_path / "r", {**NET, "both/config.pbtxt": ENSEMBLE_CONFIG})
    as_it_lies = repository.check(is_packed=False)
    assert [error.code for error in as_it_lies.errors] == ["layout-no-version"]
    assert repository.errors_after_packing(as_it_lies) == repository.check().errors == ()
    dropped = pack(repository, repository.closure("both"), tmp_path / "out")
    (tmp_path / "r/both/1").mkdir()
    kept = pack(ModelRepository.from_directory(tmp_path / "r"), ["both", "net"], tmp_path / "out")
    assert "both/1" in names_in(dropped.path)
    assert dropped.digest == kept.digest


def test_created_version_is_that_of_the_version_policy(tmp_path: Path) -> None:
    """An ensemble whose policy has version 3 gets ``3/``, because Triton would not load ``1/``."""
    config = ENSEMBLE_CONFIG + b"version_policy { specific { versions: [3] } }\n"
    repository = write_repository(tmp_path / "r", {**NET, "both/config.pbtxt": config})
    packed = pack(repository, ["both"], tmp_path / "out")
    assert names_in(packed.path) == ["both", "both/3", "both/config.pbtxt"]


def test_model_that_needs_files_gets_no_version_directory(tmp_path: Path) -> None:
    """A Python model without a version directory is still an error:
    an empty one makes the server hang.
    """
    repository = write_repository(tmp_path / "r", {"net/config.pbtxt": PYTHON_CONFIG})
    assert names_in(pack(repository, ["net"], tmp_path / "out").path) == ["net", "net/config.pbtxt"]
    assert repository.errors_after_packing(repository.check()) == repository.check().errors != ()


def test_unchanged_repository_is_linked_from_the_cache(tmp_path: Path) -> None:
    """In folders that share files, the second archive of the same content
    is a link to the first.
    """
    repository = write_repository(tmp_path / "r", NET)
    first = pack(repository, ["net"], tmp_path / "a", shares_files=True)
    second = pack(repository, ["net"], tmp_path / "b", archive_name="net.tar.gz", shares_files=True)
    assert second.path.samefile(first.path)
    assert (second.digest, second.size_bytes) == (first.digest, first.size_bytes)


def test_archives_of_users_are_files_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Changing one output changes no other, although the second comes from the cache."""
    repository = write_repository(tmp_path / "r", NET)
    paths = [pack(repository, ["net"], tmp_path / "a").path]
    monkeypatch.setattr(packing, "write_archive", None)  # nothing is packed again
    paths += [pack(repository, ["net"], tmp_path / name).path for name in "bc"]
    whole = paths[0].read_bytes()
    for number, path in enumerate(paths):
        with path.open("ab") as file:
            file.write(b"X")
        assert [other.read_bytes() for other in paths[number + 1 :]] == [whole] * len(
            paths[number + 1 :]
        )
    assert pack(repository, ["net"], tmp_path / "a").path.read_bytes() == whole


def test_unchanged_copy_is_not_copied_again(tmp_path: Path) -> None:
    """A hard link that an older version has left becomes a file of its own,
    which then stays as it is.
    """
    repository = write_repository(tmp_path / "r", NET)
    assert pack(repository, ["net"], tmp_path / "a", shares_files=True).path.stat().st_nlink == 2
    before = pack(repository, ["net"], tmp_path / "a").path.stat()
    assert before.st_nlink == 1
    assert pack(repository, ["net"], tmp_path / "a").path.stat().st_ino == before.st_ino


def test_packing_many_models_lists_the_folder_a_few_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Listing a folder of n archives for each of them would take quadratic time."""
    monkeypatch.setattr(drafts, "_SHARE", 1e9)  # whatever listing takes, it is too much
    listed: list[object] = []
    scandir = os.scandir

    def list_folder(path: str | Path = ".") -> Iterator[os.DirEntry[str]]:
        listed.append(path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", list_folder)
    files = {
        name.replace("net", f"m{number}"): content
        for number in range(20)
        for name, content in NET.items()
    }
    repository = write_repository(tmp_path / "r", files)
    for name in repository.models:
        pack(repository, [name], tmp_path / "out", use_cache=False)
    assert listed.count(tmp_path / "out") == 1


def test_changed_archive_of_the_cache_is_not_used(tmp_path: Path) -> None:
    """Writing into a linked archive does not change the next one."""
    repository = write_repository(tmp_path / "r", NET)
    first = pack(repository, ["net"], tmp_path / "a")
    whole = first.path.read_bytes()
    first.path.write_bytes(b"damaged")
    assert pack(repository, ["net"], tmp_path / "b").path.read_bytes() == whole
    assert pack(repository, ["net"], tmp_path / "c").path.read_bytes() == whole


def test_archive_changed_within_its_modification_time_is_not_used(tmp_path: Path) -> None:
    """Same size, inode and modification time; the ctime shows that something has changed."""
    repository = write_repository(tmp_path / "r", NET)
    first = pack(repository, ["net"], tmp_path / "a")
    whole, before = first.path.read_bytes(), first.path.stat()
    time.sleep(0.02)  # the clock of the file system
    first.path.write_bytes(whole[:-1] + b"x")
    os.utime(first.path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert pack(repository, ["net"], tmp_path / "a").path.read_bytes() == whole
    assert pack(repository, ["net"], tmp_path / "b").path.read_bytes() == whole


def test_archive_is_still_used_after_a_link_to_it_was_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deleting a link changes the ctime too: the content is read once, and not packed again."""
    repository = write_repository(tmp_path / "r", {**NET, "net/1/weights.bin": os.urandom(100_000)})
    pack(repository, ["net"], tmp_path / "a", shares_files=True).path.unlink()
    kept = pack(repository, ["net"], tmp_path / "b", shares_files=True)
    assert kept.path.stat().st_nlink == 2
    monkeypatch.setattr(archive_cache, "_hash", None)
    assert pack(repository, ["net"], tmp_path / "c", shares_files=True).path.samefile(kept.path)


def test_without_cache_nothing_is_kept(tmp_path: Path, own_cache: Path) -> None:
    """``use_cache=False`` neither creates nor needs the cache directory."""
    repository = write_repository(tmp_path / "r", NET)
    pack(repository, ["net"], tmp_path / "out", use_cache=False)
    fingerprint(repository, ["net"], use_cache=False)
    assert not own_cache.exists()


@pytest.mark.parametrize("damage", [b"no database", b"SQLite format 3\x00 cut off"])
def test_damaged_cache_is_no_error(tmp_path: Path, own_cache: Path, damage: bytes) -> None:
    """A damaged cache counts as empty, and works again afterwards."""
    repository = write_repository(tmp_path / "r", NET)
    expected = fingerprint(repository, ["net"], use_cache=False)
    own_cache.mkdir()
    (own_cache / "digests.sqlite3").write_bytes(damage)
    assert [fingerprint(repository, ["net"]) for _ in range(3)] == [expected] * 3


def test_cache_that_is_a_file_is_no_error(tmp_path: Path, own_cache: Path) -> None:
    """If the cache directory cannot be created, packing works without it."""
    own_cache.write_bytes(b"")
    repository = write_repository(tmp_path / "r", NET)
    assert inspect_archive(pack(repository, ["net"], tmp_path / "out").path).models == ("net",)


def test_parallel_packs_give_one_archive(tmp_path: Path) -> None:
    """Several runs pack one repository into one folder with one cache:
    all succeed and leave one archive.
    """
    files = {**NET, "net/1/weights.bin": random.Random(2).randbytes(3 * BLOCK_BYTES)}
    repository = write_repository(tmp_path / "r", files)
    digests: list[str] = []
    threads = [
        threading.Thread(
            target=lambda: digests.append(pack(repository, ["net"], tmp_path / "out").digest)
        )
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(digests) == len(threads)
    assert len(set(digests)) == 1
    assert [path.name for path in (tmp_path / "out").iterdir()] == [f"{digests[0]}.tar.gz"]
    assert inspect_archive(tmp_path / "out" / f"{digests[0]}.tar.gz").digest == digests[0]


def test_levels_change_the_bytes_but_not_the_digest(tmp_path: Path) -> None:
    """Level 0 stores; every level unpacks to the same content and has the same digest."""
    repository = write_repository(tmp_path / "r", {**NET, "net/1/weights.bin": bytes(200_000)})
    archives = [pack(repository, ["net"], tmp_path / str(n), compression_level=n) for n in range(4)]
    assert len({archive.digest for archive in archives}) == 1
    assert len({gzip.decompress(archive.path.read_bytes()) for archive in archives}) == 1
    assert archives[0].size_bytes > 200_000 > 10 * archives[2].size_bytes


def test_progress_reaches_the_end(tmp_path: Path) -> None:
    """The reported bytes increase up to the reported total."""
    reports: list[tuple[int, int]] = []
    repository = write_repository(
        tmp_path / "r", {**NET, "net/1/weights.bin": bytes(2 * BLOCK_BYTES)}
    )
    pack(repository, ["net"], tmp_path / "out", on_progress=lambda *report: reports.append(report))
    assert [done for done, _ in reports] == sorted(done for done, _ in reports)
    assert reports[-1][0] == reports[-1][1] >= 2 * BLOCK_BYTES


def test_file_that_changes_while_read_is_an_error(tmp_path: Path) -> None:
    """The error names a file that is written during packing, and no archive is created."""
    repository = write_repository(tmp_path / "r", NET)
    weights = tmp_path / "r/net/1/weights.bin"
    with weights.open("wb") as file:
        file.truncate(40 * BLOCK_BYTES)

    def interfere(done: int, total: int) -> None:
        os.truncate(weights, 41 * BLOCK_BYTES)

    with pytest.raises(ArchiveError, match=r"weights\.bin: changed while it was read"):
        pack(repository, ["net"], tmp_path / "out", on_progress=interfere)
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize(
    ("names", "archive_name", "message"),
    [
        *(
            (["net"], name, NO_NAME)
            for name in ("net.zip", ".tar.gz", "../net.tar.gz", "a/net.tar.gz")
        ),
        ([], None, "model_names: must"),
        (["nett"], None, "model_names: must"),
    ],
)
def test_names_of_models_and_archive_are_checked(
    tmp_path: Path, names: list[str], archive_name: str | None, message: str
) -> None:
    """A model that does not exist, a folder or another suffix is an error,
    and nothing is written.
    """
    with pytest.raises(InvalidValueError, match=message):
        pack(
            write_repository(tmp_path / "r", NET),
            names,
            tmp_path / "out",
            archive_name=archive_name,
        )
    assert not (tmp_path / "out").exists()


def test_destination_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    """The error names the destination, here a file instead of a folder."""
    (tmp_path / "out").write_bytes(b"")
    with pytest.raises(ArchiveError, match=r"out: the archive cannot be written \(file exists"):
        pack(write_repository(tmp_path / "r", NET), ["net"], tmp_path / "out")
