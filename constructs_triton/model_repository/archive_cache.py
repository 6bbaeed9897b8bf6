"""Keeps finished archives by the digest of their content, so nothing is compressed twice.

Beside each archive is a small record of its inode, size and times. Archives are hard-linked out of the
cache, so another program may write into them. An archive that no longer matches its record is not used. If
only its ctime differs, its content is read: deleting a link changes the ctime, but so does a program that
writes into the archive and sets its modification time back.

The record's own modification time is when the archive was last used. When the cache exceeds its limit, the
least recently used archives are deleted.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from constructs_triton.errors import ArchiveError
from constructs_triton.model_repository.archive_inspection import inspect_archive
from constructs_triton.model_repository.partial_folder import partial_folder, remove_abandoned

__all__ = ["ArchiveCache", "ArchiveKey"]

_SMALL = 100  # an archive is small below the limit divided by this
_EVICTION_SECONDS = 10
_FORMAT = 1  # increase it when the same members give other bytes


@dataclass(frozen=True, slots=True)
class ArchiveKey:
    """What determines the bytes of an archive."""

    digest: str
    unpacked_size_bytes: int
    compression_level: int

    @property
    def folder(self) -> str:
        """The folder of all keys that differ only in their digest."""
        return f"{self.unpacked_size_bytes}-{self.compression_level}-{_FORMAT}"


class ArchiveCache:
    """The archives below ``directory``, at most ``max_bytes`` in total."""

    def __init__(self, directory: Path, max_bytes: int) -> None:
        self._directory = directory / "archives"
        self._max_bytes = max_bytes

    def may_contain(self, unpacked_size_bytes: int, compression_level: int) -> bool:
        """Whether the cache may contain an archive of this size and level. Needs no digest."""
        return (self._directory / ArchiveKey("", unpacked_size_bytes, compression_level).folder).is_dir()

    def place(self, key: ArchiveKey, destination: Path) -> bool:
        """Put the archive of ``key`` at ``destination``; return whether the cache contains it.

        It is a hard link where possible, else a copy.
        """
        archive, record = self._paths(key)
        try:
            if not _is_unchanged(key, archive, _Record.read(record)):
                return False
            with partial_folder(destination.parent) as folder:
                _link_or_copy(archive, folder / archive.name)
                (folder / archive.name).replace(destination)
            _Record.of(archive, destination).write(record)
        except (OSError, ValueError):
            return False
        return True

    def is_placed(self, key: ArchiveKey, destination: Path) -> bool:
        """Whether ``destination`` already is the archive of ``key`` that this cache placed there."""
        archive, record = self._paths(key)
        try:
            known, found = _Record.read(record), _Record.of(archive, destination)
            if known.copy != found.copy or not _is_unchanged(key, archive, known):
                return False
            found.write(record)
        except (OSError, ValueError):
            return False
        return True

    def add(self, key: ArchiveKey, source: Path) -> None:
        """Keep the archive at ``source``. A cache that cannot be written keeps nothing; this is no error."""
        if source.stat().st_size > self._max_bytes:
            return
        archive, record = self._paths(key)
        with suppress(OSError):
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            archive.parent.mkdir(exist_ok=True)
            remove_abandoned(self._directory)
            with partial_folder(self._directory) as folder:
                _link_or_copy(source, folder / archive.name)
                # In this order: a record without an archive is detected, the opposite is not.
                _Record.of(folder / archive.name, source).write(record)
                (folder / archive.name).replace(archive)
            _Record.of(archive, source).write(record)  # renaming has changed the ctime
            if source.stat().st_size * _SMALL >= self._max_bytes or self._eviction_is_due():
                self._evict(keep=record)

    def _eviction_is_due(self) -> bool:
        """Not after every small archive: reading thousands of records would take longer than packing."""
        stamp = self._directory / "evicted"
        if time.time() - _last_change(stamp) / 1e9 < _EVICTION_SECONDS:
            return False
        stamp.touch()
        return True

    def _evict(self, keep: Path) -> None:
        """Delete the least recently used archives until the cache is within its limit."""
        used = sorted(self._directory.glob("*/*.json"), key=_last_change, reverse=True)
        total = 0
        for record in sorted(used, key=lambda path: path != keep):
            archive = _archive_of(record)
            with suppress(OSError):
                total += archive.stat().st_size
            if total > self._max_bytes:
                archive.unlink(missing_ok=True)
                record.unlink(missing_ok=True)
                with suppress(OSError):
                    record.parent.rmdir()  # unless it contains other archives

    def _paths(self, key: ArchiveKey) -> tuple[Path, Path]:
        record = self._directory / key.folder / f"{key.digest}.json"
        return _archive_of(record), record


def _archive_of(record: Path) -> Path:
    return record.with_suffix(".tar.gz")


@dataclass(frozen=True, slots=True)
class _Record:
    """The state of an archive, and of its last copy if it could not be linked."""

    archive: list[int]
    copy: list[int | str] | None

    @classmethod
    def of(cls, archive: Path, placed: Path) -> _Record:
        is_link = archive.samefile(placed)
        return cls(_state(archive), None if is_link else [str(placed.absolute()), *_state(placed)])

    @classmethod
    def read(cls, path: Path) -> _Record:
        """Read a record.

        Raises:
            OSError: it does not exist.
            ValueError: it was not written completely, or by another version.
        """
        try:
            record = cls(**json.loads(path.read_bytes()))
        except (TypeError, RecursionError) as error:
            raise ValueError(f"{path}: is not a record") from error
        if not isinstance(record.archive, list):
            raise ValueError(f"{path}: is not a record")
        return record

    def write(self, path: Path) -> None:
        content: dict[str, Any] = {"archive": self.archive, "copy": self.copy}
        path.write_text(json.dumps(content), encoding="utf-8")


def _is_unchanged(key: ArchiveKey, archive: Path, known: _Record) -> bool:
    state = _state(archive)
    if state == known.archive:
        return True
    return state[:-1] == known.archive[:-1] and _has_digest(archive, key.digest)


def _has_digest(archive: Path, digest: str) -> bool:
    try:
        return inspect_archive(archive).digest == digest
    except ArchiveError:
        return False


def _state(archive: Path) -> list[int]:
    status = archive.stat()
    return [status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns]


def _last_change(record: Path) -> int:
    try:
        return record.stat().st_mtime_ns
    except OSError:
        return 0


def _link_or_copy(source: Path, destination: Path) -> None:
    try:
        os.link(source, destination)
    except OSError:  # another file system, or one without hard links
        shutil.copy2(source, destination)  # with its modification time, which the record has
