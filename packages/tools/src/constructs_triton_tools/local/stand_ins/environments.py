"""Builds Python environments again for the server on this machine, which has another Python than
the image.

The archive of an environment contains its lock file, and with it the requirements. Versions of the
image's environment are kept where they exist for the Python of the server.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable, Iterator
from pathlib import Path

from constructs_triton_core.errors import LocalEndpointError, ModelConfigError
from constructs_triton_core.processes.children import run_child
from constructs_triton_core.untrusted.regular_files import read_regular
from constructs_triton_tools.building.environments.archive import lock_of_archive
from constructs_triton_tools.building.environments.building import build_locked, update_lock
from constructs_triton_tools.building.environments.cache_writing import folder_of, local_lock
from triton_model_check.artifacts.environments.cache import cached_archive
from triton_model_check.artifacts.environments.lock import EnvironmentLock
from triton_model_check.artifacts.environments.requirements import Requirements
from triton_model_check.artifacts.environments.target import EnvironmentTarget, numpy_constraint
from triton_model_check.model_config.text import parse_model_config
from triton_model_check.model_repository.uncompressed.copying import copy_file

_ENVIRONMENT = "EXECUTION_ENV_PATH"
_MODEL_DIRECTORY = "$$TRITON_MODEL_DIRECTORY"
_MOST_LISTED = 10
_PROBE_SECONDS = 60.0
#: The newest C library that uv has a name for.
_NEWEST_GLIBC = 40
# The folder of the interpreter, and that of the packages if these are not the interpreter's own.
_PROBE = """
import json, sys, sysconfig
packages = sysconfig.get_paths()["purelib"] if sys.prefix != sys.base_prefix else ""
folders = [sys.base_prefix + "/bin", sysconfig.get_config_var("BINDIR")]
print(json.dumps([sys.version_info[:2], folders, packages]))
"""


def replace_environments(repository: Path, python: Path, report: Callable[[str], None]) -> None:
    """Replace the environments of unpacked models that ``constructs-triton
    env build`` has built.
    """
    found = {path: lock_of_archive(path) for path in sorted(set(_archives(repository)))}
    locks = {path: lock for path, lock in found.items() if lock is not None}
    if not locks:
        return
    target = _target(python)
    for path, lock in locks.items():
        name = str(path.relative_to(repository.resolve()))
        archive, local = _build(lock, target, name, report)
        path.unlink()
        copy_file(archive, path)  # a link would change the times of a file that may be packed now
        report(
            f"{name}: built for {target.description}, in place of Python {lock.python} of the image"
            f"{_changed(lock, local)}"
        )


def _archives(repository: Path) -> Iterator[Path]:
    """Yield the files of environments in the repository, with their real paths."""
    for path in [*repository.glob("config.pbtxt"), *repository.glob("*/config.pbtxt")]:
        try:
            parameters = parse_model_config(read_regular(path), str(path)).parameters
        except (OSError, ModelConfigError):
            continue
        value = parameters[_ENVIRONMENT].string_value if _ENVIRONMENT in parameters else ""
        archive = Path(value.replace(_MODEL_DIRECTORY, str(path.parent))).resolve()
        is_inside = value.startswith(_MODEL_DIRECTORY) and archive.is_relative_to(
            repository.resolve()
        )
        if is_inside and archive.is_file():
            yield archive


def _target(python: Path) -> EnvironmentTarget:
    """Ask an interpreter for its version and packages.

    Raises:
        LocalEndpointError: it does not answer.
    """
    try:
        done = run_child([python, "-I", "-c", _PROBE], seconds=_PROBE_SECONDS)
        version, folders, packages = json.loads(done.stdout)
    except (OSError, ValueError) as error:
        raise LocalEndpointError(
            f"{python}: is not a working Python interpreter; set --python to another one"
        ) from error
    homes = (folder for folder in folders if folder and Path(folder, "python3").exists())
    return server_target((version[0], version[1]), next(homes, folders[0]), packages)


def server_target(python: tuple[int, int], home: str, packages: str) -> EnvironmentTarget:
    """Return the target of a server on this machine, whose stub cannot use NumPy 2.

    Args:
        python: Version of Python that the stub embeds.
        home: Folder of the interpreter that has this version.
        packages: Folder of the packages of the models' Python.
    """
    glibc = min(int((platform.libc_ver()[1] or "2.35").split(".")[1]), _NEWEST_GLIBC)
    minor = "{}.{}".format(*python)
    return EnvironmentTarget(
        python=minor,
        platform=f"{platform.machine()}-manylinux_2_{glibc}",
        numpy_constraint=numpy_constraint(minor),
        must_keep_numpy=True,
        home=home,
        more_packages=packages,
    )


def _build(
    lock: EnvironmentLock, target: EnvironmentTarget, name: str, report: Callable[[str], None]
) -> tuple[Path, EnvironmentLock]:
    key = lock.key(EnvironmentTarget(lock.python, lock.platform, "", must_keep_numpy=False))
    folder = folder_of(key)
    requirements = Requirements(
        Path(name), lock.requirements, lock.constraints, lock.digest, base=folder
    )
    place = hashlib.sha256(f"{target}".encode()).hexdigest()[:16]
    with local_lock(key, place) as path:
        local, _ = update_lock(
            requirements, target, path, options=lock.options, preferred=lock.pins
        )
    archive = cached_archive(local.key(target))
    if archive is None:
        report(f"{name}: building the environment for {target.description}")
        archive = build_locked(local, target, folder, name)
    return archive, local


def _changed(image: EnvironmentLock, local: EnvironmentLock) -> str:
    """Return the packages whose versions differ from those of the image."""
    before = image.versions
    now = local.versions
    differing = [
        f"{name} {now.get(name, 'none')} instead of {version}"
        for name, version in before.items()
        if now.get(name) != version
    ]
    differing += [f"{name} {now[name]} in addition" for name in sorted(now.keys() - before.keys())]
    if not differing:
        return ", with the same versions"
    more = "" if len(differing) <= _MOST_LISTED else f" and {len(differing) - _MOST_LISTED} more"
    return f"; {', '.join(differing[:_MOST_LISTED])}{more}"
