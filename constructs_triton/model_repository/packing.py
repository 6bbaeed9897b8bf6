"""Turns models of a repository into one deterministic ``.tar.gz``, as SageMaker wants it."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from constructs_triton.errors import ArchiveError, InvalidValueError
from constructs_triton.model_repository.archive import (
    DEFAULT_COMPRESSION_LEVEL,
    count_workers,
    stream_size,
    write_archive,
)
from constructs_triton.model_repository.archive_cache import ArchiveCache, ArchiveKey
from constructs_triton.model_repository.cache_location import cache_bytes, cache_directory
from constructs_triton.model_repository.content_digest import ContentDigest, digest_of, hash_files
from constructs_triton.model_repository.digest_cache import DigestCache
from constructs_triton.model_repository.members import Member, collect_members
from constructs_triton.model_repository.partial_folder import partial_folder, remove_abandoned

if TYPE_CHECKING:
    from constructs_triton.findings import Finding
    from constructs_triton.model_config.folder import ModelFolder
    from constructs_triton.model_config.report import Report
    from constructs_triton.model_repository.repository import ModelRepository

__all__ = [
    "ARCHIVE_SUFFIX",
    "ArchiveIdentity",
    "PackedArchive",
    "Progress",
    "errors_left_by_packing",
    "find_packed",
    "fingerprint",
    "identify",
    "pack",
]

ARCHIVE_SUFFIX = ".tar.gz"

Progress = Callable[[int, int], None]
"""Told the bytes done and the bytes in all, from the thread that packs."""

BACKENDS_WITHOUT_FILES = frozenset({"identity", "repeat", "square", "tensorrtllm"})
"""Backends that load with an empty version directory: they need no file, or are told where it lies."""

_NO_VERSION = "layout-no-version"


@dataclass(frozen=True, slots=True)
class PackedArchive:
    """A finished ``.tar.gz``.

    ``digest`` is BLAKE3 (64 hexadecimal digits) over the path, mode and content of what it holds, and does
    not depend on how it was compressed. ``size_bytes`` is that of the file; ``unpacked_size_bytes`` the sum
    of the contents.
    """

    path: Path
    digest: str
    size_bytes: int
    unpacked_size_bytes: int


@dataclass(frozen=True, slots=True)
class ArchiveIdentity:
    """The ``digest`` of an archive, as in :class:`PackedArchive`, and the sum of its contents in bytes."""

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
    on_progress: Progress | None = None,
) -> PackedArchive:
    """Write the named models' directories into one archive, which appears only when it is whole.

    ``archive_name`` is a file name ending in ``.tar.gz``, by default ``<digest>.tar.gz``. The bytes are the
    same whatever the order of files, their owner and times, the folder the repository lies in, and the
    number of cores. ``use_cache=False`` neither trusts nor fills the caches of digests and archives.

    Raises:
        ArchiveError: a file cannot or must not go into an archive, or the archive cannot be written.
        InvalidValueError: no such model, a name that is no archive's, or a level that is not 0 to 3.
    """
    _check_names(repository, model_names, archive_name)
    members = _members(repository, model_names)
    job = _Packing(members, Path(destination_directory), archive_name, compression_level, on_progress)
    return job.run(_Caches.of_user() if use_cache else None)


def errors_left_by_packing(repository: ModelRepository, report: Report) -> tuple[Finding, ...]:
    """The errors of a check that the packed archive still has.

    An ensemble without its empty version directory is none of them: git drops it, packing makes it anew.
    """
    mended = {model.path for model in repository.models.values() if _made_versions(model)}
    return tuple(error for error in report.errors if error.code != _NO_VERSION or error.path not in mended)


def fingerprint(repository: ModelRepository, model_names: Collection[str], *, use_cache: bool = True) -> str:
    """The digest that ``pack`` would give, without packing; for unchanged files it reads none of them.

    Raises:
        ArchiveError: a file cannot or must not go into an archive.
        InvalidValueError: no such model.
    """
    return identify(repository, {"": model_names}, use_cache=use_cache)[""].digest


def identify(
    repository: ModelRepository, archives: Mapping[str, Collection[str]], *, use_cache: bool = True
) -> dict[str, ArchiveIdentity]:
    """What many archives would hold, by the keys of ``archives``, which names the models of each.

    Raises:
        ArchiveError: a file cannot or must not go into an archive.
        InvalidValueError: no such model.
    """
    for names in archives.values():
        _check_names(repository, names, None)
    members = {key: _members(repository, names) for key, names in archives.items()}
    every = {member.name: member for each in members.values() for member in each}
    contents = _contents(list(every.values()), DigestCache(cache_directory()) if use_cache else None)
    return {key: ArchiveIdentity(digest_of(each, contents), _size(each)) for key, each in members.items()}


def find_packed(
    identity: ArchiveIdentity,
    directory: Path,
    *,
    compression_level: int = DEFAULT_COMPRESSION_LEVEL,
) -> PackedArchive | None:
    """The archive of ``identity`` where ``pack`` has put it, not touched since; ``None`` without one."""
    path = directory / f"{identity.digest}{ARCHIVE_SUFFIX}"
    key = ArchiveKey(identity.digest, identity.unpacked_size_bytes, compression_level)
    if not ArchiveCache(cache_directory(), cache_bytes()).is_placed(key, path):
        return None
    return PackedArchive(path, identity.digest, path.stat().st_size, identity.unpacked_size_bytes)


def _size(members: Sequence[Member]) -> int:
    return sum(member.size for member in members)


def _contents(members: Sequence[Member], cache: DigestCache | None) -> dict[str, ContentDigest]:
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
    def of_user(cls) -> _Caches:
        directory = cache_directory()
        return cls(DigestCache(directory), ArchiveCache(directory, cache_bytes()))


@dataclass(frozen=True, slots=True)
class _Packing:
    members: Sequence[Member]
    directory: Path
    archive_name: str | None
    compression_level: int
    on_progress: Progress | None

    def run(self, caches: _Caches | None) -> PackedArchive:
        with _archive_errors(self.directory):
            self.directory.mkdir(parents=True, exist_ok=True)
            remove_abandoned(self.directory)
            held = self._from_cache(caches) if caches is not None else None
            return held or self._write(caches)

    def _from_cache(self, caches: _Caches) -> PackedArchive | None:
        if not caches.archives.may_hold(self._unpacked_size, self.compression_level):
            return None
        digest = digest_of(self.members, _contents(self.members, caches.digests))
        path = self._path(digest)
        key = self._key(digest)
        is_there = caches.archives.is_placed(key, path) or caches.archives.place(key, path)
        return self._archive(path, digest) if is_there else None

    def _write(self, caches: _Caches | None) -> PackedArchive:
        with partial_folder(self.directory) as folder:
            begun, partial = time.time_ns(), folder / f"partial{ARCHIVE_SUFFIX}"
            with partial.open("wb") as output:
                contents = write_archive(
                    self.members, output, compression_level=self.compression_level, on_bytes=self._counter()
                )
            digest = digest_of(self.members, contents)
            path = self._path(digest)
            partial.replace(path)
        if caches is not None:
            if caches.digests.find(self.members) != contents:  # a commit takes longer than a small model
                caches.digests.add(self.members, contents, begun)
            caches.archives.add(self._key(digest), path)
        return self._archive(path, digest)

    @property
    def _unpacked_size(self) -> int:
        return _size(self.members)

    def _counter(self) -> Callable[[int], None] | None:
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


@contextmanager
def _archive_errors(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ArchiveError(
            f"{directory}: the archive cannot be written, got {reason}; "
            "choose a folder with room that you may write to"
        ) from error


def _check_names(repository: ModelRepository, model_names: Collection[str], archive_name: str | None) -> None:
    if not model_names:
        raise InvalidValueError("model_names: must name at least one model, got none; name a model")
    for name in model_names:
        if name not in repository.models:
            known = ", ".join(repository.models) or "no model"
            raise InvalidValueError(
                f"model_names: must be models of {repository.path}, got {name!r}; there is {known}"
            )
    if archive_name is not None and not _is_archive_name(archive_name):
        raise InvalidValueError(
            f"archive_name: must be a file name ending in {ARCHIVE_SUFFIX}, got {archive_name!r}; "
            "SageMaker only takes objects whose key ends so"
        )


def _is_archive_name(name: str) -> bool:
    return name.endswith(ARCHIVE_SUFFIX) and name != ARCHIVE_SUFFIX and Path(name).name == name


def _members(repository: ModelRepository, model_names: Collection[str]) -> list[Member]:
    models = [repository.models[name] for name in sorted(set(model_names))]
    directories = [f"{model.name}/{version}" for model in models for version in _version_directories(model)]
    return collect_members(repository.path, [model.name for model in models], directories)


def _version_directories(model: ModelFolder) -> list[str]:
    """The version directories to keep though they are empty, and to make where git has dropped them."""
    return [str(version) for version in model.versions] or _made_versions(model)


def _made_versions(model: ModelFolder) -> list[str]:
    """The version directories that packing makes: where none is there and an empty one is enough."""
    config = model.config
    if model.versions or config is None:
        return []
    if not (model.is_ensemble or config.backend in BACKENDS_WITHOUT_FILES):
        return []
    wanted = config.version_policy.specific.versions if config.HasField("version_policy") else ()
    versions = [str(version) for version in wanted] or ["1"]
    return [version for version in versions if version not in model.entries]
