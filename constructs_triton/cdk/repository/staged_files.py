"""Copies the files of models into a cloud assembly, from which the CDK uploads them.

Each large file becomes a file that is named after the digest of its content, so an unchanged one is
neither copied nor uploaded again. All small files become one zip without compression: a pipeline of
the CDK has an action for each asset, and thousands of actions do not fit.
"""

from __future__ import annotations

import io
import os
import time
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from blake3 import blake3

from constructs_triton_core.untrusted.drafts import partial_folder
from constructs_triton_core.untrusted.regular_files import open_regular
from triton_model_check.model_repository.archive import count_workers
from triton_model_check.model_repository.content_digest import ContentDigest, hash_files
from triton_model_check.model_repository.digest_cache import DigestCache
from triton_model_check.model_repository.members import (
    EXECUTABLE_MODE,
    PLAIN_MODE,
    FileState,
    Member,
    changed_error,
    members_of,
    open_member,
    unreadable_error,
)
from triton_model_check.model_repository.temporary_folders import output_folder
from triton_model_check.model_repository.uncompressed.copying import share_blocks
from triton_model_check.model_repository.uncompressed.names import KEEP_FILE
from triton_model_check.untrusted.cache_location import cache_directory

if TYPE_CHECKING:
    from triton_model_check.model_repository.repository import ModelRepository

__all__ = ["LARGE_SUFFIX", "StagedModel", "list_files", "stage"]

LARGE_FILE_BYTES = 8_000_000
"""A file above this size is uploaded by itself."""
LARGE_SUFFIX = ".modelfile"
"""Ending of the name of a large file's copy, by which a policy can tell it from other assets."""

_KEEP_TEXT = b"Keeps this folder, since Amazon S3 has no folders.\n"
_KEEP_DIGEST: ContentDigest = blake3(_KEEP_TEXT).digest()
_DIGEST_CHARACTERS = 32
_CHUNK_BYTES = 1 << 18
"""Stays in the processor's cache between hashing and writing;
with 1 MiB a copy takes four times as long.
"""
_ZIP_HEADER_BYTES = 30  # PKWARE APPNOTE, "Local file header", before the name
_UNIX = 3
_STAGED_NS = 315_532_800 * 10**9
"""Modification time of copies, 1980-01-01: old enough to be cached, and the same in each run."""


@dataclass(frozen=True, slots=True)
class LargeFile:
    """A file that is uploaded by itself: its path below ``/opt/ml/model``, and its copy."""

    path: str
    digest: str
    size_bytes: int
    copy: Path


@dataclass(frozen=True, slots=True)
class SmallFile:
    """A file in the zip: its path below ``/opt/ml/model``, and where its content is in the zip."""

    path: str
    offset: int
    size_bytes: int
    crc32: int


@dataclass(frozen=True, slots=True)
class StagedModel:
    """The files of models, copied for the upload.

    ``digest`` depends on the paths and contents of all files, and on nothing else. ``zip`` contains
    the small files; it is ``None`` if there are none.
    """

    digest: str
    large: tuple[LargeFile, ...]
    small: tuple[SmallFile, ...]
    zip: Path | None
    size_bytes: int


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """The files of models as they are listed: those to copy, and the folders to keep."""

    files: tuple[Member, ...]
    empty_folders: tuple[str, ...]

    @property
    def paths(self) -> list[str]:
        """All paths below ``/opt/ml/model``, in alphabetical order."""
        files = [file.name for file in self.files]
        keepers = [_keep_path(folder) for folder in self.empty_folders]
        return sorted(files + keepers)

    @property
    def executables(self) -> list[str]:
        """Files that would be executable in an archive. Objects in S3 have no permissions."""
        return [file.name for file in self.files if file.mode == EXECUTABLE_MODE]


def _keep_path(folder: str) -> str:
    """Return the path of the file that keeps an empty folder, since S3 has no folders."""
    return f"{folder}/{KEEP_FILE}"


def list_files(repository: ModelRepository, model_names: Collection[str]) -> ModelFiles:
    """List the files of the named models. Links are followed; those that lead out are refused.

    Raises:
        ArchiveError: a file cannot or must not be uploaded; the message lists all of them.
        InvalidValueError: there is no such model.
    """
    members = members_of(repository, model_names)
    files = [member for member in members if not member.is_directory]
    folders = [member.name for member in members if member.is_directory]

    full_folders = {member.name.rpartition("/")[0] for member in members}
    empty_folders = [folder for folder in folders if folder not in full_folders]
    return ModelFiles(tuple(files), tuple(empty_folders))


