"""Provides the models of a container as SageMaker does: unpacks an archive, or copies files."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from pathlib import Path

from constructs_triton_core.errors import ArchiveError
from constructs_triton_core.untrusted.drafts import partial_folder
from constructs_triton_core.untrusted.regular_files import open_regular
from constructs_triton_tools.local.sources.specs import ContainerSpec, FileContent
from triton_model_check.model_repository.member_checks import MemberChecks, normalize
from triton_model_check.model_repository.members import DIRECTORY_MODE, PLAIN_MODE, fold_mode
from triton_model_check.model_repository.uncompressed.copying import copy_file
from triton_model_check.untrusted.tar_reader import ArchiveMember, UnpackLimits, read_members


def provide_models(container: ContainerSpec, directory: Path) -> None:
    """Put the models of a single-model container into ``directory``, which must not exist yet."""
    if container.archive is not None:
        unpack(container.archive, directory)
    else:
        copy_files(container.files or {}, directory)


def copy_files(files: Mapping[str, FileContent], directory: Path) -> None:
    """Copy files into ``directory``, which must not exist yet;
    the server may write to the copies only.
    """
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        with partial_folder(directory.parent) as folder:
            (folder / "content").mkdir(mode=DIRECTORY_MODE)
            for path, content in files.items():
                place = folder / "content" / path
                place.parent.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
                _copy_content(content, place)
                place.chmod(PLAIN_MODE)
            (folder / "content").rename(directory)
    except OSError as error:
        raise ArchiveError(
            f"{error.filename or directory}: the model's files cannot be copied to {directory} "
            f"({error}); free disk space, or run `npx cdk synth` again"
        ) from error


def _copy_content(content: FileContent, place: Path) -> None:
    if content.size_bytes is None:
        copy_file(content.path, place)
        return
    with open_regular(content.path) as source:
        source.seek(content.offset)
        found = source.read(content.size_bytes) or b""
    if len(found) != content.size_bytes:
        raise OSError(errno.EIO, "is too short", os.fspath(content.path))
    place.write_bytes(found)


def unpack(archive: Path, directory: Path, limits: UnpackLimits | None = None) -> None:
    """Unpack ``archive`` into ``directory``, which must not exist yet.

    The archive is unpacked beside ``directory`` and renamed when it is complete. Files get mode
    0755 or 0644, as in an archive of ``pack``. ``limits`` are by default those of the environment.

    Raises:
        ArchiveError: it is not a gzip-compressed tar, exceeds ``limits``, or has members that are
            no files or folders, are outside ``directory``, or collide on this file system. Nothing
            is left.
    """
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        with partial_folder(directory.parent) as folder:
            _unpack_all(archive, folder / "content", limits)
            (folder / "content").rename(directory)
    except OSError as error:
        raise ArchiveError(
            f"{archive}: cannot be unpacked to {directory} ({error}); "
            "free disk space, or remove that folder"
        ) from error


def _unpack_all(archive: Path, folder: Path, limits: UnpackLimits | None) -> None:
    folder.mkdir(mode=DIRECTORY_MODE)
    checks = MemberChecks()
    written = _Unpacked(folder)
    for member in read_members(archive, limits):
        problem = checks.problem(member)
        if problem is None and not written.add(member, normalize(member.name)):
            problem = "exists already, perhaps with other upper and lower case letters; rename it"
        if problem is not None:
            raise ArchiveError(f"{archive}: member {member.name[:300]!r} {problem}")


class _Unpacked:
    """What has been unpacked into ``root``."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folders: set[str] = {""}

    def add(self, member: ArchiveMember, name: str) -> bool:
        """Write a member; return False if another member has the same path on this file system."""
        try:
            if member.is_directory:
                self._create_folder(name)
            else:
                self._write(member, name)
        except FileExistsError:
            return False
        return True

    def _write(self, member: ArchiveMember, name: str) -> None:
        """Write a file of the archive, with the mode that packing gives to such a file."""
        path = self._root / name
        self._create_folder(name.rpartition("/")[0])
        with path.open("xb") as file:
            file.writelines(member.chunks())
        path.chmod(fold_mode(member.name, member.mode))

    def _create_folder(self, name: str) -> None:
        """Create a folder and the ones above it. Another name for a folder on disk is an error."""
        if name not in self._folders:
            self._create_folder(name.rpartition("/")[0])
            (self._root / name).mkdir(mode=DIRECTORY_MODE)
            self._folders.add(name)
