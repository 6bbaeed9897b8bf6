"""Reads a model archive that was made elsewhere, without unpacking it, and refuses what would not serve."""

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

__all__ = ["ArchiveContents", "inspect_archive"]

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
class ArchiveContents:
    """What a ``.tar.gz`` holds.

    ``digest`` is the identity that ``pack`` gives the same content. ``models`` are the directories at its
    root, sorted. Sizes are in bytes: that of the file, and the sum of the contents.
    """

    path: Path
    digest: str
    models: tuple[str, ...]
    size_bytes: int
    unpacked_size_bytes: int


def inspect_archive(path: Path | str, *, outline_directory: Path | None = None) -> ArchiveContents:
    """Read a model archive from end to end, in constant memory.

    With ``outline_directory``, a new folder, the members are unpacked into it as far as checks look at them:
    of each file the first MiB, and a hole for the rest.

    Raises:
        ArchiveError: it cannot be read, a member would land outside its folder or is a link or a device, or
            its root does not hold model directories and nothing else. The message names every such member.
    """
    archive = Path(path)
    reading = _Reading(archive, outline_directory)
    with _read_errors(archive), _open(archive) as stream, tarfile.open(fileobj=stream, mode="r|") as tar:
        for info in tar:
            reading.add(tar, info)
        while stream.read(_CHUNK_BYTES):
            pass  # to the end of the gzip stream, whose check sum is there
    reading.check_layout()
    if reading.problems:
        raise ArchiveError("\n".join(reading.problems))
    return reading.contents()


def _open(archive: Path) -> igzip.IGzipFile:
    return igzip.IGzipFile(archive)  # type: ignore[no-untyped-call]  # isal's stub gives it no signature


@contextmanager
def _read_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError, tarfile.TarError, _DEFLATE_ERROR) as error:
        raise ArchiveError(f"{path}: cannot be read as .tar.gz, got {error}; pack it again") from error


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
            return  # "./", as `tar -C models .` writes it
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
            return "would be unpacked outside its folder; pack from inside the model repository"
        if not (info.isreg() or info.isdir()):
            return f"is {_TYPES.get(info.type, 'of an unknown kind')}; pack files and folders alone"
        if not is_utf8(name):
            return "has a name that is not UTF-8; rename it"
        if name in self.members and not (info.isdir() and self.members[name].is_directory):
            return "is there twice; pack it again"
        return None

    def check_layout(self) -> None:
        """Model directories, and nothing else, at the root."""
        for name, member in self.members.items():
            if "/" not in name and not member.is_directory:
                self.problems.append(self._stray_file(name))
        for name in self._roots():
            if not self._is_model(name):
                self.problems.append(
                    f"{self.path}: directory {name!r} is no model, it has neither config.pbtxt nor a version "
                    "directory; put model directories at the archive's root and nothing else"
                )
        if not self._roots() and not self.problems:
            self.problems.append(f"{self.path}: holds no model directory; put one at the archive's root")

    def _stray_file(self, name: str) -> str:
        mend = "put model directories at the archive's root and nothing else"
        return (
            f"{self.path}: member {name!r} lies at the archive's root, outside of a model directory; {mend}"
        )

    def _roots(self) -> list[str]:
        roots = {name.split("/")[0] for name in self.members}
        return sorted(root for root in roots if root not in self.members or self.members[root].is_directory)

    def _is_model(self, name: str) -> bool:
        version = re.compile(rf"{re.escape(name)}/\d+(/.*)?")
        return f"{name}/config.pbtxt" in self.members or any(map(version.fullmatch, self.members))

    def contents(self) -> ArchiveContents:
        members = list(self.members.values())
        return ArchiveContents(
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
