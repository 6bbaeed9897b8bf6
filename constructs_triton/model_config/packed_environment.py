"""Reads the file names of a packed Python environment, as Triton's Python backend unpacks it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from constructs_triton.errors import ArchiveError
from constructs_triton.untrusted.regular_files import open_regular
from constructs_triton.untrusted.tar_reader import UnpackLimits, read_members

__all__ = ["ACTIVATE", "INTERPRETER", "PackedEnvironment", "packed_python", "read_environment"]

ACTIVATE, INTERPRETER = "bin/activate", "bin/python3"
_LIBRARY = re.compile(r"(?:^|/)lib/python(3\.\d+)(?:/|$)")
_PACKAGE = re.compile(r"(?:^|/)site-packages/([^/]+)")
_NUMPY = re.compile(r"numpy-(\d[^-/]*)\.dist-info")
_CUDA = re.compile(r"(?:nvidia_|cuda_).*\.dist-info|[^-]+-[^-]*\+cu\d+\.dist-info")
_LIMITS = UnpackLimits(max_bytes=1 << 32)
_OTHER_FORMATS = {b"\xfd7zXZ\0": "xz", b"BZh": "bzip2", b"\x28\xb5\x2f\xfd": "zstd", b"PK\x03\x04": "zip"}


@dataclass(frozen=True)
class PackedEnvironment:
    """What the file names of an environment say.

    Args:
        names: The paths of ``bin/activate`` and ``bin/python3``, of the folders of Python versions, and of
            the packages.
        is_complete: Whether all names were read.
        other_format: The format of an archive that the backend cannot unpack, or ``""``.
        is_archive: Whether it is a folder, or an archive of which at least the beginning can be read.
        unpacked_bytes: The size of its files, as far as it can be read; 0 for a folder.
    """

    names: frozenset[str] = frozenset()
    is_complete: bool = False
    other_format: str = ""
    is_archive: bool = True
    unpacked_bytes: int = 0

    @property
    def has_interpreter(self) -> bool:
        """Whether Python finds the packages without ``bin/activate``."""
        return INTERPRETER in self.names

    @property
    def cuda_packages(self) -> list[str]:
        """The names of packages that contain libraries of CUDA, with their versions."""
        return sorted(name.removesuffix(".dist-info") for name in self.packages if _CUDA.fullmatch(name))

    @property
    def python(self) -> str | None:
        """The minor version of Python, such as ``"3.12"``, or ``None`` if unknown."""
        found = filter(None, map(_LIBRARY.search, sorted(self.names)))
        return next((match[1] for match in found), None)

    @property
    def numpy(self) -> str | None:
        """The version of NumPy, or ``None`` if there is none."""
        found = filter(None, map(_NUMPY.fullmatch, sorted(self.packages)))
        return next((match[1] for match in found), None)

    @cached_property
    def packages(self) -> frozenset[str]:
        """The names in ``site-packages``."""
        found = filter(None, map(_PACKAGE.search, self.names))
        return frozenset(match[1] for match in found)

    @property
    def activate(self) -> str | None:
        """The path of the script that must be at the root, or ``None`` if there is none."""
        paths = (name for name in self.names if f"/{name}".endswith(f"/{ACTIVATE}"))
        return min(paths, key=len, default=None)


def packed_python(path: str) -> str | None:
    """Return the minor version of Python in an environment, such as ``"3.12"``, or ``None`` if unknown."""
    return read_environment(path).python


def read_environment(path: str) -> PackedEnvironment:
    """Read an environment: a folder, or an archive in tar format, plain or compressed with gzip.

    Only file names are read: at most 200,000, in at most 4 GiB of content.
    """
    try:
        if Path(path).is_dir():
            return PackedEnvironment(frozenset(_folder_names(Path(path))), is_complete=True)
        with open_regular(Path(path)) as file:
            head, status = file.read(8), os.fstat(file.fileno())
    except (OSError, ValueError):
        return PackedEnvironment()
    other_format = next((name for start, name in _OTHER_FORMATS.items() if head.startswith(start)), "")
    return (
        PackedEnvironment(other_format=other_format)
        if other_format
        else _read_archive(Path(os.path.realpath(path)), (status.st_size, status.st_mtime_ns))
    )


def _folder_names(path: Path) -> Iterator[str]:
    yield from (name for name in (ACTIVATE, INTERPRETER) if os.path.lexists(path / name))
    for library in path.glob("lib/python3.*"):
        yield f"lib/{library.name}"
        yield from (
            f"lib/{library.name}/site-packages/{each.name}" for each in library.glob("site-packages/*")
        )


@lru_cache(maxsize=8)
def _read_archive(path: Path, state: tuple[int, int]) -> PackedEnvironment:  # noqa: ARG001 - part of the key
    names: set[str] = set()
    is_archive, unpacked_bytes = False, 0
    try:
        for member in read_members(path, _LIMITS, accept_plain=True):
            names.update(_of_interest(member.name.removeprefix("./")))
            is_archive, unpacked_bytes = True, unpacked_bytes + member.size
    except (OSError, ValueError, ArchiveError):
        return PackedEnvironment(frozenset(names), is_archive=is_archive, unpacked_bytes=unpacked_bytes)
    return PackedEnvironment(frozenset(names), is_complete=True, unpacked_bytes=unpacked_bytes)


def _of_interest(name: str) -> Iterator[str]:
    found = _PACKAGE.search(name) or _LIBRARY.search(name)
    if found is not None:
        yield name[: found.end()]
    elif f"/{name}".endswith(f"/{ACTIVATE}") or name == INTERPRETER:
        yield name
