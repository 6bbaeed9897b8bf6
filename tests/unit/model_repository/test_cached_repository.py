"""What is remembered of an unchanged repository, and what makes it be asked anew."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from sample_repositories import ENSEMBLE_CONFIG, own_cache, write_repository

from constructs_triton.model_config.target import Target
from constructs_triton.model_repository import ModelRepository, pack, packing
from constructs_triton.model_repository.cached_repository import CachedRepository
from constructs_triton.model_repository.packing import find_packed

__all__ = ["own_cache"]

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
    """A repository whose files are old enough to be trusted."""
    write_repository(tmp_path / "r", FILES)
    monkeypatch.setattr(time, "time_ns", lambda: 4_000_000_000 + REAL_CLOCK())
    return tmp_path / "r"


def survey(path: Path) -> CachedRepository:
    return CachedRepository(ModelRepository.from_directory(path))


def ask_everything(path: Path) -> object:
    asked = survey(path)
    return dict(asked.top_level), dict(asked.identities), asked.check(), asked.check(Target())


def test_unchanged_repository_is_neither_parsed_nor_hashed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second look needs neither configurations, nor contents, nor rules, and sees the same."""
    first = ask_everything(path)

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("asked again")

    for name in ("check", "closure", "top_level_models"):
        monkeypatch.setattr(ModelRepository, name, refuse)
    monkeypatch.setattr(packing, "hash_files", refuse)
    assert ask_everything(path) == first


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "net/config.pbtxt").write_text('backend: "nonesuch" max_batch_size: 8'),
        lambda root: os.utime(root / "net/config.pbtxt", (1, 1)),
        lambda root: (root / "extra").mkdir(),
        lambda root: (root / ".tritonignore").write_text("*.txt\n"),
    ],
    ids=["content", "time", "folder", "ignore rules"],
)
def test_any_change_is_looked_at(
    path: Path, change: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another content, time, folder or ignore rule makes the checks be asked again."""
    ask_everything(path)
    change(path)
    asked: list[object] = []
    check = ModelRepository.check

    def watched(repository: ModelRepository, target: Target | None = None) -> object:
        asked.append(target)
        return check(repository, target)

    monkeypatch.setattr(ModelRepository, "check", watched)
    survey(path).check()
    assert asked


def test_young_files_are_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that may still change within one tick of the clock makes nothing be remembered."""
    write_repository(tmp_path / "r", FILES)
    ask_everything(tmp_path / "r")
    monkeypatch.setattr(ModelRepository, "top_level_models", lambda _: ["net"])
    assert list(survey(tmp_path / "r").top_level) == ["net"]


def test_identity_is_that_of_the_archive(path: Path, tmp_path: Path) -> None:
    """The digest that names an archive before it is made is the one it has."""
    asked = survey(path)
    for name, identity in asked.identities.items():
        assert find_packed(identity, tmp_path / "out") is None
        archive = pack(asked.repository, asked.contents_of(name), tmp_path / "out")
        assert (archive.digest, archive.unpacked_size_bytes) == (
            identity.digest,
            identity.unpacked_size_bytes,
        )
        assert find_packed(identity, tmp_path / "out") == archive


def test_archive_that_was_touched_is_not_found(path: Path, tmp_path: Path) -> None:
    """An archive that somebody has written into is made again."""
    asked = survey(path)
    archive = pack(asked.repository, ["net"], tmp_path / "out")
    archive.path.unlink()
    archive.path.write_bytes(b"other")
    identity = packing.identify(asked.repository, {"net": ["net"]})["net"]
    assert find_packed(identity, tmp_path / "out") is None
