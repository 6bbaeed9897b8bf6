"""The findings that are kept of an unchanged repository are those of a new check,
after any change.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sample_repositories import write_repository

import triton_model_check
from constructs_triton_core.untrusted.cache_contract import SMALL_BYTES
from triton_model_check.checks.report import Report
from triton_model_check.model_config.target import Target
from triton_model_check.model_repository import ModelRepository
from triton_model_check.model_repository.kept import kept_answers
from triton_model_check.model_repository.kept.kept_repository import KeptRepository
from triton_model_check.untrusted import elsewhere
from triton_model_check.untrusted.cache_location import cache_directory

REAL_CLOCK = time.time_ns
CONFIG = """
backend: "python"
input [ { name: "x" data_type: TYPE_FP32 dims: [ 1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 1 ] label_filename: "%s" } ]
"""
MODEL = b"class TritonPythonModel:\n    def execute(self, requests):\n        return []\n"
FILES = {
    "net/config.pbtxt": (CONFIG % "labels.txt").encode(),
    "net/labels.txt": b"cat\n",
    "net/1/model.py": MODEL,
    "net/1/large.bin": bytes(SMALL_BYTES + 1),
    "other/config.pbtxt": (CONFIG % "").encode(),
    "other/1/model.py": MODEL,
}


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository whose files are old enough to be kept."""
    write_repository(tmp_path / "r", FILES)
    monkeypatch.setattr(elsewhere, "_noted", set())
    monkeypatch.setattr(time, "time_ns", lambda: 4_000_000_000 + REAL_CLOCK())
    return tmp_path / "r"


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What was computed, in place of being found."""
    calls: list[object] = []
    check = ModelRepository.check

    def watched(repository: ModelRepository, *arguments: object, **options: object) -> object:
        calls.append(arguments)
        return check(repository, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(ModelRepository, "check", watched)
    return calls


def findings(path: Path, target: Target | None = None) -> object:
    report = KeptRepository.from_directory(path).check(target)
    return report.findings, report.not_checked


def edit_secretly(path: Path) -> None:
    """Change a byte, and set the modification time back."""
    before = path.stat()
    path.write_bytes(path.read_bytes()[:-1] + b"#")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def replace_by_link(path: Path) -> None:
    other = path.rename(path.with_name("target"))
    path.symlink_to(other)


CHANGES: dict[str, Callable[[Path], object]] = {
    "content": lambda root: (root / "net/config.pbtxt").write_text('backend: "nonesuch"'),
    "content with the old size and time": lambda root: edit_secretly(root / "net/config.pbtxt"),
    "large content with the old size and time": lambda root: edit_secretly(
        root / "net/1/large.bin"
    ),
    "file removed": lambda root: (root / "net/labels.txt").unlink(),
    "file renamed": lambda root: (root / "net/labels.txt").rename(root / "net/Labels.txt"),
    "file added": lambda root: (root / "net/1/notes.txt").write_bytes(b""),
    "file in the place of a folder": lambda root: (
        (root / "net/1").rename(root / "net/2"),
        (root / "net/1").write_bytes(b""),
    ),
    "link in the place of a file": lambda root: replace_by_link(root / "net/labels.txt"),
    "mode": lambda root: (root / "net/1/model.py").chmod(0o600),
    "folder": lambda root: (root / "extra").mkdir(),
    "what is left out": lambda root: (root / ".tritonignore").write_text("*.txt\n"),
    "bytecode": lambda root: write_repository(root, {"net/1/__pycache__/model.pyc": b"x"}),
}


def test_unchanged_repository_is_not_checked_again(path: Path, computed: list[object]) -> None:
    """The second check runs no rule and reads no configuration,
    and gives the same findings and notes.
    """
    first = findings(path), KeptRepository.from_directory(path).top_level_models()
    findings(path)
    assert (findings(path), KeptRepository.from_directory(path).top_level_models()) == first
    assert len(computed) == 1


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_any_change_of_a_file_is_checked(
    change: Callable[[Path], object], path: Path, computed: list[object]
) -> None:
    """After each kind of change the findings are those of a new check."""
    findings(path)
    change(path)
    fresh = ModelRepository.from_directory(path).check()
    computed.clear()
    assert findings(path) == (fresh.findings, fresh.not_checked)
    assert computed


@pytest.mark.parametrize("target", [Target("sagemaker-multi-model"), Target(image_version="24.09")])
def test_another_question_is_checked(target: Target, path: Path, computed: list[object]) -> None:
    """Findings for one target are not those for another."""
    findings(path)
    findings(path, target)
    assert len(computed) == 2


def test_another_release_or_edited_fact_is_checked(
    path: Path, computed: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key has the version, and every file of the package, as well as the libraries."""
    findings(path)
    monkeypatch.setattr(kept_answers, "__version__", "9.9.9")
    kept_answers._program.cache_clear()
    findings(path)
    package = Path(triton_model_check.__file__).parent
    before = kept_answers._program()
    os.utime(package / "facts" / "images.json")
    kept_answers._program.cache_clear()
    assert kept_answers._program() != before
    findings(path)
    assert len(computed) == 3