def stage(
    repository: ModelRepository, model_names: Collection[str], directory: Path
) -> StagedModel:
    """Copy the files of the named models into ``directory``, as far as they are not there yet.

    The large ones are copied by reference where the file system can share blocks.

    Raises:
        ArchiveError: a file cannot or must not be uploaded, changed while it was read, or cannot be
            copied.
        InvalidValueError: there is no such model.
    """
    listed = list_files(repository, model_names)
    with output_folder(directory, "the model's files cannot be copied there"):
        return _Staging(listed, directory, DigestCache(cache_directory())).run()


@dataclass(frozen=True, slots=True)
class _Staging:
    """One copy of listed files into ``directory``; ``cache`` has the digests of earlier runs."""

    listed: ModelFiles
    directory: Path
    cache: DigestCache

    def run(self) -> StagedModel:
        """Copy the files that are not in the directory yet, and return all of them."""
        large_files = [file for file in self.listed.files if file.size > LARGE_FILE_BYTES]
        small_files = [file for file in self.listed.files if file.size <= LARGE_FILE_BYTES]

        begun_ns = time.time_ns()
        known = self.cache.find(self.listed.files)
        unknown_small = [file for file in small_files if file.name not in known]
        hashed = hash_files(unknown_small, count_workers())
        copied = self._stage_large(large_files, known)
        digests = known | hashed | copied
        self._remember(digests, known, begun_ns)

        zip_path, slices = self._stage_small(small_files, digests)
        large_size_bytes = sum(file.size for file in large_files)
        small_size_bytes = sum(small.size_bytes for small in slices)
        return StagedModel(
            digest=_digest_of_all(digests | self._keepers()),
            large=tuple(self._large_file(file, digests[file.name]) for file in large_files),
            small=slices,
            zip=zip_path,
            size_bytes=large_size_bytes + small_size_bytes,
        )

    def _remember(
        self,
        digests: Mapping[str, ContentDigest],
        known: Mapping[str, ContentDigest],
        begun_ns: int,
    ) -> None:
        """Add the new digests to the cache. ``begun_ns`` is a time before the files were read."""
        new = {name: digest for name, digest in digests.items() if name not in known}
        new_files = [file for file in self.listed.files if file.name in new]
        self.cache.add(new_files, new, begun_ns)

    def _keepers(self) -> dict[str, ContentDigest]:
        """Return the files that keep empty folders, with the digest of their equal contents."""
        return {_keep_path(folder): _KEEP_DIGEST for folder in self.listed.empty_folders}

    # Large files.

    def _stage_large(
        self, files: Sequence[Member], known: Mapping[str, ContentDigest]
    ) -> dict[str, ContentDigest]:
        """Copy the files whose copies are missing; return the digests of those."""
        missing = [file for file in files if not self._has_copy(known.get(file.name))]
        if not missing:
            return {}
        names = [file.name for file in missing]
        with ThreadPoolExecutor(count_workers()) as pool:
            digests = pool.map(self._stage_file, missing)
            return dict(zip(names, digests, strict=True))

    def _stage_file(self, file: Member) -> ContentDigest:
        """Copy a large file to the path that its digest gives, and return the digest."""
        with partial_folder(self.directory) as folder:
            digest = _copy(file, folder / "copy")
            self._finish(folder / "copy", self._path_of_copy(digest))
        return digest

    def _has_copy(self, digest: ContentDigest | None) -> bool:
        """Whether the copy of a large file is there; a file without known digest has none."""
        return digest is not None and self._is_staged(self._path_of_copy(digest))

    def _path_of_copy(self, digest: ContentDigest) -> Path:
        """Return the path of the copy of a large file with this digest."""
        return self.directory / f"{digest.hex()}{LARGE_SUFFIX}"

    def _large_file(self, file: Member, digest: ContentDigest) -> LargeFile:
        """Describe a large file that was copied."""
        return LargeFile(file.name, digest.hex(), file.size, self._path_of_copy(digest))

    # Small files.

    def _stage_small(
        self, files: Sequence[Member], digests: Mapping[str, ContentDigest]
    ) -> tuple[Path | None, tuple[SmallFile, ...]]:
        """Write the zip, unless it is there; return it, and where each file is in it."""
        keepers = [Member(path, PLAIN_MODE) for path in self._keepers()]
        members = sorted([*files, *keepers], key=lambda member: member.name)
        if not members:
            return None, ()

        digest = _digest_of_all(
            {member.name: digests.get(member.name, _KEEP_DIGEST) for member in members}
        )
        place = self.directory / f"{digest}.zip"
        if not self._is_staged(place):
            with partial_folder(self.directory) as folder:
                _write_zip(members, folder / place.name)
                self._finish(folder / place.name, place)
        return place, tuple(_slices(place))

    # Both.

    def _finish(self, partial: Path, place: Path) -> None:
        """Move a complete copy to its place, and note that it is the one that its name says."""
        os.utime(partial, ns=(_STAGED_NS, _STAGED_NS))
        partial.chmod(PLAIN_MODE)
        partial.replace(place)
        member = _staged_member(place)
        self.cache.add([member], {member.name: _name_digest(place)}, time.time_ns())

    def _is_staged(self, place: Path) -> bool:
        """Whether no program has changed a copy since it was written."""
        try:
            member = _staged_member(place)
        except OSError:
            return False
        return self.cache.find([member]) == {member.name: _name_digest(place)}


