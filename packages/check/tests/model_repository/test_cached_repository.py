"""What is cached for an unchanged repository, and what makes it be computed again."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from sample_repositories import ENSEMBLE_CONFIG, write_repository

from constructs_triton_core.untrusted.cache_contract import SMALL_BYTES
from triton_model_check.model_config.target import Target
from triton_model_check.model_repository import ModelRepository, pack, packing
from triton_model_check.model_repository.cached_repository import CachedRepository
from triton_model_check.model_repository.packing import find_packed

REAL_CLOCK = time.time_ns

FILES = {
    "net/config.pbtxt": b"""
backend: "python"
input [{ name: "x" data_type: TYPE_FP32 dims: [1] }]
output [{ name: "y" data_type: TYPE_FP32 dims: [1] }]
""",
    "net/1/model.py": b"class TritonPythonModel:\n    def execute(self, requests): ...\n",
    "both/1/.keep": b"",
    "both/config.pbtxt": ENSEMBLE_CONFIG,
}


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose files are old enough to be cached."""
    write_repository(tmp_path / "r", FILES)
    monkeypatch.setattr(time, "time_ns", lambda: 4_000_000_000 + REAL_CLOCK())
    return tmp_path / "r"


def cached(path: Path) -> CachedRepository:
    return CachedRepository(ModelRepository.from_directory(path))


def edit_secretly(path: Path) -> None:
    """Change a byte, and set the modification time back."""
    before = path.stat()
    path.write_bytes(path.read_bytes()[:-1] + b" ")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def compute_everything(path: Path) -> object:
    found = cached(path)
    return dict(found.top_level), dict(found.identities), found.check(), found.check(Target())


def test_unchanged_repository_is_neither_parsed_nor_hashed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second run reads no configuration or content, runs no rule, and gives the same result."""
    first = compute_everything(path)

    def fail(*_: object, **__: object) -> None:
        raise AssertionError("was computed again")

    for name in ("check", "closure", "top_level_models"):
        monkeypatch.setattr(ModelRepository, name, fail)
    monkeypatch.setattr(packing, "hash_files", fail)
    assert compute_everything(path) == first


def test_bytecode_is_not_a_change(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python may compile a model file: what is in ``__pycache__`` is not packed and not checked."""
    (path / "net/1/__pycache__").mkdir()
    first = compute_everything(path)
    (path / "net/1/__pycache__/model.pyc").write_bytes(b"compiled")
    monkeypatch.setattr(ModelRepository, "top_level_models", None)
    monkeypatch.setattr(ModelRepository, "check", None)
    assert compute_everything(path) == first


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "net/config.pbtxt").write_text(
            'backend: "nonesuch" max_batch_size: 8'
        ),
        lambda root: edit_secretly(root / "net/1/model.py"),
        lambda root: (root / "extra").mkdir(),
        lambda root: (root / ".tritonignore").write_text("*.txt\n"),
    ],
    ids=["content", "content with the old size and time", "folder", "ignore rules"],
)
def test_any_change_is_checked_again(
    path: Path, change: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checks run again after a change of content, folders or ignore rules."""
    compute_everything(path)
    change(path)
    checked: list[object] = []
    check = ModelRepository.check

    def watched(repository: ModelRepository, target: Target | None = None) -> object:
        checked.append(target)
        return check(repository, target)

    monkeypatch.setattr(ModelRepository, "check", watched)
    cached(path).check()
    assert checked


@pytest.mark.parametrize("size", [SMALL_BYTES, SMALL_BYTES + 1])
def test_results_for_recent_large_files_are_not_kept(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large file may still change within one tick of the file system's clock;
    a small one is compared.
    """
    write_repository(tmp_path / "r", {**FILES, "net/1/weights.bin": bytes(size)})
    compute_everything(tmp_path / "r")
    monkeypatch.setattr(ModelRepository, "top_level_models", lambda _: ["net"])
    assert list(cached(tmp_path / "r").top_level) == (["both"] if size == SMALL_BYTES else ["net"])


def test_identity_is_the_same_as_the_archives(path: Path, tmp_path: Path) -> None:
    """The digest computed before packing is the digest of the packed archive."""
    found = cached(path)
    for name, identity in found.identities.items():
        assert find_packed(identity, tmp_path / "out") is None
        archive = pack(found.repository, found.contents_of(name), tmp_path / "out")
        assert (archive.digest, archive.unpacked_size_bytes) == (
            identity.digest,
            identity.unpacked_size_bytes,
        )
        assert find_packed(identity, tmp_path / "out") == archive


def test_changed_archive_is_not_found(path: Path, tmp_path: Path) -> None:
    """An archive that another program has written into is not used."""
    found = cached(path)
    archive = pack(found.repository, ["net"], tmp_path / "out")
    archive.path.unlink()
    archive.path.write_bytes(b"other")
    identity = packing.identify(found.repository, {"net": ["net"]})["net"]
    assert find_packed(identity, tmp_path / "out") is None
