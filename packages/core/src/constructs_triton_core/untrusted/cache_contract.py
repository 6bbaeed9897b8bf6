"""What all caches on disk have in common, so that a damaged entry or one of another user is never
used.

- A cache is a folder of the user with mode 0700. If it belongs to another user, or others may write
  it, it is not used.
- A file appears in a cache only when it is complete.
- A small value is one file, which begins with the digest of the rest.
- Larger files have a seal beside them: a small value with the digest and the state of each file. A
  file of at most 16 KiB is compared by its content at each use. A larger one is read only if its
  inode, size, modification or change time differs, or if it was read within two seconds of its
  modification: the clock of a file system may have this resolution.
- An entry that does not match counts as missing.

Standard library only: it is below everything that has a cache.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from constructs_triton_core.untrusted.regular_files import open_regular, read_regular
from constructs_triton_core.untrusted.written_files import write_whole

__all__ = [
    "SMALL_BYTES",
    "Seal",
    "is_own",
    "is_settled",
    "own_folder",
    "read_value",
    "set_time_back",
    "sha256_of",
    "write_value",
]

SMALL_BYTES = 16 << 10
"""A file up to this size is compared by its content at each use."""
_SETTLED_NS = 2_000_000_000
"""A file that was read sooner after its modification may have changed again
without another time.
"""

FileDigest = Callable[[Path], str]

_FORMAT = b"constructs-triton cache 1 "
_MOST_VALUE_BYTES = 256 << 20
_OLD_NS = 315_532_800 * 10**9  # 1980-01-01
_WRITABLE = stat.S_IWGRP | stat.S_IWOTH
_warned: set[Path] = set()


# --- folders --------------------------------------------------------------------------------------


def own_folder(
    root: Path, name: str = "", *, create: bool = False, is_optional: bool = True
) -> Path:
    """Return the folder of a cache, if it belongs to this user alone.

    Args:
        root: The folder of all caches.
        name: Name of the folder in it. Default: the root itself.
        create: Whether to create them.
        is_optional: Whether the command goes on without this cache, so that a warning is printed,
            once.

    Raises:
        OSError: it does not exist, cannot be created, belongs to another user, or others may write
            it.
    """
    for each in (root, root / name) if name else (root,):
        if create:
            each.mkdir(mode=0o700, parents=each is root, exist_ok=True)
        if problem := _problem(os.stat(each)):  # noqa: PTH116 - as fast as possible, for each archive
            if is_optional:
                _warn(each, problem)
            raise PermissionError(errno.EPERM, problem, str(each))
    return root / name


def _warn(folder: Path, problem: str) -> None:
    if folder not in _warned:
        from constructs_triton_core.untrusted.terminal import print_note

        _warned.add(folder)
        print_note(
            f"warning: {folder}: {problem}, so this cache is not used; set "
            "CONSTRUCTS_TRITON_CACHE_DIR to a folder that only you can write"
        )


def is_own(status: os.stat_result) -> bool:
    """Whether a file or folder belongs to this user or to root, and no other user may write it."""
    return not _problem(status)


def _problem(status: os.stat_result) -> str:
    if not hasattr(os, "geteuid"):  # Windows
        return ""
    if status.st_uid not in (os.geteuid(), 0):
        return f"belongs to another user ({status.st_uid})"
    # Where each user has a group of the same number, files are writable by that group by default.
    is_shared = status.st_mode & stat.S_IWGRP and status.st_gid != status.st_uid
    return "other users may write it" if is_shared or status.st_mode & stat.S_IWOTH else ""


# --- small values ---------------------------------------------------------------------------------


def write_value(path: Path, value: Any) -> None:
    """Write a JSON value with its digest; the file appears when it is complete.

    Raises:
        OSError: it cannot be written.
    """
    if path.is_symlink():  # the entry is damaged, and only this user can write in a cache
        path.unlink()
    content = json.dumps(value).encode()
    write_whole(path, b"%b%b\n%b" % (_FORMAT, _digest(content), content), is_private=True)


def read_value(path: Path) -> Any:
    """Read what :func:`write_value` has written.

    Raises:
        OSError: it does not exist, or cannot be read.
        ValueError: it is damaged, or was written by another version or another user.
    """
    if not is_own(path.lstat()):
        raise ValueError(f"{path}: belongs to another user")
    first, _, content = read_regular(path, _MOST_VALUE_BYTES).partition(b"\n")
    if first != _FORMAT + _digest(content):
        raise ValueError(f"{path}: is damaged")
    return json.loads(content)


def _digest(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()


# --- larger files ---------------------------------------------------------------------------------


def is_settled(changed_ns: int, read_ns: int) -> bool:
    """Whether a file that changed at one time and was read at another would
    show a change after that.
    """
    return changed_ns + _SETTLED_NS < read_ns


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal digits."""
    with open_regular(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def set_time_back(path: Path) -> None:
    """Set the modification time of a complete file to 1980,
    so that every later write shows in it.
    """
    os.utime(path, ns=(_OLD_NS, _OLD_NS))


@dataclass(frozen=True, slots=True)
class _SealedFile:
    """Inode, size and times of a file, when it was read last, and its digest."""

    state: tuple[int, int, int, int]
    read_ns: int
    digest: str

    @classmethod
    def of(cls, path: Path, digest_of: FileDigest) -> _SealedFile:
        read_ns = time.time_ns()
        state = _state(path)
        return cls(state, read_ns, digest_of(path))

    def checked(self, path: Path, digest_of: FileDigest, *, is_inside: bool) -> _SealedFile:
        """Return what describes the same content now."""
        if is_inside and not is_own(path.lstat()):
            raise ValueError(f"{path}: is not a file of this user alone")
        state = _state(path)
        _, size, mtime_ns, _ = state
        if state == self.state and size > SMALL_BYTES and is_settled(mtime_ns, self.read_ns):
            return self
        found = _SealedFile.of(path, digest_of) if size == self.state[1] else None
        if found is None or found.digest != self.digest:
            raise ValueError(f"{path}: is damaged")
        return found if size > SMALL_BYTES else replace(self, state=state)


def _state(path: Path) -> tuple[int, int, int, int]:
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode):
        raise ValueError(f"{path}: is not a file")
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


