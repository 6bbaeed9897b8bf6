"""Finds the Python version of a packed conda environment."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from constructs_triton.errors import ArchiveError
from constructs_triton.untrusted.tar_reader import UnpackLimits, read_members

__all__ = ["packed_python"]

_LIBRARY = re.compile(r"(?:^|/)lib/python(3\.\d+)(?:/|$)")
_LIMITS = UnpackLimits(max_members=20_000)


def packed_python(path: str) -> str | None:
    """Return the minor version of Python in an environment folder or its ``.tar.gz``, such as ``"3.12"``.

    ``None`` means that it is not an environment or cannot be read. The function reads only file names, and at
    most the first 20,000 of an archive.
    """
    try:
        names = _folder_names(path) if Path(path).is_dir() else _archive_names(path)
        for name in names:
            match = _LIBRARY.search(name)
            if match:
                return match.group(1)
    except (OSError, ValueError, ArchiveError):
        return None
    return None


def _folder_names(path: str) -> Iterator[str]:
    return (f"lib/{entry.name}" for entry in Path(path, "lib").iterdir())


def _archive_names(path: str) -> Iterator[str]:
    return (member.name for member in read_members(Path(path), _LIMITS))
