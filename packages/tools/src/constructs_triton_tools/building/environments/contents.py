"""What a packed environment contains: packages with versions and licenses,
and libraries that they bundle.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.message import Message
from email.parser import BytesHeaderParser
from pathlib import Path

from constructs_triton_core.errors import ArchiveError, InvalidValueError
from triton_model_check.artifacts.environments.lock import LOCK_MEMBER, EnvironmentLock, read_lock
from triton_model_check.untrusted.tar_reader import ArchiveMember, UnpackLimits, read_members

_LIMITS = UnpackLimits(max_bytes=1 << 36)
_MOST_LOCK_BYTES = 16 << 20
_MOST_METADATA_BYTES = 1 << 20
_MOST_PACKAGES = 10_000
#: Of all packages, and the names of libraries; a large environment has 30 MiB of metadata.
_MOST_BYTES_IN_ALL = 256 << 20
_METADATA = re.compile(r"lib/python(3\.\d+)/site-packages/[^/]+\.dist-info/METADATA")
_BUNDLED = re.compile(r"lib/python3\.\d+/site-packages/([^/]+\.libs)/([^/]+)")
_LONGEST_LICENSE = 60
_CLASSIFIER = "License :: "


@dataclass(frozen=True, slots=True)
class InstalledPackage:
    """A package, and the license that its metadata names; ``""`` if it names none."""

    name: str
    version: str
    license: str


@dataclass(frozen=True, slots=True)
class EnvironmentContents:
    """What a packed environment contains.

    ``python`` is the minor version of Python, ``""`` if no package says it. ``bundled`` are
    libraries that wheels contain beside their modules, by folder such as ``scipy.libs``; their
    licenses may differ from that of the package. ``lock`` is set if ``constructs-triton env build``
    has built the archive.
    """

    python: str
    packages: tuple[InstalledPackage, ...]
    bundled: Mapping[str, tuple[str, ...]]
    unpacked_bytes: int
    lock: EnvironmentLock | None
    lock_sha256: str


def read_contents(path: Path) -> EnvironmentContents:
    """Read a packed environment, also one of conda-pack or venv-pack. It is not unpacked."""
    if not path.is_file():
        reason = "is a folder" if path.is_dir() else "does not exist"
        raise InvalidValueError(
            f"{path}: {reason}; pass an archive of `constructs-triton env build`"
        )
    packages = []
    pythons = set()
    bundled = dict[str, list[str]]()
    size = 0
    kept = 0
    lock = b""
    for member in read_members(path, _LIMITS, accept_plain=True):
        name = os.path.normpath(member.name)
        size += member.size
        if name == LOCK_MEMBER:
            lock = _content(path, member, _MOST_LOCK_BYTES)
        elif match := _METADATA.fullmatch(name):
            pythons.add(match[1])
            content = _content(path, member, _MOST_METADATA_BYTES)
            packages.append(_package(BytesHeaderParser().parsebytes(content)))
            kept += len(content)
        elif match := _BUNDLED.fullmatch(name):
            kept += len(name)
            bundled.setdefault(match[1], []).append(match[2])
        if len(packages) > _MOST_PACKAGES or kept > _MOST_BYTES_IN_ALL:
            raise ArchiveError(
                f"{path}: contains more than {_MOST_PACKAGES} packages or "
                f"{_MOST_BYTES_IN_ALL >> 20} MiB of metadata; pass an environment"
            )
    if not packages and not lock:
        raise ArchiveError(
            f"{path}: contains no Python packages; pass an archive of `constructs-triton env "
            "build`, conda-pack or venv-pack"
        )
    return EnvironmentContents(
        python=min(pythons, default=""),
        packages=tuple(sorted(packages, key=lambda package: package.name.lower())),
        bundled={folder: tuple(sorted(names)) for folder, names in sorted(bundled.items())},
        unpacked_bytes=size,
        lock=read_lock(lock, f"{path}: {LOCK_MEMBER}") if lock else None,
        lock_sha256=hashlib.sha256(lock).hexdigest() if lock else "",
    )


def _content(path: Path, member: ArchiveMember, most_bytes: int) -> bytes:
    if member.size > most_bytes:
        raise ArchiveError(
            f"{path}: {member.name} must have at most {most_bytes} bytes, "
            f"got {member.size}; build the environment again"
        )
    return b"".join(member.chunks())


def _package(metadata: Message) -> InstalledPackage:
    return InstalledPackage(
        str(metadata["Name"] or "unknown"),
        str(metadata["Version"] or ""),
        next(_licenses(metadata), ""),
    )


def _licenses(metadata: Message) -> Iterator[str]:
    """Yield what the metadata says of the license, the most exact first.

    Some contain its whole text.
    """
    if expression := metadata["License-Expression"]:
        yield str(expression)
    text = str(metadata["License"] or "").strip()
    if text and len(text) <= _LONGEST_LICENSE and "\n" not in text:
        yield text
    classifiers = [str(classifier) for classifier in metadata.get_all("Classifier", ())]
    found = [
        classifier.rpartition(" :: ")[2]
        for classifier in classifiers
        if classifier.startswith(_CLASSIFIER)
    ]
    if found:
        yield ", ".join(found)
