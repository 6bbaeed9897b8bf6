"""Fetches the ONNX Runtime of a release by name into an environment of the cache."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.processes.wheel_installation import install_wheels, sole_installation
from constructs_triton_core.untrusted.cache_contract import Seal, own_folder
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
    """Return the environment of a release, which is installed if it is not kept."""
    root = own_folder(cache_directory(), FOLDER, create=True)
    path, seal_path = entry_paths(release)
    numpy = "numpy" if number >= _FIRST_WITH_NUMPY_2 else "numpy<2"
    with sole_installation(root, path.name, f"ONNX Runtime {release}") as draft:
        found = find_environment(release)  # the command that this one has waited for fetched it
        if found is not None:
            return found
        with show_work(f"fetching ONNX Runtime {release} into {root}"):
            install_wheels(draft, (f"onnxruntime=={release}.*", numpy))
        version = _version_in(draft)
        # What is there has no seal that fits it. A rename of a folder replaces empty ones only.
        seal_path.unlink(missing_ok=True)
        shutil.rmtree(path, ignore_errors=True)
        os.replace(draft, path)  # noqa: PTH105 - the draft has this name if it succeeds
        Seal.of(path.name, sealed_files(path), note=version).write(seal_path)
    return Environment(version, path)


def _version_in(folder: Path) -> str:
    information = next(folder.glob("onnxruntime-*.dist-info"))
    return information.name.removeprefix("onnxruntime-").removesuffix(".dist-info")


def _number(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in release.split("."))
