"""Environments of the cache: what is used, and what an interrupted or failed fetch leaves."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.untrusted.cache_contract import Seal
from triton_model_check.onnx_runtimes import fetching
from triton_model_check.onnx_runtimes.environments import (
    entry_paths,
    find_environment,
    sealed_files,
)
from triton_model_check.onnx_runtimes.fetching import fetch_environment

RELEASE = "1.16"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the cache of this test."""
    monkeypatch.setenv("CONSTRUCTS_TRITON_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def _environment() -> Path:
    """Write an environment as a fetch does, with other code."""
    path, seal_path = entry_paths(RELEASE)
    (path / "onnxruntime").mkdir(parents=True)
    path.parents[1].chmod(0o700)
    path.parent.chmod(0o700)
    (path / "onnxruntime" / "code.so").write_bytes(b"1" * 20_000)
    Seal.of(path.name, sealed_files(path), note="1.16.3").write(seal_path)
    return path


def test_complete_environment_is_found() -> None:
    """An environment with its seal is used, and has its version."""
    path = _environment()
    found = find_environment(RELEASE)
    assert found is not None
    assert (found.version, found.path) == ("1.16.3", path)


@pytest.mark.parametrize("damage", ["changed", "added", "without seal"])
def test_damaged_environment_is_not_used(damage: str) -> None:
    """Compiled code that differs from the seal, or has none, is not run."""
    path = _environment()
    if damage == "changed":
        (path / "onnxruntime" / "code.so").write_bytes(b"2" * 20_000)
    elif damage == "added":
        (path / "other.so").write_bytes(b"3")
    else:
        entry_paths(RELEASE)[1].unlink()
    assert find_environment(RELEASE) is None


def test_interrupted_fetch_leaves_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C while packages are installed leaves no environment and no draft."""

    def interrupted(folder: Path, _: object) -> None:
        (folder / "onnxruntime").mkdir()
        raise KeyboardInterrupt

    monkeypatch.setattr(fetching, "install_wheels", interrupted)
    with pytest.raises(KeyboardInterrupt):
        fetch_environment(RELEASE)
    assert [path.suffix for path in (cache / "onnxruntime").iterdir()] == [".lock"]
    assert find_environment(RELEASE) is None


def test_unreachable_index_is_the_reason(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fetch without a package index says what the installer says, and leaves nothing."""
    for name, value in {"UV_OFFLINE": "1", "UV_CACHE_DIR": str(tmp_path / "uv")}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    with pytest.raises(InvalidValueError, match=r"could not install it \(.*onnxruntime"):
        fetch_environment("1.30")
    assert [path.suffix for path in (cache / "onnxruntime").iterdir()] == [".lock"]


def test_release_without_a_wheel_for_this_python_is_not_fetched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The reason names the Python, and nothing is installed."""
    monkeypatch.setattr(fetching, "install_wheels", lambda *_: pytest.fail("installs"))
    first = ".".join(map(str, fetching._FIRST_RELEASES[sys.version_info[:2]]))
    with pytest.raises(InvalidValueError, match=f"no wheel of it .* begin at {first}"):
        fetch_environment("1.11")