@pytest.mark.parametrize("label", ["../../outside.txt", "link/../../outside.txt"])
def test_file_outside_is_looked_at_again(label: str, path: Path, computed: list[object]) -> None:
    """Findings that depend on a file outside the repository are not kept."""
    (path.parent / "elsewhere").mkdir()
    (path / "net/link").symlink_to(path.parent / "elsewhere")
    (path / "net/config.pbtxt").write_text(CONFIG % label)
    assert "tensor-label-file" in str(findings(path))
    (path.parent / "outside.txt").touch()
    (path.parent.parent / "outside.txt").touch()
    assert "tensor-label-file" not in str(findings(path))
    (path.parent.parent / "outside.txt").unlink()
    assert len(computed) == 2


def test_target_of_a_link_is_part_of_the_repository(path: Path, computed: list[object]) -> None:
    """A change of what a link leads to is a change, also if there was nothing at first."""
    (path / "net/labels.txt").unlink()
    (path / "net/labels.txt").symlink_to(path.parent / "outside.txt")
    assert "tensor-label-file" in str(findings(path))
    (path.parent / "outside.txt").write_text("cat")
    assert "tensor-label-file" not in str(findings(path))
    assert len(computed) == 2


def test_change_during_the_check_is_not_kept(
    path: Path, computed: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a file changes while the rules run and is changed back, the findings are not kept."""
    check = ModelRepository.check

    def disturbed(repository: ModelRepository, *arguments: object, **options: object) -> object:
        labels = path / "net/labels.txt"
        labels.unlink()
        found = check(repository, *arguments, **options)  # type: ignore[arg-type]
        labels.write_bytes(b"cat\n")
        return found

    with monkeypatch.context() as patch:
        patch.setattr(ModelRepository, "check", disturbed)
        assert "tensor-label-file" in str(findings(path))
    assert "tensor-label-file" not in str(findings(path))


def test_exceeded_limit_is_not_kept(
    path: Path, computed: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a process could not finish in time may be finished the next time."""
    check = ModelRepository.check

    def exceed(self: ModelRepository, *arguments: Any, **options: Any) -> Report:
        elsewhere.note_limit()
        return check(self, *arguments, **options)

    monkeypatch.setattr(ModelRepository, "check", exceed)
    findings(path)
    findings(path)
    assert len(computed) == 2


@pytest.mark.parametrize(
    "content", [b"", b"{", b"constructs-triton cache 1 \n[]", bytes(range(256))]
)
def test_damaged_cache_counts_as_empty(content: bytes, path: Path, computed: list[object]) -> None:
    """A file of the cache that is cut off or changed is not used, and no error."""
    first = findings(path)
    for each in (cache_directory() / "reports").iterdir():
        each.write_bytes(content)
    assert findings(path) == first
    assert len(computed) == 2


def test_recent_files_are_kept_only_after_two_seconds(
    path: Path, computed: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large file that was just written may change again within one tick of the clock."""
    monkeypatch.setattr(time, "time_ns", REAL_CLOCK)
    findings(path)
    findings(path)
    assert len(computed) == 2
