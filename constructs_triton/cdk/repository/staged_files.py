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
        return sorted([*(file.name for file in self.files), *map(_keep_path, self.empty_folders)])

    @property
    def executables(self) -> list[str]:
        """Files that would be executable in an archive. Objects in S3 have no permissions."""
        return [file.name for file in self.files if file.mode == EXECUTABLE_MODE]


def _keep_path(folder: str) -> str:
    return f"{folder}/{KEEP_FILE}"


def list_files(repository: ModelRepository, model_names: Collection[str]) -> ModelFiles:
    """List the files of the named models. Links are followed; those that lead out are refused.

    Raises:
        ArchiveError: a file cannot or must not be uploaded; the message lists all of them.
        InvalidValueError: there is no such model.
    """
    members = members_of(repository, model_names)
    parents = {member.name.rpartition("/")[0] for member in members}
    return ModelFiles(
        tuple(member for member in members if not member.is_directory),
        tuple(each.name for each in members if each.is_directory and each.name not in parents),
    )


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
    listed: ModelFiles
    directory: Path
    cache: DigestCache

    def run(self) -> StagedModel:
        large = [file for file in self.listed.files if file.size > LARGE_FILE_BYTES]
        small = [file for file in self.listed.files if file.size <= LARGE_FILE_BYTES]
        begun = time.time_ns()
        known = self.cache.find(self.listed.files)
        contents = {
            **known,
            **hash_files([file for file in small if file.name not in known], count_workers()),
        }
        contents |= self._stage_large(large, known)
        new = {name: digest for name, digest in contents.items() if name not in known}
        self.cache.add([file for file in self.listed.files if file.name in new], new, begun)
        packed, slices = self._stage_small(small, contents)
        return StagedModel(
            digest=_digest(
                contents | {_keep_path(each): _KEEP_DIGEST for each in self.listed.empty_folders}
            ),
            large=tuple(
                LargeFile(file.name, digest.hex(), file.size, self._copy_of(digest))
                for file in large
                for digest in [contents[file.name]]
            ),
            small=slices,
            zip=packed,
            size_bytes=sum(file.size for file in large) + sum(each.size_bytes for each in slices),
        )

    # Large files.

    def _stage_large(
        self, files: Sequence[Member], known: Mapping[str, ContentDigest]
    ) -> dict[str, ContentDigest]:
        """Copy the files whose copies are missing; return the digests of those."""
        missing = [
            file
            for file in files
            if file.name not in known or not self._is_staged(self._copy_of(known[file.name]))
        ]
        if not missing:
            return {}
        with ThreadPoolExecutor(count_workers()) as pool:
            return dict(
                zip(
                    (file.name for file in missing),
                    pool.map(self._stage_file, missing),
                    strict=True,
                )
            )

    def _stage_file(self, file: Member) -> ContentDigest:
        with partial_folder(self.directory) as folder:
            digest = _copy(file, folder / "copy")
            self._finish(folder / "copy", self._copy_of(digest))
        return digest

    def _copy_of(self, digest: ContentDigest) -> Path:
        return self.directory / f"{digest.hex()}{LARGE_SUFFIX}"

    # Small files.

    def _stage_small(
        self, files: Sequence[Member], contents: Mapping[str, ContentDigest]
    ) -> tuple[Path | None, tuple[SmallFile, ...]]:
        """Write the zip, unless it is there; return it, and where each file is in it."""
        keepers = [Member(_keep_path(each), PLAIN_MODE) for each in self.listed.empty_folders]
        members = sorted([*files, *keepers], key=lambda member: member.name)
        if not members:
            return None, ()
        digest = _digest({each.name: contents.get(each.name, _KEEP_DIGEST) for each in members})
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
    content, buffer = blake3(), memoryview(bytearray(_CHUNK_BYTES))
    while count := original.readinto(buffer):
        content.update(buffer[:count])
        rest = buffer[:count]
        while rest:
            rest = rest[copy.write(rest) :]
    return content.digest()


def _hash(file: io.FileIO) -> ContentDigest:
    content, buffer = blake3(max_threads=blake3.AUTO), memoryview(bytearray(_CHUNK_BYTES))
    while count := file.readinto(buffer):
        content.update(buffer[:count])
    return content.digest()


def _staged_member(place: Path) -> Member:
    return Member(place.name, PLAIN_MODE, os.path.realpath(place), FileState.of(place.stat()))


def _name_digest(place: Path) -> ContentDigest:
    return bytes.fromhex(place.stem)


def _digest(contents: Mapping[str, ContentDigest]) -> str:
    identity = blake3(b"constructs_triton files 1\n")
    for path, content in sorted(contents.items()):
        encoded = path.encode()
        identity.update(len(encoded).to_bytes(4, "big") + encoded + content)
    return identity.hexdigest()[:_DIGEST_CHARACTERS]


def _write_zip(members: Sequence[Member], path: Path) -> None:
    with zipfile.ZipFile(path, "x", zipfile.ZIP_STORED) as archive:
        for member in members:
            # Neither the time nor the mode of a file: equal contents give equal bytes.
            entry = zipfile.ZipInfo(member.name)
            entry.create_system = _UNIX
            archive.writestr(entry, _read(member))


def _read(member: Member) -> bytes:
    if member.is_directory:
        return _KEEP_TEXT
    with open_member(member) as file:
        return file.readall()


def _slices(path: Path) -> Iterator[SmallFile]:
    with zipfile.ZipFile(path) as archive:
        for each in archive.infolist():
            offset = each.header_offset + _ZIP_HEADER_BYTES + len(each.filename.encode())
            yield SmallFile(each.filename, offset, each.file_size, each.CRC)
