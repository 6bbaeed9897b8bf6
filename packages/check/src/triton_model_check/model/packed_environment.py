"""Reads the file names of a packed Python environment, as Triton's Python backend unpacks it.

Of the content only the tags of wheels are read.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path

from constructs_triton_core.errors import ArchiveError
from constructs_triton_core.untrusted.regular_files import open_regular
from triton_model_check.untrusted.tar_reader import ArchiveMember, UnpackLimits, read_members

__all__ = ["packed_python", "read_environment"]

ACTIVATE = "bin/activate"
INTERPRETER = "bin/python3"
SETTINGS = "pyvenv.cfg"
_LIBRARY = re.compile(r"(?:^|/)lib/python(3\.\d+)(?:/|$)")
# Python takes the folder above bin/python3 as its own if it contains one of these.
_LANDMARK = re.compile(r"pyvenv\.cfg|lib/python3\.\d+/os\.py")
_EXTENSION = re.compile(
    r"(?P<module>.+)\.(?P<tag>abi3|(?:cpython|pypy|graalpy)-?\d[^./]*|cp\d[^./]*)\.(?:so|pyd)"
)
_PACKAGE = re.compile(r"(?:^|/)site-packages/([^/]+)")
_NUMPY = re.compile(r"numpy-(\d[^-/]*)\.dist-info")
_WHEEL = re.compile(r"(?:^|/)site-packages/([^/]+)\.dist-info/WHEEL$")
_TAG = re.compile(r"^Tag: (\S+)", re.MULTILINE)
_MOST_WHEEL_BYTES = 64 << 10
_CUDA = re.compile(r"(?:nvidia_|cuda_).*\.dist-info|[^-]+-[^-]*\+cu\d+\.dist-info")
_LIMITS = UnpackLimits(max_bytes=1 << 32)
_LINK = "is a symbolic link"
_LONGEST_PATH = 4096  # PATH_MAX: longer names cannot be unpacked
_OTHER_FORMATS = {
    b"\xfd7zXZ\0": "xz",
    b"BZh": "bzip2",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"PK\x03\x04": "zip",
}


@dataclass(frozen=True)
class PackedEnvironment:
    """What the file names of an environment say.

    Args:
        names: The paths of ``bin/activate`` and ``bin/python3``, of the folders of Python versions,
            and of the packages.
        is_complete: Whether all names were read.
        other_format: The format of an archive that the backend cannot unpack, or ``""``.
        is_archive: Whether it is a folder, or an archive of which at least the beginning can be
            read.
        unpacked_bytes: The size of its files, as far as it can be read; 0 for a folder.
        is_folder: Whether it is a folder in place of an archive.
        outside: The first member that would be unpacked outside of the environment or through a
            link, and why; ``""`` if there is none.
        wheels: The tags of each package, such as ``cp312-cp312-manylinux_2_28_x86_64``. Empty for a
            folder.
        extensions: The tags of compiled modules, such as ``cpython-312-x86_64-linux-gnu``, by the
            path of the module. A module may have files for several versions of Python. Empty for a
            folder.
    """

    names: frozenset[str] = frozenset()
    is_complete: bool = False
    other_format: str = ""
    is_archive: bool = True
    unpacked_bytes: int = 0
    is_folder: bool = False
    outside: str = ""
    wheels: Mapping[str, frozenset[str]] = field(default_factory=dict)
    extensions: Mapping[str, frozenset[str]] = field(default_factory=dict)

    @property
    def has_interpreter(self) -> bool:
        """Whether Python finds the packages without ``bin/activate``."""
        return INTERPRETER in self.names and any(map(_LANDMARK.fullmatch, self.names))

    @property
    def cuda_packages(self) -> list[str]:
        """The names of packages that contain libraries of CUDA, with their versions."""
        return sorted(
            name.removesuffix(".dist-info") for name in self.packages if _CUDA.fullmatch(name)
        )

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
    """Return the minor version of Python in an environment, such as ``"3.12"``,
    or ``None`` if unknown.
    """
    return read_environment(path).python


def read_environment(path: str) -> PackedEnvironment:
    """Read an environment: a folder, or an archive in tar format, plain or compressed with gzip.

    File names and the tags of wheels are read: at most 200,000 names, in at most 4 GiB of content.
    """
    try:
        if Path(path).is_dir():
            names = frozenset(_folder_names(Path(path)))
            return PackedEnvironment(names, is_complete=True, is_folder=True)
        with open_regular(Path(path)) as file:
            head, status = file.read(8), os.fstat(file.fileno())
    except (OSError, ValueError):
        return PackedEnvironment()
    other_format = next(
        (name for start, name in _OTHER_FORMATS.items() if head.startswith(start)), ""
    )
    return (
        PackedEnvironment(other_format=other_format)
        if other_format
        else _read_archive(Path(os.path.realpath(path)), (status.st_size, status.st_mtime_ns))
    )


def _folder_names(path: Path) -> Iterator[str]:
    """Yield the paths in an unpacked environment that checks look at."""
    yield from (name for name in (ACTIVATE, SETTINGS) if os.path.lexists(path / name))
    if os.access(path / INTERPRETER, os.X_OK) or (path / INTERPRETER).is_symlink():
        yield INTERPRETER
    for library in path.glob("lib/python3.*"):
        yield f"lib/{library.name}"
        if (library / "os.py").exists():
            yield f"lib/{library.name}/os.py"
        yield from (
            f"lib/{library.name}/site-packages/{each.name}"
            for each in library.glob("site-packages/*")
        )


@dataclass
class _Contents:
    """What the members that were read so far say."""

    names: set[str] = field(default_factory=set)
    links: set[str] = field(default_factory=set)
    wheels: dict[str, frozenset[str]] = field(default_factory=dict)
    tags: dict[str, set[str]] = field(default_factory=dict)
    outside: str = ""
    is_archive: bool = False
    unpacked_bytes: int = 0

    def add(self, member: ArchiveMember) -> None:
        """Note what the name of a member of an archive shows of the environment."""
        name = member.name.removeprefix("./")
        is_link = member.problem == _LINK
        self.is_archive, self.unpacked_bytes = True, self.unpacked_bytes + member.size
        if len(name) > _LONGEST_PATH:
            return
        self.outside = self.outside or self._outside(member.name)
        if is_link:
            self.links.add(os.path.normpath(name))
        # Python ignores an interpreter on PATH that is not executable.
        if name != INTERPRETER or is_link or member.mode & 0o111:
            self.names.update(_of_interest(name))
        wheel = _WHEEL.search(name)
        if wheel is not None and member.size <= _MOST_WHEEL_BYTES:
            self.wheels[wheel[1]] = frozenset(
                _TAG.findall(b"".join(member.chunks()).decode("latin-1"))
            )
        extension = _EXTENSION.fullmatch(name)
        if extension is not None:
            self.tags.setdefault(extension["module"], set()).add(extension["tag"])

    def _outside(self, name: str) -> str:
        """Return why libarchive refuses a member, in its words."""
        if name.startswith("/"):
            return f"Path is absolute: {name}"
        parts = name.split("/")
        if ".." in parts:
            return f"Path contains '..': {name}"
        path = os.path.normpath(name)
        parents = (path[: match.start()] for match in re.finditer("/", path))
        is_through = any(each in self.links for each in parents) if self.links else False
        return f"Cannot extract through symlink {name}" if is_through else ""

    def environment(self, *, is_complete: bool) -> PackedEnvironment:
        """Return the environment that the members describe."""
        return PackedEnvironment(
            frozenset(self.names),
            is_complete=is_complete,
            is_archive=self.is_archive,
            unpacked_bytes=self.unpacked_bytes,
            outside=self.outside,
            wheels=self.wheels,
            extensions={module: frozenset(tags) for module, tags in self.tags.items()},
        )


@lru_cache(maxsize=8)
def _read_archive(path: Path, state: tuple[int, int]) -> PackedEnvironment:  # noqa: ARG001 - part of the key
    contents = _Contents()
    try:
        for member in read_members(path, _LIMITS, accept_plain=True):
            contents.add(member)
    except (OSError, ValueError, ArchiveError):
        return contents.environment(is_complete=False)
    return contents.environment(is_complete=True)


def _of_interest(name: str) -> Iterator[str]:
    if _LANDMARK.fullmatch(name):
        yield name
    found = _PACKAGE.search(name) or _LIBRARY.search(name)
    if found is not None:
        yield name[: found.end()]
    elif f"/{name}".endswith(f"/{ACTIVATE}") or name == INTERPRETER:
        yield name
