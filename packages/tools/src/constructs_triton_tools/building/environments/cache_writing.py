"""Writes finished environments into the cache that ``artifacts.environments.cache`` reads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from constructs_triton_core.untrusted.cache_contract import Seal, set_time_back
from constructs_triton_core.untrusted.drafts import partial_folder
from triton_model_check.artifacts.environments.cache import (
    ARCHIVE,
    entry_paths,
    explained,
    find_entry,
    own_cache,
)
from triton_model_check.untrusted.cache_location import cache_bytes

_LOCK = ".lock"


def folder_of(key: str) -> Path:
    """Return the folder that relative paths in the requirements start at;
    the current one if unknown.
    """
    with suppress(OSError, ValueError):
        folder = Path(str(Seal.read(entry_paths(key)[1], key).note))
        if folder.is_dir():
            return folder
    return Path.cwd()


@contextmanager
def local_lock(key: str, target_key: str) -> Iterator[Path]:
    """Yield the path of the lock file for a server on this machine. One that was changed is deleted
    first.

    Raises:
        InvalidValueError: the cache cannot be written.
    """
    name = f"{key[:32]}-{target_key}"
    path, seal = entry_paths(name, _LOCK)
    with explained():
        own_cache(create=True)
        if find_entry(name, _LOCK) is None:
            path.unlink(missing_ok=True)
    yield path
    with explained():
        Seal.of(name, {_LOCK: path}).write(seal)


@contextmanager
def writing(key: str, folder: Path) -> Iterator[tuple[Path, Path]]:
    """Yield a folder to work in, and the path in it of the archive, which is kept if no error is
    raised.

    Args:
        key: Key of the archive.
        folder: Folder that relative paths in the requirements start at.

    Raises:
        InvalidValueError: the cache cannot be written.
    """
    path, record = entry_paths(key)
    with explained():
        own_cache(create=True)
        with partial_folder(path.parent) as scratch:
            draft = scratch / f"archive{ARCHIVE}"
            yield scratch, draft
            set_time_back(draft)
            seal = Seal.of(key, {ARCHIVE: draft}, note=str(folder))
            draft.replace(path)
            seal.moved({ARCHIVE: path}, seal.note).write(record)
    _delete_oldest(path.parent, key)


def _delete_oldest(directory: Path, kept: str) -> None:
    """Delete archives beyond the limit of the cache, except for the one that was just written."""
    sizes = {path: path.stat().st_size for path in directory.glob(f"*{ARCHIVE}")}
    left = sum(sizes.values()) - cache_bytes()
    for path in sorted(sizes, key=_last_used):
        if left <= 0:
            return
        if path.stem != kept:
            left -= sizes[path]
            path.unlink(missing_ok=True)
            entry_paths(path.stem)[1].unlink(missing_ok=True)


def _last_used(archive: Path) -> int:
    """Return when an archive was last used; 0 if it has no seal, and so cannot be used."""
    seal = entry_paths(archive.stem)[1]
    return seal.stat().st_mtime_ns if seal.exists() else 0
