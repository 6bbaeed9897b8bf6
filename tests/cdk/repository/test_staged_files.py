"""Models as files: what is copied for the upload, and when it is copied again."""

from __future__ import annotations

import os
import time
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from sample_repositories import ENSEMBLE_CONFIG, write_repository

from constructs_triton.cdk.repository import staged_files
from constructs_triton.cdk.repository.staged_files import StagedModel, list_files, stage
from constructs_triton_core.errors import ArchiveError
from triton_model_check.model_repository import digest_cache
from triton_model_check.model_repository.uncompressed import copying
from triton_model_check.model_repository.uncompressed.copying import copy_file

LARGE = b"L" * 2_000
OTHER_LARGE = b"l" * 2_000
FILES = {"net/config.pbtxt": b"", "net/1/model.onnx": LARGE, "net/1/labels.txt": b"cat\ndog\n"}


@pytest.fixture(autouse=True)
def small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file is large above 1,000 bytes, and its digest is kept."""
    monkeypatch.setattr(digest_cache, "SMALL_BYTES", 0)
    monkeypatch.setattr(staged_files, "LARGE_FILE_BYTES", 1_000)


def staged(root: Path, files: Mapping[str, bytes], *models: str) -> StagedModel:
    """The staged model, and its files written minutes ago."""
    root.mkdir(parents=True, exist_ok=True)
    repository = write_repository(root, files)
    minutes_ago = time.time() - 100
    for path in files:
        os.utime(root / path, (minutes_ago, minutes_ago))
    return stage(repository, models or ["net"], root.parent / "out")


def contents(model: StagedModel) -> dict[str, bytes]:
    """The content of each file, as the deploy-time function finds it."""
    found = {file.path: file.copy.read_bytes() for file in model.large}
    for file in model.small:
        assert model.zip is not None
        end = file.offset + file.size_bytes
        found[file.path] = model.zip.read_bytes()[file.offset : end]
    return found


def test_every_file_can_be_found_by_the_list(tmp_path: Path) -> None:
    """A large file is a file of its own; the others are at their offsets in a zip
    that any program reads.
    """
    files = {**FILES, "net/1/ünïcode.txt": b"u", "net/1/empty.txt": b""}

    model = staged(tmp_path / "models", files)

    assert contents(model) == files
    assert [file.path for file in model.large] == ["net/1/model.onnx"]
    assert model.size_bytes == sum(len(content) for content in files.values())
    assert model.zip is not None
    with zipfile.ZipFile(model.zip) as archive:
        zipped = {member.filename: member.CRC for member in archive.infolist()}
    assert zipped == {file.path: file.crc32 for file in model.small}


def test_same_content_gives_the_same_bytes(tmp_path: Path) -> None:
    """Neither the folder, the times nor the modes of the files change a copy or the digest."""
    first = staged(tmp_path / "a" / "models", FILES)
    second = staged(tmp_path / "b" / "elsewhere", dict(reversed(FILES.items())))
    (tmp_path / "b" / "elsewhere" / "net" / "1" / "labels.txt").chmod(0o600)

    assert first.digest == second.digest
    assert [file.digest for file in first.large] == [file.digest for file in second.large]
    assert first.zip is not None
    assert second.zip is not None
    assert first.zip.name == second.zip.name
    assert first.zip.read_bytes() == second.zip.read_bytes()


def test_path_is_part_of_the_digest(tmp_path: Path) -> None:
    """A renamed file gives another digest, although the contents are the same."""
    first = staged(tmp_path / "a" / "models", FILES)
    renamed = {path.replace("labels", "names"): content for path, content in FILES.items()}
    second = staged(tmp_path / "b" / "models", renamed)
    assert first.digest != second.digest
    assert first.large[0].digest == second.large[0].digest


def test_unchanged_file_is_neither_read_nor_copied_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a change of a small file, the copy of the large one stays,
    and the large file is not opened.
    """
    first = staged(tmp_path / "models", FILES)
    monkeypatch.setattr(staged_files, "_copy", lambda *_: pytest.fail("copied again"))
    second = staged(tmp_path / "models", {"net/1/labels.txt": b"dog\ncat\n"})
    assert second.digest != first.digest
    assert second.large == first.large
    assert second.zip != first.zip