def _copy(member: Member, destination: Path) -> ContentDigest:
    """Copy the file of ``member`` to ``destination``, and return the BLAKE3 digest of the copy.

    Raises:
        ArchiveError: the file cannot be read, or it changed since it was listed.
        OSError: the destination cannot be written.
    """
    try:
        original = open_regular(member.source)
    except OSError as error:
        raise unreadable_error(member.source, error) from error
    with original, destination.open("x+b", buffering=0) as copy:
        is_shared = share_blocks(original.fileno(), copy.fileno())
        # Hashing while copying reads a file once; a copy by reference is read for its digest only.
        digest = _hash(copy) if is_shared else _copy_and_hash(original, copy)
        if FileState.of(os.fstat(original.fileno())) != member.state:
            raise changed_error(member)
    return digest


def _copy_and_hash(original: io.FileIO, copy: io.FileIO) -> ContentDigest:
    """Write the content of a file to its copy in chunks, and return its digest."""
    content = blake3()
    buffer = memoryview(bytearray(_CHUNK_BYTES))
    while count := original.readinto(buffer):
        content.update(buffer[:count])

        # An unbuffered file may write less than it was given.
        unwritten = buffer[:count]
        while unwritten:
            written_bytes = copy.write(unwritten)
            unwritten = unwritten[written_bytes:]
    return content.digest()


def _hash(file: io.FileIO) -> ContentDigest:
    """Return the digest of a file, computed with all threads of the machine."""
    content = blake3(max_threads=blake3.AUTO)
    buffer = memoryview(bytearray(_CHUNK_BYTES))
    while count := file.readinto(buffer):
        content.update(buffer[:count])
    return content.digest()


def _staged_member(place: Path) -> Member:
    """Describe a copy by its name and state, as the cache of digests expects it."""
    return Member(place.name, PLAIN_MODE, os.path.realpath(place), FileState.of(place.stat()))


def _name_digest(place: Path) -> ContentDigest:
    """Return the digest that the name of a copy consists of."""
    return bytes.fromhex(place.stem)


def _digest_of_all(digests: Mapping[str, ContentDigest]) -> str:
    """Return one digest of several files: of their paths and the digests of their contents."""
    identity = blake3(b"constructs_triton files 1\n")
    for path, digest in sorted(digests.items()):
        encoded_path = path.encode()
        # The length comes first, so that the end of a path is not mistaken for a digest.
        identity.update(len(encoded_path).to_bytes(4, "big") + encoded_path + digest)
    return identity.hexdigest()[:_DIGEST_CHARACTERS]


def _write_zip(members: Sequence[Member], path: Path) -> None:
    """Write small files into a zip without compression."""
    with zipfile.ZipFile(path, "x", zipfile.ZIP_STORED) as archive:
        for member in members:
            # Neither the time nor the mode of a file: equal contents give equal bytes.
            entry = zipfile.ZipInfo(member.name)
            entry.create_system = _UNIX
            archive.writestr(entry, _read(member))


def _read(member: Member) -> bytes:
    """Return the content of a small file; one that keeps a folder is not on the disk."""
    if member.is_directory:
        return _KEEP_TEXT
    with open_member(member) as file:
        return file.readall()


def _slices(path: Path) -> Iterator[SmallFile]:
    """Yield where the content of each file is in a zip."""
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            offset = entry.header_offset + _ZIP_HEADER_BYTES + len(entry.filename.encode())
            yield SmallFile(entry.filename, offset, entry.file_size, entry.CRC)
