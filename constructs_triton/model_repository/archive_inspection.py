"""Reads a model archive that another tool created, and reports what SageMaker could not serve."""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from blake3 import blake3
from isal import igzip, isal_zlib

from constructs_triton.errors import ArchiveError
from constructs_triton.model_repository.content_digest import ContentDigest, digest_of
from constructs_triton.model_repository.members import DIRECTORY_MODE, FileState, Member, fold_mode, is_utf8

__all__ = ["InspectedArchive", "inspect_archive"]

_CHUNK_BYTES = 1 << 20
_DEFLATE_ERROR = cast("type[Exception]", isal_zlib.error)  # isal's stub declares an instance
_TYPES = {
    tarfile.SYMTYPE: "a symbolic link",
    tarfile.LNKTYPE: "a hard link",
    tarfile.CHRTYPE: "a device",
    tarfile.BLKTYPE: "a device",
    tarfile.FIFOTYPE: "a named pipe",
}


@dataclass(frozen=True, slots=True)
class InspectedArchive:
    """The content of a ``.tar.gz``.

    ``digest`` is the same that ``pack`` gives for this content. ``models`` are the directories at its root,
    sorted. ``size_bytes`` is the size of the file, ``unpacked_size_bytes`` the sum of its members.
    """

    path: Path
    digest: str
    models: tuple[str, ...]
    size_bytes: int
    unpacked_size_bytes: int


def inspect_archive(path: Path | str, *, outline_directory: Path | None = None) -> InspectedArchive:
    """Read a model archive from end to end, in constant memory.

    With ``outline_directory``, a new folder, the part that checks read is unpacked into it: the first MiB of
    each file. The rest is a hole of the right size (a sparse file).

    Raises:
        ArchiveError: it cannot be read, a member is a link or a device or would be unpacked outside the
            folder, or its root contains anything but model directories. The message lists every such member.
    """
    archive = Path(path)
    reading = _Reading(archive, outline_directory)
    with _read_errors(archive), _open(archive) as stream, tarfile.open(fileobj=stream, mode="r|") as tar:
        for info in tar:
            reading.add(tar, info)
        while stream.read(_CHUNK_BYTES):
            pass  # to the end of the gzip stream, where its checksum is
    reading.check_layout()
    if reading.problems:
        raise ArchiveError("\n".join(reading.problems))
    return reading.result()


def _open(archive: Path) -> igzip.IGzipFile:
    return igzip.IGzipFile(archive)  # type: ignore[no-untyped-call]  # isal's stub gives it no signature


@contextmanager
def _read_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError, tarfile.TarError, _DEFLATE_ERROR) as error:
        raise ArchiveError(f"{path}: cannot be read as .tar.gz ({error}); create it again") from error


@dataclass
class _Reading:
    path: Path
    outline: Path | None = None
    members: dict[str, Member] = field(default_factory=dict)
    digests: dict[str, ContentDigest] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def add(self, tar: tarfile.TarFile, info: tarfile.TarInfo) -> None:
        name = _normalize(info.name)
        if not name and info.isdir():
            return  # "./", which `tar -C models .` writes
        problem = self._problem(info, name)
        if problem is not None:
            self.problems.append(f"{self.path}: member {info.name!r} {problem}")
        elif info.isdir():
            self.members[name] = Member(name, DIRECTORY_MODE)
            if self.outline is not None:
                (self.outline / name).mkdir(parents=True, exist_ok=True)
        else:
            self.members[name] = Member(name, fold_mode(info.mode), info.name, _state(info))
            self.digests[name] = _digest(tar, info, None if self.outline is None else self.outline / name)

    def _problem(self, info: tarfile.TarInfo, name: str) -> str | None:
        if info.name.startswith("/") or ".." in info.name.split("/"):
            return "would be unpacked outside its folder; run tar inside the model repository"
        if not (info.isreg() or info.isdir()):
            return f"is {_TYPES.get(info.type, 'of an unknown type')}; archive only files and folders"
        if not is_utf8(name):
            return "has a name that is not UTF-8; rename it"
        if name in self.members and not (info.isdir() and self.members[name].is_directory):
            return "occurs twice; create the archive again"
        return None

    def check_layout(self) -> None:
        """Report everything at the root that is not a model directory."""
        for name, member in self.members.items():
            if "/" not in name and not member.is_directory:
                self.problems.append(self._stray_file(name))
        for name in self._roots():
            if not self._is_model(name):
                self.problems.append(
                    f"{self.path}: directory {name!r} is not a model, it has neither config.pbtxt nor "
                    "a version directory; put only model directories at the archive's root"
                )
        if not self._roots() and not self.problems:
            self.problems.append(f"{self.path}: contains no model directory; put one at the archive's root")

    def _stray_file(self, name: str) -> str:
        return (
            f"{self.path}: member {name!r} is at the archive's root, outside a model directory; "
            "put only model directories at the archive's root"
        )

    def _roots(self) -> list[str]:
        roots = {name.split("/")[0] for name in self.members}
        return sorted(root for root in roots if root not in self.members or self.members[root].is_directory)

    def _is_model(self, name: str) -> bool:
        version = re.compile(rf"{re.escape(name)}/\d+(/.*)?")
        return f"{name}/config.pbtxt" in self.members or any(map(version.fullmatch, self.members))

    def result(self) -> InspectedArchive:
        members = list(self.members.values())
        return InspectedArchive(
            path=self.path,
            digest=digest_of(members, self.digests),
            models=tuple(self._roots()),
            size_bytes=self.path.stat().st_size,
            unpacked_size_bytes=sum(member.size for member in members),
        )


def _normalize(name: str) -> str:
    return "/".join(part for part in name.split("/") if part not in ("", "."))


def _state(info: tarfile.TarInfo) -> FileState:
    return FileState(device=0, inode=0, size=info.size, mtime_ns=0, ctime_ns=0)


def _digest(tar: tarfile.TarFile, info: tarfile.TarInfo, outline: Path | None) -> ContentDigest:
    content = blake3()
    file = tar.extractfile(info)
    beginning = file.read(_CHUNK_BYTES) if file is not None else b""
    if outline is not None:
        _write_outline(outline, beginning, info.size)
    content.update(beginning)
    while file is not None and (chunk := file.read(_CHUNK_BYTES)):
        content.update(chunk)
    return content.digest()


def _write_outline(path: Path, beginning: bytes, size: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.write(beginning)
        file.truncate(size)
