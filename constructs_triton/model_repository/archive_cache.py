"""Keeps finished archives by the digest of their content, so nothing is compressed twice.

Archives in folders of users are copies. Those in a cloud assembly, which no other program writes, are hard
links, so that a synth copies nothing.

Beside each archive is a small record of its inode, size, times and content. An archive that no longer matches
its record is not used. If only its ctime differs, its content is hashed: deleting a link changes the ctime,
but so does a program that writes into the archive and sets its modification time back.

The record's own modification time is when the archive was last used. When the cache exceeds its limit, the
least recently used archives are deleted.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from blake3 import blake3

from constructs_triton.model_repository.temporary_folders import partial_folder, remove_abandoned
from constructs_triton.model_repository.uncompressed.copying import copy_file

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
    """The archives below ``directory``, at most ``max_bytes`` in total.

    ``shares_files`` is whether an archive outside the cache may be a hard link to the one in it.
    """

    def __init__(self, directory: Path, max_bytes: int, *, shares_files: bool = False) -> None:
        self._directory = directory / "archives"
        self._max_bytes = max_bytes
        self._transfer = _link_or_copy if shares_files else copy_file
        self._shares_files = shares_files

    def may_contain(self, unpacked_size_bytes: int, compression_level: int) -> bool:
        """Whether the cache may contain an archive of this size and level. Needs no digest."""
        return (self._directory / ArchiveKey("", unpacked_size_bytes, compression_level).folder).is_dir()

    def place(self, key: ArchiveKey, destination: Path) -> bool:
        """Put the archive of ``key`` at ``destination``; return whether the cache contains it."""
        archive, record = self._paths(key)
        try:
            known = _Record.read(record)
            if not known.matches(archive):
                return False
            with partial_folder(destination.parent) as folder:
                self._transfer(archive, folder / archive.name)
                (folder / archive.name).replace(destination)
            _Record.of(archive, destination, known.content).write(record)
        except (OSError, ValueError):
            return False
        return True

    def is_placed(self, key: ArchiveKey, destination: Path) -> bool:
        """Whether ``destination`` already is the archive of ``key`` that this cache placed there."""
        archive, record = self._paths(key)
        try:
            known = _Record.read(record)
            found = _Record.of(archive, destination, known.content)
            is_link = found.copy is None
            is_own = self._shares_files if is_link else known.copy == found.copy
            if not is_own or not known.matches(archive):
                return False
            if found == known:
                os.utime(record)  # it was used now
            else:
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
                self._transfer(source, folder / archive.name)
                content = _hash(folder / archive.name)
                # In this order: a record without an archive is detected, the opposite is not.
                _Record.of(folder / archive.name, source, content).write(record)
                (folder / archive.name).replace(archive)
            _Record.of(archive, source, content).write(record)  # renaming has changed the ctime
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
    """The state and the hash of an archive, and the state of its last copy if it could not be linked."""

    archive: list[int]
    copy: list[int | str] | None
    content: str

    @classmethod
    def of(cls, archive: Path, placed: Path, content: str) -> _Record:
        is_link = archive.samefile(placed)
        return cls(_state(archive), None if is_link else [str(placed.absolute()), *_state(placed)], content)

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
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    def matches(self, archive: Path) -> bool:
        """Whether the archive is unchanged."""
        state = _state(archive)
        if state == self.archive:
            return True
        return state[:-1] == self.archive[:-1] and _hash(archive) == self.content


def _hash(archive: Path) -> str:
    return blake3(max_threads=blake3.AUTO).update_mmap(archive).hexdigest()


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
        copy_file(source, destination)
