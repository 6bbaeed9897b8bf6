"""Keeps finished archives by the digest of their content, so nothing is compressed twice.

Archives in folders of users are copies. Those in a cloud assembly, which no other program writes,
are hard links, so that a synth copies nothing.

Beside each archive is its seal (see ``cache_contract``). A new link changes the ctime of an
archive, and so does a program that writes into it and sets its modification time back: then its
content is hashed again.

The seal's own modification time is when the archive was last used. When the cache exceeds its
limit, the least recently used archives are deleted.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from blake3 import blake3

from constructs_triton_core.untrusted.cache_contract import Seal, own_folder, set_time_back
from constructs_triton_core.untrusted.drafts import partial_folder, remove_abandoned
from triton_model_check.model_repository.uncompressed.copying import copy_file

_SMALL = 100  # an archive is small below the limit divided by this
_EVICTION_SECONDS = 10
_FORMAT = 1  # increase it when the same members give other bytes
_FOLDER, _ARCHIVE, _COPY = "archives", "archive", "copy"


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
        self._root = directory
        self._directory = directory / _FOLDER
        self._max_bytes = max_bytes
        self._transfer = _link_or_copy if shares_files else copy_file
        self._shares_files = shares_files

    def may_contain(self, unpacked_size_bytes: int, compression_level: int) -> bool:
        """Whether the cache may contain an archive of this size and level. Needs no digest."""
        return (
            self._directory / ArchiveKey("", unpacked_size_bytes, compression_level).folder
        ).is_dir()

    def place(self, key: ArchiveKey, destination: Path) -> bool:
        """Put the archive of ``key`` at ``destination``; return whether the cache contains it."""
        archive, record = self._paths(key)
        try:
            own_folder(self._root, _FOLDER)
            seal = Seal.read(record, key.digest).checked({_ARCHIVE: archive}, digest_of=_hash)
            with partial_folder(destination.parent) as folder:
                self._transfer(archive, folder / archive.name)
                (folder / archive.name).replace(destination)
            self._note(seal, archive, destination, record)
        except (OSError, ValueError):
            return False
        return True

    def is_placed(self, key: ArchiveKey, destination: Path) -> bool:
        """Whether ``destination`` already is the archive of ``key`` that
        this cache placed there.
        """
        archive, record = self._paths(key)
        try:
            own_folder(self._root, _FOLDER)
            seal = Seal.read(record, key.digest)
            paths = {_ARCHIVE: archive}
            if archive.samefile(destination):
                is_own = self._shares_files
            else:
                paths[_COPY] = destination
                is_own = seal.note == str(destination.absolute())
            if is_own:
                seal.use(record, paths, digest_of=_hash, outside=(_COPY,))
        except (OSError, ValueError):
            return False
        return is_own

    def add(self, key: ArchiveKey, source: Path) -> None:
        """Keep the archive at ``source``.

        A cache that cannot be written keeps nothing; this is no error.
        """
        if source.stat().st_size > self._max_bytes:
            return
        archive, record = self._paths(key)
        with suppress(OSError, ValueError):
            own_folder(self._root, _FOLDER, create=True)
            archive.parent.mkdir(exist_ok=True)
            remove_abandoned(self._directory)
            with partial_folder(self._directory) as folder:
                draft = folder / archive.name
                self._transfer(source, draft)
                set_time_back(draft)
                seal = Seal.of(key.digest, {_ARCHIVE: draft}, digest_of=_hash)
                # In this order: a seal without an archive is detected, the opposite is not.
                seal.write(record)
                draft.replace(archive)
            self._note(seal, archive, source, record)
            if source.stat().st_size * _SMALL >= self._max_bytes or self._eviction_is_due():
                self._evict(keep=record)

    def _note(self, seal: Seal, archive: Path, placed: Path, record: Path) -> None:
        """Write the seal of an archive that was renamed, linked or copied, and of its copy."""
        if archive.samefile(placed):
            seal.moved({_ARCHIVE: archive}, None).write(record)
        else:
            copy = replace(seal, files={**seal.files, _COPY: seal.files[_ARCHIVE]})
            copy.moved({_ARCHIVE: archive, _COPY: placed}, str(placed.absolute())).write(record)

    def _eviction_is_due(self) -> bool:
        """Not after every small archive: reading thousands of records would
        take longer than packing.
        """
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


def _hash(archive: Path) -> str:
    return blake3(max_threads=blake3.AUTO).update_mmap(archive).hexdigest()


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
