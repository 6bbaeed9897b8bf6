"""Finished environments in the user's cache directory, each under the key of its lock file."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from constructs_triton.errors import InvalidValueError
from constructs_triton.model_repository.cache_location import (
    CACHE_DIRECTORY_VARIABLE,
    cache_bytes,
    cache_directory,
)
from constructs_triton.model_repository.temporary_folders import partial_folder, remove_abandoned

__all__ = ["cached_archive", "folder_of", "local_lock_path", "writing"]

_ARCHIVE, _FOLDER, _LOCK = ".tar", ".folder", ".lock"


def _directory() -> Path:
    return cache_directory() / "environments"


def cached_archive(key: str) -> Path | None:
    """Return the archive with this key, or ``None``."""
    path = _directory() / f"{key}{_ARCHIVE}"
    if not path.is_file():
        return None
    with suppress(OSError):
        # Its time says when the archive was last used. That of the archive itself must not change, because
        # another process may be packing it.
        os.utime(path.with_suffix(_FOLDER))
    return path


def folder_of(key: str) -> Path:
    """Return the folder that relative paths in the requirements start at; the current one if unknown."""
    with suppress(OSError):
        folder = Path((_directory() / f"{key}{_FOLDER}").read_text(encoding="utf-8"))
        if folder.is_dir():
            return folder
    return Path.cwd()


def local_lock_path(key: str, target_key: str) -> Path:
    """Return the path of the lock file for a server on this machine."""
    return _directory() / f"{key[:32]}-{target_key}{_LOCK}"


@contextmanager
def writing(key: str, folder: Path) -> Iterator[tuple[Path, Path]]:
    """Yield a folder to work in, and the path in it of the archive, which is kept if no error is raised.

    Args:
        key: Key of the archive.
        folder: Folder that relative paths in the requirements start at.

    Raises:
        InvalidValueError: the cache cannot be written.
    """
    directory = _directory()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        remove_abandoned(directory)
        with partial_folder(directory) as scratch:
            draft = scratch / f"archive{_ARCHIVE}"
            yield scratch, draft
            (directory / f"{key}{_FOLDER}").write_text(str(folder), encoding="utf-8")
            draft.replace(directory / f"{key}{_ARCHIVE}")
    except OSError as error:
        raise InvalidValueError(
            f"{error.filename or directory}: the environment cannot be written "
            f"({(error.strerror or str(error)).lower()}); free disk space, or set {CACHE_DIRECTORY_VARIABLE} "
            "to another folder"
        ) from error
    _delete_oldest(directory, key)


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
            path.with_suffix(_FOLDER).unlink(missing_ok=True)


def _last_used(archive: Path) -> int:
    folder = archive.with_suffix(_FOLDER)
    return (folder if folder.exists() else archive).stat().st_mtime_ns
