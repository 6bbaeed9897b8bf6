"""Reads a model archive that another tool created, and reports what SageMaker could not serve."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from blake3 import blake3

from constructs_triton_core.errors import ArchiveError
from triton_model_check.model_repository.content_digest import ContentDigest, digest_of
from triton_model_check.model_repository.member_checks import MemberChecks, normalize
from triton_model_check.model_repository.members import DIRECTORY_MODE, FileState, Member, fold_mode
from triton_model_check.untrusted.tar_reader import ArchiveMember, UnpackLimits, read_members

__all__ = ["OUTLINE_BYTES", "inspect_archive"]

OUTLINE_BYTES = 1 << 20
"""Bytes of each file that are unpacked into an outline."""
_MAX_PROBLEMS = 100
_MODEL_PART = re.compile(r"([^/]+)/(?:config\.pbtxt|\d+(?:/.*)?)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class InspectedArchive:
    """The content of a ``.tar.gz``.

    ``digest`` is the one that ``pack`` gives for this content. ``models`` are the directories at
    its root, sorted. ``unpacked_size_bytes`` is the sum of the sizes of its members.
    """

    path: Path
    digest: str
    models: tuple[str, ...]
    size_bytes: int
    unpacked_size_bytes: int


def inspect_archive(
    path: Path | str,
    *,
    outline_directory: Path | None = None,
    outline_bytes: int = OUTLINE_BYTES,
    limits: UnpackLimits | None = None,
) -> InspectedArchive:
    """Read a model archive from end to end. Memory grows only with the number of its members.

    Args:
        path: Path of the ``.tar.gz``.
        outline_directory: New folder for the beginning of each file. The rest is a hole of the
            right size (a sparse file). Default: nothing is unpacked.
        outline_bytes: Length of a beginning. Default: the MiB that checks read.
        limits: Bounds on the content. Default: :meth:`UnpackLimits.from_environment`.

    Raises:
        ArchiveError: it cannot be read, exceeds ``limits``, a member is a link or a device or would
            be unpacked outside the folder, or its root contains anything but model directories. The
            message lists the first 100 such members.
    """
    archive = Path(path)
    reading = _Reading(archive, outline_directory, outline_bytes)
    for member in read_members(archive, limits):
        try:
            reading.add(member)
        except (
            OSError
        ) as error:  # a full disk, or a file system that does not distinguish two names
            raise ArchiveError(
                f"{archive}: cannot be unpacked ({error}); free disk space"
            ) from error
    reading.check_layout()
    if reading.problems:
        raise ArchiveError("\n".join(reading.problems))
    return reading.result()


@dataclass
class _Reading:
    path: Path
    outline: Path | None = None
    outline_bytes: int = OUTLINE_BYTES
    members: dict[str, Member] = field(default_factory=dict)
    digests: dict[str, ContentDigest] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    checks: MemberChecks = field(default_factory=MemberChecks)

    def add(self, member: ArchiveMember) -> None:
        """Add a member of the archive, and report what is wrong with it."""
        name = normalize(member.name)
        problem = self.checks.problem(member)
        if problem is not None:
            self._report(f"{self.path}: member {member.name[:300]!r} {problem}")
        elif not name:
            return  # "./", which `tar -C models .` writes
        elif member.is_directory:
            self.members[name] = Member(name, DIRECTORY_MODE)
            if self.outline is not None:
                (self.outline / name).mkdir(parents=True, exist_ok=True)
        else:
            state = FileState(device=0, inode=0, size=member.size, mtime_ns=0, ctime_ns=0)
            self.members[name] = Member(name, fold_mode(name, member.mode), member.name, state)
            outline = None if self.outline is None else self.outline / name
            self.digests[name] = _digest(member, outline, self.outline_bytes)

    def _report(self, problem: str) -> None:
        if len(self.problems) < _MAX_PROBLEMS:
            self.problems.append(problem)

    def check_layout(self) -> None:
        """Report everything at the root that is not a model directory."""
        for name, member in self.members.items():
            if "/" not in name and not member.is_directory:
                self._report(
                    f"{self.path}: member {name!r} is at the archive's root, outside a model "
                    "directory; put only model directories at the archive's root"
                )
        models = {match[1] for match in map(_MODEL_PART.fullmatch, self.members) if match}
        for name in self._roots():
            if name not in models:
                self._report(
                    f"{self.path}: directory {name!r} is not a model, it has neither config.pbtxt "
                    "nor a version directory; put only model directories at the archive's root"
                )
        if not self._roots() and not self.problems:
            self.problems.append(
                f"{self.path}: contains no model directory; put one at the archive's root"
            )

    def _roots(self) -> list[str]:
        roots = {name.split("/")[0] for name in self.members}
        return sorted(
            root for root in roots if root not in self.members or self.members[root].is_directory
        )

    def result(self) -> InspectedArchive:
        """Return what was read of the archive."""
        members = list(self.members.values())
        return InspectedArchive(
            path=self.path,
            digest=digest_of(members, self.digests),
            models=tuple(self._roots()),
            size_bytes=self.path.stat().st_size,
            unpacked_size_bytes=sum(member.size for member in members),
        )


def _digest(member: ArchiveMember, outline: Path | None, outline_bytes: int) -> ContentDigest:
    """Hash the content, and write its beginning to ``outline``."""
    content = blake3()
    if outline is None:
        for chunk in member.chunks():
            content.update(chunk)
        return content.digest()
    outline.parent.mkdir(parents=True, exist_ok=True)
    with outline.open("xb") as file:
        for chunk in member.chunks():
            content.update(chunk)
            file.write(chunk[: max(0, outline_bytes - file.tell())])
        file.truncate(member.size)
    return content.digest()
