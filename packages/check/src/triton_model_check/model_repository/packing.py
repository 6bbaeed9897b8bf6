"""Packs models of a repository into one deterministic ``.tar.gz``, as SageMaker requires."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.untrusted.drafts import partial_folder
from triton_model_check.model_repository.archive import (
    DEFAULT_COMPRESSION_LEVEL,
    count_workers,
    stream_size,
    write_archive,
)
from triton_model_check.model_repository.archive_cache import ArchiveCache, ArchiveKey
from triton_model_check.model_repository.content_digest import ContentDigest, digest_of, hash_files
from triton_model_check.model_repository.digest_cache import DigestCache
from triton_model_check.model_repository.members import Member, collect_members, members_of
from triton_model_check.model_repository.temporary_folders import output_folder
from triton_model_check.untrusted.cache_location import cache_bytes, cache_directory

if TYPE_CHECKING:
    from triton_model_check.model_repository.repository import ModelRepository

__all__ = [
    "ARCHIVE_SUFFIX",
    "ArchiveIdentity",
    "PackedArchive",
    "find_packed",
    "fingerprint",
    "pack_folder",
]

ARCHIVE_SUFFIX = ".tar.gz"

Progress = Callable[[int, int], None]
"""Called with the finished and the total bytes, from the thread that packs."""


@dataclass(frozen=True, slots=True)
class PackedArchive:
    """A finished ``.tar.gz``.

    Args:
        path: Path of the file.
        digest: BLAKE3 (64 hexadecimal digits) over path, mode and content of its members. It does
            not depend on compression.
        size_bytes: Size of the file.
        unpacked_size_bytes: Sum of the sizes of its members.
    """

    path: Path
    digest: str
    size_bytes: int
    unpacked_size_bytes: int


@dataclass(frozen=True, slots=True)
class ArchiveIdentity:
    """The ``digest`` of an archive, as in :class:`PackedArchive`,
    and the sum of its members in bytes.
    """

    digest: str
    unpacked_size_bytes: int


def pack(
    repository: ModelRepository,
    model_names: Collection[str],
    destination_directory: Path | str,
    *,
    archive_name: str | None = None,
    compression_level: int = DEFAULT_COMPRESSION_LEVEL,
    use_cache: bool = True,
    shares_files: bool = False,
    on_progress: Progress | None = None,
) -> PackedArchive:
    """Write the named models' directories into one archive, which appears only when it is complete.

    The bytes do not depend on the order of files, their owner and times, the folder of the
    repository, or the number of cores.

    Args:
        repository: The repository.
        model_names: Models of the archive; see :meth:`ModelRepository.closure`.
        destination_directory: Folder of the archive.
        archive_name: File name ending in ``.tar.gz``. Default: ``<digest>.tar.gz``.
        compression_level: 0 (store) to 3.
        use_cache: Whether the caches of digests and archives are read and written.
        shares_files: Whether the archive may be a hard link to the one in the cache. Set it only
            for a folder in which no other program changes files.
        on_progress: Called with the bytes that are packed and the bytes in total. Default: none.

    Raises:
        ArchiveError: a file cannot or must not be archived, or the archive cannot be written.
        InvalidValueError: there is no such model, or ``archive_name`` or ``compression_level`` is
            not valid.
    """
    _check_names(repository, model_names, archive_name)
    members = members_of(repository, model_names)
    job = _Packing(
        members, Path(destination_directory), archive_name, compression_level, on_progress
    )
    return job.run(_Caches.of_user(shares_files) if use_cache else None)


def pack_folder(folder: Path, destination_directory: Path) -> PackedArchive:
    """Write the files of a folder into one archive, with this folder as its root; see :func:`pack`.

    Raises:
        ArchiveError: a file cannot or must not be archived, or the archive cannot be written.
    """
    root = folder.resolve()
    found = collect_members(root.parent, [root.name])
    members = [
        replace(each, name=each.name.partition("/")[2]) for each in found if "/" in each.name
    ]
    job = _Packing(members, destination_directory, None, DEFAULT_COMPRESSION_LEVEL, None)
    return job.run(_Caches.of_user(shares_files=True))


def fingerprint(
    repository: ModelRepository, model_names: Collection[str], *, use_cache: bool = True
) -> str:
    """Return the digest that ``pack`` would give, without packing. Unchanged files are not read.

    Args:
        repository: The repository.
        model_names: Models of the archive; see :meth:`ModelRepository.closure`.
        use_cache: Whether to use the digests of files that have not changed since they were read.

    Raises:
        ArchiveError: a file cannot or must not be archived.
        InvalidValueError: there is no such model.
    """
    return identify(repository, {"": model_names}, use_cache=use_cache)[""].digest


def identify(
    repository: ModelRepository, archives: Mapping[str, Collection[str]], *, use_cache: bool = True
) -> dict[str, ArchiveIdentity]:
    """Return digest and size of several archives without packing them.

    ``archives`` maps any keys to the names of the models in each archive; the result has the same
    keys.

    Raises:
        ArchiveError: a file cannot or must not be archived.
        InvalidValueError: there is no such model.
    """
    for names in archives.values():
        _check_names(repository, names, None)
    members = {key: members_of(repository, names) for key, names in archives.items()}
    every = {member.name: member for each in members.values() for member in each}
    contents = _contents(
        list(every.values()), DigestCache(cache_directory()) if use_cache else None
    )
    return {
        key: ArchiveIdentity(digest_of(each, contents), _size(each))
        for key, each in members.items()
    }


def find_packed(identity: ArchiveIdentity, directory: Path) -> PackedArchive | None:
    """Return the unchanged archive that ``pack`` has put there with ``shares_files``,
    or ``None``.
    """
    path = directory / f"{identity.digest}{ARCHIVE_SUFFIX}"
    key = ArchiveKey(identity.digest, identity.unpacked_size_bytes, DEFAULT_COMPRESSION_LEVEL)
    if not ArchiveCache(cache_directory(), cache_bytes(), shares_files=True).is_placed(key, path):
        return None
    return PackedArchive(path, identity.digest, path.stat().st_size, identity.unpacked_size_bytes)


def _size(members: Sequence[Member]) -> int:
    return sum(member.size for member in members)


def _contents(members: Sequence[Member], cache: DigestCache | None) -> dict[str, ContentDigest]:
    """Return the digests of the files, and keep them in the cache."""
    known = cache.find(members) if cache is not None else {}
    unknown = [member for member in members if not member.is_directory and member.name not in known]
    if unknown:
        begun = time.time_ns()
        fresh = hash_files(unknown, count_workers())
        known |= fresh
        if cache is not None:
            cache.add(unknown, fresh, begun)
    return known


@dataclass(frozen=True, slots=True)
class _Caches:
    digests: DigestCache
    archives: ArchiveCache

    @classmethod
    def of_user(cls, shares_files: bool) -> _Caches:
        directory = cache_directory()
        return cls(
            DigestCache(directory),
            ArchiveCache(directory, cache_bytes(), shares_files=shares_files),
        )


@dataclass(frozen=True, slots=True)
class _Packing:
    members: Sequence[Member]
    directory: Path
    archive_name: str | None
    compression_level: int
    on_progress: Progress | None

    def run(self, caches: _Caches | None) -> PackedArchive:
        with output_folder(self.directory, "the archive cannot be written"):
            cached = self._from_cache(caches) if caches is not None else None
            return cached or self._write(caches)

    def _from_cache(self, caches: _Caches) -> PackedArchive | None:
        if not caches.archives.may_contain(self._unpacked_size, self.compression_level):
            return None
        digest = digest_of(self.members, _contents(self.members, caches.digests))
        path = self._path(digest)
        key = self._key(digest)
        is_there = caches.archives.is_placed(key, path) or caches.archives.place(key, path)
        return self._archive(path, digest) if is_there else None

    def _write(self, caches: _Caches | None) -> PackedArchive:
        """Write the archive, and give it the name of its digest."""
        with partial_folder(self.directory) as folder:
            begun = time.time_ns()
            partial = folder / f"partial{ARCHIVE_SUFFIX}"
            with partial.open("wb") as output:
                contents = write_archive(
                    self.members,
                    output,
                    compression_level=self.compression_level,
                    on_bytes=self._counter(),
                )
            digest = digest_of(self.members, contents)
            path = self._path(digest)
            partial.replace(path)
        if caches is not None:
            # Writing the cache takes longer than packing a small model.
            known = caches.digests.find(self.members)
            caches.digests.add(
                [each for each in self.members if each.name not in known], contents, begun
            )
            caches.archives.add(self._key(digest), path)
        return self._archive(path, digest)

    @property
    def _unpacked_size(self) -> int:
        return _size(self.members)

    def _counter(self) -> Callable[[int], None] | None:
        """Return what counts the packed bytes; ``None`` if progress is not shown."""
        report = self.on_progress
        if report is None:
            return None
        done, total = 0, stream_size(self.members)

        def count(more: int) -> None:
            nonlocal done
            done += more
            report(done, total)

        return count

    def _path(self, digest: str) -> Path:
        return self.directory / (self.archive_name or f"{digest}{ARCHIVE_SUFFIX}")

    def _key(self, digest: str) -> ArchiveKey:
        return ArchiveKey(digest, self._unpacked_size, self.compression_level)

    def _archive(self, path: Path, digest: str) -> PackedArchive:
        return PackedArchive(path, digest, path.stat().st_size, self._unpacked_size)


def _check_names(
    repository: ModelRepository, model_names: Collection[str], archive_name: str | None
) -> None:
    """Raise ``InvalidValueError`` unless these models and this archive name can be packed."""
    if not model_names:
        raise InvalidValueError(
            "model_names: must contain at least one model, got none; add a model"
        )
    for name in model_names:
        if name not in repository.models:
            known = ", ".join(repository.models) or "none"
            raise InvalidValueError(
                f"model_names: must be models of {repository.path}, "
                f"got {name!r}; it contains {known}"
            )
    if archive_name is None:
        return
    stem = archive_name.removesuffix(ARCHIVE_SUFFIX)
    if stem in ("", archive_name) or Path(archive_name).name != archive_name:
        raise InvalidValueError(
            f"archive_name: must be a file name ending in {ARCHIVE_SUFFIX}, got {archive_name!r}; "
            f"add {ARCHIVE_SUFFIX}, which SageMaker requires"
        )
