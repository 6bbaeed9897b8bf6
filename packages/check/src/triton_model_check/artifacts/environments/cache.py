"""Finished environments in the user's cache directory, each under the key of its lock file.

Beside each archive is its seal, which also has the folder of the requirements. The seal's
modification time is when the archive was last used. That of the archive never changes, because
another process may be packing it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.untrusted.cache_contract import Seal, own_folder
from triton_model_check.untrusted.cache_location import (
    CACHE_DIRECTORY_VARIABLE,
    cache_directory,
)

__all__ = ["ARCHIVE", "cached_archive", "entry_paths", "explained", "find_entry", "own_cache"]

_FOLDER, ARCHIVE, _SEAL = "environments", ".tar", ".json"


def entry_paths(name: str, suffix: str = ARCHIVE) -> tuple[Path, Path]:
    """Return the paths of an entry and of its seal."""
    directory = cache_directory() / _FOLDER
    return directory / f"{name}{suffix}", directory / f"{name}{suffix}{_SEAL}"


def cached_archive(key: str) -> Path | None:
    """Return the archive with this key, or ``None`` if it is missing, or was changed.

    Raises:
        InvalidValueError: the cache belongs to another user, or others may write it.
    """
    with explained():
        try:
            own_cache()
        except (FileNotFoundError, NotADirectoryError):
            return None
    return find_entry(key)


def own_cache(*, create: bool = False) -> None:
    """Check that only this user can write the cache, which is created if wanted."""
    own_folder(cache_directory(), _FOLDER, create=create, is_optional=False)


def find_entry(name: str, suffix: str = ARCHIVE) -> Path | None:
    """Return the path of an entry, or ``None`` if it is missing, or was changed."""
    path, seal = entry_paths(name, suffix)
    try:
        Seal.read(seal, name).use(seal, {suffix: path})
    except (OSError, ValueError):
        return None
    return path


@contextmanager
def explained() -> Iterator[None]:
    """Say of an error of a file how the cache can be used again."""
    try:
        yield
    except OSError as error:
        raise InvalidValueError(
            f"{error.filename or cache_directory() / _FOLDER}: the environment cannot be written "
            f"({(error.strerror or str(error)).lower()}); free disk space, or set "
            f"{CACHE_DIRECTORY_VARIABLE} to another folder"
        ) from error