@dataclass(frozen=True, slots=True)
class Seal:
    """The digests of the files of an entry by name, the key of the entry,
    and what the cache notes of it.
    """

    key: str
    note: Any
    files: Mapping[str, _SealedFile]

    @classmethod
    def of(
        cls,
        key: str,
        paths: Mapping[str, Path],
        *,
        note: Any = None,
        digest_of: FileDigest = sha256_of,
    ) -> Seal:
        """Read the files of a new entry, which no other user may write from now on.

        Raises:
            OSError: a file cannot be read.
        """
        for path in paths.values():
            mode = path.stat().st_mode
            if mode & _WRITABLE:
                path.chmod(mode & 0o777 & ~_WRITABLE)
        return cls(
            key, note, {name: _SealedFile.of(path, digest_of) for name, path in paths.items()}
        )

    @classmethod
    def read(cls, path: Path, key: str) -> Seal:
        """Read the seal of an entry.

        Raises:
            OSError: it does not exist, or cannot be read.
            ValueError: it is damaged, or belongs to another entry, version or user.
        """
        try:
            found_key, note, rows = read_value(path)
            files = {
                name: _SealedFile(tuple(state), *others) for name, (state, *others) in rows.items()
            }
        except (TypeError, AttributeError) as error:
            raise ValueError(f"{path}: is not a seal") from error
        if found_key != key:
            raise ValueError(f"{path}: is the seal of another entry")
        return cls(key, note, files)

    def write(self, path: Path) -> None:
        """Write the seal.

        Raises:
            OSError: it cannot be written.
        """
        rows = {name: (each.state, each.read_ns, each.digest) for name, each in self.files.items()}
        write_value(path, [self.key, self.note, rows])

    def checked(
        self,
        paths: Mapping[str, Path],
        *,
        digest_of: FileDigest = sha256_of,
        outside: Collection[str] = (),
    ) -> Seal:
        """Return the seal with the present states of the files.

        Args:
            paths: The files by name.
            digest_of: The digest that the seal has.
            outside: Names of the files that are not in the cache, so that others may own and write
                them.

        Raises:
            OSError: a file does not exist, or cannot be read.
            ValueError: a file has other content, or belongs to another user.
        """
        if not paths.keys() <= self.files.keys():
            raise ValueError("a file has no seal")
        files = {
            name: self.files[name].checked(path, digest_of, is_inside=name not in outside)
            for name, path in paths.items()
        }
        return replace(self, files={**self.files, **files})

    def moved(self, paths: Mapping[str, Path], note: Any) -> Seal:
        """Return the seal of files that this program has renamed, linked or copied, and has not
        read again.

        Raises:
            OSError: a file does not exist.
        """
        files = {
            name: replace(self.files[name], state=_state(path)) for name, path in paths.items()
        }
        return replace(self, files=files, note=note)

    def use(
        self,
        seal: Path,
        paths: Mapping[str, Path],
        *,
        digest_of: FileDigest = sha256_of,
        outside: Collection[str] = (),
    ) -> Seal:
        """Check the files as :meth:`checked`, and note at ``seal`` that the entry was used now.

        Raises:
            OSError: a file does not exist, or cannot be read.
            ValueError: a file has other content, or belongs to another user.
        """
        found = self.checked(paths, digest_of=digest_of, outside=outside)
        with suppress(OSError):  # a cache that cannot be written
            if found == self:
                os.utime(seal)
            else:
                found.write(seal)
        return found