@pytest.mark.parametrize("damage", ["edited", "deleted"])
def test_damaged_copy_is_copied_again(tmp_path: Path, damage: str) -> None:
    """A copy that another program edits, even with the same size and time,
    or deletes is replaced.
    """
    model = staged(tmp_path / "models", FILES)
    assert model.zip is not None
    for copy in (model.large[0].copy, model.zip):
        before = copy.stat()
        if damage == "deleted":
            copy.unlink()
        else:
            copy.write_bytes(b"x" * before.st_size)
            os.utime(copy, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert contents(staged(tmp_path / "models", FILES)) == FILES


def test_copy_shares_nothing_with_the_original(tmp_path: Path) -> None:
    """An edit in place of the user's file does not change the copy."""
    model = staged(tmp_path / "models", FILES)
    with (tmp_path / "models" / "net" / "1" / "model.onnx").open("r+b") as file:
        file.write(OTHER_LARGE)
    assert model.large[0].copy.read_bytes() == LARGE
    assert not model.large[0].copy.is_symlink()


def test_file_that_changes_while_it_is_copied_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large file that a program writes to is an error, and leaves no copy."""
    repository = write_repository(tmp_path / "models", FILES)
    hash_copy = staged_files._copy_and_hash

    def edit(original: object, copy: object) -> bytes:
        with (tmp_path / "models" / "net" / "1" / "model.onnx").open("ab") as file:
            file.write(b"more")
        return hash_copy(original, copy)  # type: ignore[arg-type]

    monkeypatch.setattr(staged_files, "_copy_and_hash", edit)
    monkeypatch.setattr(staged_files, "share_blocks", lambda *_: False)
    with pytest.raises(ArchiveError, match=r"model\.onnx: changed while it was read"):
        stage(repository, ["net"], tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir() if path.suffix == ".modelfile"] == []


def test_shared_blocks_are_hashed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the file system copies by reference, the digest is that of the copy."""

    def share(source: int, destination: int) -> bool:
        os.pwrite(destination, os.pread(source, 10_000, 0), 0)
        return True

    plain = staged(tmp_path / "a" / "models", FILES)
    for module in (copying, staged_files):
        monkeypatch.setattr(module, "share_blocks", share)
    shared = staged(tmp_path / "b" / "models", FILES)
    assert shared.large[0].digest == plain.large[0].digest
    assert contents(shared) == FILES
    copy_file(plain.large[0].copy, tmp_path / "copy")
    assert (tmp_path / "copy").read_bytes() == LARGE


def test_links_are_followed_inside_the_repository_only(tmp_path: Path) -> None:
    """A link becomes a file with the content of its target;
    a link out of the repository is refused.
    """
    repository = write_repository(tmp_path / "models", FILES)
    (tmp_path / "models" / "net" / "1" / "link.onnx").symlink_to("model.onnx")
    assert contents(stage(repository, ["net"], tmp_path / "out"))["net/1/link.onnx"] == LARGE
    (tmp_path / "outside").write_bytes(b"secret")
    (tmp_path / "models" / "net" / "1" / "out.txt").symlink_to(tmp_path / "outside")
    with pytest.raises(ArchiveError, match="is a link out of the repository"):
        stage(repository, ["net"], tmp_path / "out")


def test_empty_version_folder_gets_a_file(tmp_path: Path) -> None:
    """An ensemble has a version folder without files, which S3 would lose;
    so has any empty folder.
    """
    root = tmp_path / "models"
    (root / "net" / "1" / "assets").mkdir(parents=True)
    model = staged(root, {"both/config.pbtxt": ENSEMBLE_CONFIG, **FILES}, "both", "net")
    found = contents(model)
    assert {path for path in found if path.endswith(".triton-keep")} == {
        "both/1/.triton-keep",
        "net/1/assets/.triton-keep",
    }
    assert list_files(write_repository(root, {}), ["both", "net"]).paths == sorted(found)


def test_folder_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    """The message names the folder, and what to do."""
    (tmp_path / "out").write_text("a file")
    repository = write_repository(tmp_path / "models", FILES)
    with pytest.raises(
        ArchiveError, match=r"cannot be copied there .*; choose a folder that you may write"
    ):
        stage(repository, ["net"], tmp_path / "out")
