"""Where the ONNX Runtime of a release is: installed beside the checker, or in the cache.

An environment of the cache is a folder of packages, under the name of the release and of the Python
that they are for. Beside it is its seal, with the digests of the compiled code and of the packages'
own lists of digests.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.util import find_spec
from pathlib import Path

from constructs_triton_core.untrusted.cache_contract import Seal, own_folder
from triton_model_check.onnx_runtimes.asking import Asking, minor_release
from triton_model_check.untrusted.cache_location import cache_directory

__all__ = [
    "FOLDER",
    "Environment",
    "entry_paths",
    "environment_at_start",
    "find_environment",
    "runtime_identity",
    "sealed_files",
]

FOLDER = "onnxruntime"
"""The folder of the environments in the cache."""
_DISTRIBUTIONS = ("onnxruntime", "onnxruntime_gpu", "onnxruntime_openvino")
_SEALED = (".so", ".pyd", ".dylib", "RECORD")


@dataclass(frozen=True, slots=True)
class Environment:
    """Where an ONNX Runtime is imported from.

    ``path`` is the folder of its packages; ``None`` means those of this Python.
    """

    version: str
    path: Path | None = None


def find_environment(release: str) -> Environment | None:
    """Return the ONNX Runtime of a release such as ``"1.23"``, or ``None`` without one."""
    installed = _installed_version()
    if installed and minor_release(installed) == release:
        return Environment(installed)
    return _cached(release, cache_directory())


@cache  # many models of a repository have the same image
def environment_at_start(release: str) -> Environment | None:
    """Return the environment that :func:`find_environment` has found in its first call."""
    return find_environment(release)


def runtime_identity(release: str, asking: Asking) -> str:
    """Return what identifies the runtime that would be asked without a fetch; "" for none.

    What is kept of a check depends on it.
    """
    environment = None if asking == "never" else environment_at_start(release)
    return "" if environment is None else f"{environment.version} {environment.path}"


@cache
def _installed_version() -> str:
    """Return the version of the installed package, or "" without one.

    ``importlib.metadata`` would take longer than the check of a small repository.
    """
    spec = find_spec("onnxruntime")
    if spec is None or spec.origin is None:
        return ""
    found = Path(spec.origin).parents[1].glob("onnxruntime*-*.dist-info")
    names = (each.name.removesuffix(".dist-info").partition("-") for each in found)
    return next((version for name, _, version in names if name in _DISTRIBUTIONS), "")


def _cached(release: str, root: Path) -> Environment | None:
    path, seal_path = entry_paths(release)
    try:
        own_folder(root, FOLDER)
        seal = Seal.read(seal_path, path.name).use(seal_path, sealed_files(path))
    except (OSError, ValueError):
        return None
    return Environment(str(seal.note), path)


def entry_paths(release: str) -> tuple[Path, Path]:
    """Return the paths of an environment and of its seal."""
    python = EXTENSION_SUFFIXES[0].strip(".").removesuffix(".so").removesuffix(".pyd")
    path = cache_directory() / FOLDER / f"{release}-{python}"
    return path, path.with_name(f"{path.name}.json")


def sealed_files(folder: Path) -> Mapping[str, Path]:
    """Return the compiled code of an environment and the lists of its files, by their paths in it.

    Raises:
        OSError: there is no such folder.
    """
    if not folder.is_dir():
        raise FileNotFoundError(folder)
    found = {}
    for directory, _, names in os.walk(folder):
        for name in names:
            path = Path(directory, name)
            if name.endswith(_SEALED) and not path.is_symlink():
                found[str(path.relative_to(folder))] = path
    return found
