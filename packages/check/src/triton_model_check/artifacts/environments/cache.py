"""Finished environments in the user's cache directory, each under the key of its lock file.

Beside each archive is its seal, which also has the folder of the requirements. The seal's modification time
is when the archive was last used. That of the archive never changes, because another process may be packing
it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.untrusted.cache_contract import Seal, own_folder, set_time_back
from triton_model_check.model_repository.cache_location import (
    CACHE_DIRECTORY_VARIABLE,
    cache_bytes,
    cache_directory,
)
from triton_model_check.model_repository.temporary_folders import partial_folder, remove_abandoned

__all__ = ["cached_archive", "folder_of", "local_lock", "writing"]

_FOLDER, _ARCHIVE, _SEAL, _LOCK = "environments", ".tar", ".json", ".lock"


def _directory() -> Path:
    return cache_directory() / _FOLDER


def _paths(name: str, suffix: str) -> tuple[Path, Path]:
    """Return the paths of an entry and of its seal."""
    path = _directory() / f"{name}{suffix}"
    return path, _directory() / f"{name}{suffix}{_SEAL}"


def cached_archive(key: str) -> Path | None:
    """Return the archive with this key, or ``None`` if it is missing, or was changed.

    Raises:
        InvalidValueError: the cache belongs to another user, or others may write it.
    """
    with _explained():
        try:
            own_folder(cache_directory(), _FOLDER, is_optional=False)
        except (FileNotFoundError, NotADirectoryError):
            return None
    return _find(key, _ARCHIVE)


def _find(name: str, suffix: str) -> Path | None:
    path, seal = _paths(name, suffix)
    try:
        Seal.read(seal, name).use(seal, {suffix: path})
    except (OSError, ValueError):
        return None
    return path


def folder_of(key: str) -> Path:
    """Return the folder that relative paths in the requirements start at; the current one if unknown."""
    with suppress(OSError, ValueError):
        folder = Path(str(Seal.read(_paths(key, _ARCHIVE)[1], key).note))
        if folder.is_dir():
            return folder
    return Path.cwd()


@contextmanager
def local_lock(key: str, target_key: str) -> Iterator[Path]:
    """Yield the path of the lock file for a server on this machine. One that was changed is deleted first.

    Raises:
        InvalidValueError: the cache cannot be written.
    """
    name = f"{key[:32]}-{target_key}"
    path, seal = _paths(name, _LOCK)
    with _explained():
        own_folder(cache_directory(), _FOLDER, create=True, is_optional=False)
        if _find(name, _LOCK) is None:
            path.unlink(missing_ok=True)
    yield path
    with _explained():
        Seal.of(name, {_LOCK: path}).write(seal)


@contextmanager
def writing(key: str, folder: Path) -> Iterator[tuple[Path, Path]]:
    """Yield a folder to work in, and the path in it of the archive, which is kept if no error is raised.

    Args:
        key: Key of the archive.
        folder: Folder that relative paths in the requirements start at.

    Raises:
        InvalidValueError: the cache cannot be written.
    """
    path, record = _paths(key, _ARCHIVE)
    with _explained():
        own_folder(cache_directory(), _FOLDER, create=True, is_optional=False)
        remove_abandoned(path.parent)
        with partial_folder(path.parent) as scratch:
            draft = scratch / f"archive{_ARCHIVE}"
            yield scratch, draft
            set_time_back(draft)
            seal = Seal.of(key, {_ARCHIVE: draft}, note=str(folder))
            draft.replace(path)
            seal.moved({_ARCHIVE: path}, seal.note).write(record)
    _delete_oldest(path.parent, key)


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InvalidValueError(
            f"{error.filename or _directory()}: the environment cannot be written "
            f"({(error.strerror or str(error)).lower()}); free disk space, or set {CACHE_DIRECTORY_VARIABLE} "
            "to another folder"
        ) from error


def _delete_oldest(directory: Path, kept: str) -> None:
    """Delete archives beyond the limit of the cache, except for the one that was just written."""
    sizes = {path: path.stat().st_size for path in directory.glob(f"*{_ARCHIVE}")}
    left = sum(sizes.values()) - cache_bytes()
    for path in sorted(sizes, key=_last_used):
        if left <= 0:
            return
        if path.stem != kept:
            left -= sizes[path]
            path.unlink(missing_ok=True)
            _paths(path.stem, _ARCHIVE)[1].unlink(missing_ok=True)


def _last_used(archive: Path) -> int:
    """Return when an archive was last used; 0 if it has no seal, and so cannot be used."""
    seal = _paths(archive.stem, _ARCHIVE)[1]
    return seal.stat().st_mtime_ns if seal.exists() else 0
