"""Fetches the ONNX Runtime of a release by name into an environment of the cache."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.processes.children import STDOUT, run_child
from constructs_triton_core.untrusted.cache_contract import DRAFT_PREFIX, Seal, own_folder
from constructs_triton_core.untrusted.terminal import show_work
from triton_model_check.onnx_runtimes.environments import (
    FOLDER,
    Environment,
    entry_paths,
    find_environment,
    sealed_files,
)
from triton_model_check.untrusted.cache_location import cache_directory

__all__ = ["fetch_environment"]

_FIRST_RELEASES = {(3, 11): (1, 15), (3, 12): (1, 17), (3, 13): (1, 20), (3, 14): (1, 24)}
"""The first ONNX Runtime on PyPI with a wheel for each Python."""
_FIRST_WITH_NUMPY_2 = (1, 19)
_LONGEST_REASON = 300
_ABANDONED_SECONDS = 3600


def fetch_environment(release: str) -> Environment:
    """Return the ONNX Runtime of a release such as ``"1.23"``, which is installed if it is missing.

    Raises:
        InvalidValueError: there is no wheel for this Python, the package index cannot be reached,
            or the cache cannot be written.
    """
    found = find_environment(release)
    if found is not None:
        return found
    number = _number(release)
    python = sys.version_info[:2]
    if number < _FIRST_RELEASES.get(python, (0, 0)):
        first = ".".join(map(str, _FIRST_RELEASES[python]))
        raise InvalidValueError(
            f"there is no wheel of it for Python {python[0]}.{python[1]}, which begin at {first}; "
            "run the checker with an older Python"
        )
    try:
        return _installed(release, number)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InvalidValueError(f"it cannot be kept in {cache_directory()} ({reason})") from error


def _installed(release: str, number: tuple[int, ...]) -> Environment:
    root = own_folder(cache_directory(), FOLDER, create=True)
    path, seal_path = entry_paths(release)
    numpy = "numpy" if number >= _FIRST_WITH_NUMPY_2 else "numpy<2"
    with _draft(root) as draft, show_work(f"fetching ONNX Runtime {release} into {root}"):
        _install(draft, (f"onnxruntime=={release}.*", numpy))
        version = _version_in(draft)
        # What is there has no seal that fits it. A rename of a folder replaces empty ones only.
        seal_path.unlink(missing_ok=True)
        shutil.rmtree(path, ignore_errors=True)
        os.replace(draft, path)  # noqa: PTH105 - the draft has this name if it succeeds
    Seal.of(path.name, sealed_files(path), note=version).write(seal_path)
    return Environment(version, path)


@contextmanager
def _draft(root: Path) -> Iterator[Path]:
    """Yield a folder to install into, which is deleted unless it is renamed."""
    for old in root.glob(f"{DRAFT_PREFIX}*"):  # those of killed runs
        if time.time() - old.stat().st_mtime > _ABANDONED_SECONDS:
            shutil.rmtree(old, ignore_errors=True)
    draft = Path(tempfile.mkdtemp(prefix=DRAFT_PREFIX, dir=root))
    try:
        yield draft
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _install(folder: Path, packages: tuple[str, ...]) -> None:
    """Install wheels, of which no code runs, without what they need for other purposes."""
    command = [*_installer(), "--target", str(folder), "--no-deps", "--only-binary", ":all:"]
    done = run_child([*command, *packages], seconds=None, stderr=STDOUT)
    if done.returncode:
        reason = " ".join(done.stdout.split())[-_LONGEST_REASON:]
        raise InvalidValueError(f"{command[0]} could not install it ({reason})")


def _installer() -> list[str]:
    uv = shutil.which("uv")
    if uv is not None:
        return [uv, "pip", "install", "--python", sys.executable]
    module = next((name for name in ("uv", "pip") if importlib.util.find_spec(name)), None)
    if module is None:
        raise InvalidValueError("neither uv nor pip is installed; run `python -m ensurepip`")
    chosen = ["--python", sys.executable] if module == "uv" else ["--no-compile"]
    command = ["pip", "install"] if module == "uv" else ["install"]
    return [sys.executable, "-m", module, *command, *chosen]


def _version_in(folder: Path) -> str:
    information = next(folder.glob("onnxruntime-*.dist-info"))
    return information.name.removeprefix("onnxruntime-").removesuffix(".dist-info")


def _number(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split("."))
