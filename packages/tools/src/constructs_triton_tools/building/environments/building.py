"""Builds the archive of an environment, once for each lock file."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from constructs_triton_tools.building.environments.archive import arrange, site_packages, write_tar
from constructs_triton_tools.building.environments.cache_writing import writing
from constructs_triton_tools.building.environments.pinned_lines import check_exported, check_pins
from constructs_triton_tools.building.environments.uv import export_uv_lock, install, resolve
from triton_model_check.artifacts.environments.cache import cached_archive
from triton_model_check.artifacts.environments.line_checks import check_lines
from triton_model_check.artifacts.environments.lock import (
    EnvironmentLock,
    lock_path,
    read_lock_file,
)
from triton_model_check.artifacts.environments.requirements import Requirements
from triton_model_check.artifacts.environments.target import EnvironmentTarget


@dataclass(frozen=True, slots=True)
class BuiltEnvironment:
    """A finished environment.

    Args:
        archive: The tar file in the cache.
        lock: What it contains.
        lock_path: The lock file beside the requirements.
        is_resolved: Whether versions were chosen, because the lock file was missing or old.
        is_new: Whether the archive was not in the cache.
    """

    archive: Path
    lock: EnvironmentLock
    lock_path: Path
    is_resolved: bool
    is_new: bool


def build(
    requirements: Requirements,
    target: EnvironmentTarget,
    *,
    options: Sequence[str] | None = None,
    update: bool = False,
) -> BuiltEnvironment:
    """Build an environment, and write the lock file beside the requirements if they have changed.

    With a current lock file and the archive in the cache, uv is not called and nothing is
    downloaded.

    ``options`` are those of uv about indexes. Default: those of the lock file. With ``update``, the
    newest versions are chosen, and not those of the lock file.
    """
    path = lock_path(requirements.path, target)
    lock, is_resolved = update_lock(requirements, target, path, options=options, update=update)
    found = cached_archive(lock.key(target))
    archive = found or build_locked(lock, target, requirements.folder, str(requirements.path))
    return BuiltEnvironment(archive, lock, path, is_resolved, found is None)


def update_lock(
    requirements: Requirements,
    target: EnvironmentTarget,
    path: Path,
    *,
    options: Sequence[str] | None = None,
    update: bool = False,
    preferred: str = "",
) -> tuple[EnvironmentLock, bool]:
    """Return the lock file at ``path``, and whether it had to be written.

    Versions of an old lock file, or of ``preferred``, are kept where they still fit, without
    ``update``.
    """
    old = read_lock_file(path)
    kept = () if old is None else old.options
    chosen = kept if options is None else tuple(options)
    if old is not None and not update and old.is_for(requirements, target, chosen):
        return old, False

    if update:
        preferred = ""
    elif old is not None:
        preferred = old.pins
    lines = _lines(requirements, target)
    pins = resolve(
        lines,
        requirements.constraints,
        target,
        options=chosen,
        folder=requirements.folder,
        place=str(requirements.path),
        preferred=preferred,
    )
    lock = EnvironmentLock(
        python=target.python,
        platform=target.platform,
        requirements=lines,
        constraints=requirements.constraints,
        options=chosen,
        extras=requirements.extras,
        digest=requirements.digest,
        pins=pins,
    )
    lock.write(path)
    return lock, True


def _lines(requirements: Requirements, target: EnvironmentTarget) -> tuple[str, ...]:
    """Return the lines to resolve. Those of another person's archive were not checked before."""
    place = str(requirements.path)
    if requirements.is_uv_lock:
        exported = export_uv_lock(requirements, target)
        check_exported(place, exported)
        return exported
    check_lines(place, [*requirements.lines, *requirements.constraints])
    return requirements.lines


def build_locked(
    lock: EnvironmentLock, target: EnvironmentTarget, folder: Path, place: str
) -> Path:
    """Download the packages of a lock file, and return their archive in the cache.

    ``folder`` is where relative paths in the requirements start, and ``place`` their file in
    messages.
    """
    check_pins(place, lock.pins)
    check_lines(place, lock.requirements)  # their options about indexes apply
    key = lock.key(target)
    with writing(key, folder) as (scratch, draft):
        environment = scratch / "environment"
        site = site_packages(environment, target)
        site.parent.mkdir(parents=True)
        install(lock, site, target, folder, place)
        links = arrange(environment, lock, target)
        write_tar(environment, links, draft)
        shutil.rmtree(environment)
    found = cached_archive(key)
    assert found is not None
    return found
