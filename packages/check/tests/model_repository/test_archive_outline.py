"""The outline of an archive that another tool created."""

from __future__ import annotations

import os
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from sample_repositories import write_repository

from constructs_triton_core.errors import ArchiveError
from constructs_triton_core.untrusted.drafts import partial_folder
from triton_model_check.model_repository import archive_outline as outline
from triton_model_check.model_repository import pack
from triton_model_check.model_repository.archive_outline import outline_archive

CONFIG = b'backend: "onnxruntime"\n'
WEIGHTS = bytes(range(256)) * 4096 * 4  # 4 MiB, of which no check looks at more than the beginning


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    files = {"net/config.pbtxt": CONFIG, "net/1/model.onnx": WEIGHTS, "net/labels.txt": b"cat\n"}
    path = pack(write_repository(tmp_path / "r", files), ["net"], tmp_path / "packed").path
    os.utime(
        path, (time.time() - 100,) * 2
    )  # the outline of an archive that was just written is not kept
    return path


def test_outline_is_the_repository_with_holes_for_weights(archive: Path) -> None:
    """Configurations are complete; weights have their size and use little disk space."""
    found = outline_archive(archive)
    assert list(found.repository.models) == list(found.archive.models) == ["net"]
    model = found.repository.path / "net"
    assert (model / "config.pbtxt").read_bytes() == CONFIG
    weights = (model / "1/model.onnx").stat()
    assert weights.st_size == len(WEIGHTS)
    assert weights.st_blocks * 512 < len(WEIGHTS) / 2
    assert found.archive.path == archive


def test_model_file_with_holes_is_not_judged(archive: Path) -> None:
    """A check of an outline does not take the holes for a damaged model, and says so."""
    report = outline_archive(archive).repository.check()
    assert report.findings == ()
    assert report.not_checked == ("net/1/model.onnx: content not checked: it is in an archive",)


def test_unchanged_archive_is_read_once(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second outline comes from the cache and is equal."""
    first = outline_archive(archive)
    monkeypatch.setattr(outline, "inspect_archive", lambda *_, **__: pytest.fail("was read again"))
    second = outline_archive(archive)
    assert (second.archive, second.repository.path) == (first.archive, first.repository.path)


def test_changed_archive_is_read_again(archive: Path, tmp_path: Path) -> None:
    """Other content under the same path gives another outline."""
    before = outline_archive(archive).archive.digest
    other = write_repository(
        tmp_path / "other", {"renamed/config.pbtxt": CONFIG, "renamed/1/model.onnx": b"x"}
    )
    shutil.copyfile(pack(other, ["renamed"], tmp_path / "packed").path, archive)
    after = outline_archive(archive)
    assert after.archive.models == ("renamed",)
    assert after.archive.digest != before


def test_parallel_runs_share_one_outline(archive: Path, own_cache: Path) -> None:
    """A slower run uses the outline of the faster one, and deletes nothing of it."""
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(outline_archive, [archive] * 24):
            assert (found.repository.path / "net/config.pbtxt").read_bytes() == CONFIG
    assert len(list((own_cache / "outlines").iterdir())) == 1


def test_outline_needs_no_cache(archive: Path, own_cache: Path) -> None:
    """If the cache directory cannot be created, the outline is in a temporary folder."""
    shutil.rmtree(own_cache, ignore_errors=True)
    own_cache.write_bytes(b"")
    assert list(outline_archive(archive).repository.models) == ["net"]


def test_oldest_outlines_are_deleted(
    archive: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The cache keeps a fixed number of outlines: the most recently used."""
    monkeypatch.setattr(outline, "_MOST_OUTLINES", 2)
    paths = [copy_of(archive, name) for name in ("a", "b", "c")]
    found = [outline_archive(path).repository.path.parent for path in paths]
    outline._IN_USE.clear()  # as in another process
    for age, folder in enumerate(found):
        os.utime(folder, (0, 10 - age))
    last = outline_archive(copy_of(archive, "d")).repository.path.parent
    assert set((own_cache / "outlines").iterdir()) == {found[0], last}


@pytest.mark.parametrize("is_same_process", [True, False])
def test_outlines_in_use_are_kept(
    archive: Path, monkeypatch: pytest.MonkeyPatch, is_same_process: bool
) -> None:
    """More archives than the cache keeps are all readable,
    in this process and in one that started today.
    """
    monkeypatch.setattr(outline, "_MOST_OUTLINES", 2)
    found = []
    for name in "abcdef":
        found.append(outline_archive(copy_of(archive, name)).repository)
        if is_same_process:
            os.utime(found[-1].path.parent, (0, 0))
        else:
            outline._IN_USE.clear()
    assert [repository.model("net").config.backend for repository in found] == ["onnxruntime"] * 6


def test_draft_of_another_process_is_not_deleted(
    archive: Path, own_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unfinished outline is not counted and not deleted, however old it is."""
    monkeypatch.setattr(outline, "_MOST_OUTLINES", 0)
    (own_cache / "outlines").mkdir(parents=True)
    with partial_folder(own_cache / "outlines") as draft:
        os.utime(draft, (0, 0))
        outline_archive(archive)
        assert draft.is_dir()


def copy_of(archive: Path, name: str) -> Path:
    return Path(shutil.copy2(archive, archive.with_name(f"{name}.tar.gz")))


def test_invalid_archive_leaves_nothing_in_the_cache(tmp_path: Path, own_cache: Path) -> None:
    """Each run reports an invalid archive by its path, and no folder is left behind."""
    broken = tmp_path / "broken.tar.gz"
    broken.write_bytes(b"not gzip")
    for _ in range(2):
        with pytest.raises(ArchiveError, match=r"broken\.tar\.gz: "):
            outline_archive(broken)
    assert list((own_cache / "outlines").iterdir()) == []
    with pytest.raises(ArchiveError, match=r"absent\.tar\.gz: cannot be read \(no such file"):
        outline_archive(tmp_path / "absent.tar.gz")
