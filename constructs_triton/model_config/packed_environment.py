"""Which Python a packed conda environment holds."""

from __future__ import annotations

import re
import tarfile
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

__all__ = ["packed_python"]

_LIBRARY = re.compile(r"(?:^|/)lib/python(3\.\d+)(?:/|$)")
_MEMBERS_LOOKED_AT = 20_000


def packed_python(path: str) -> str | None:
    """The minor version of the Python below ``path``, an unpacked environment or a ``.tar.gz`` of one.

    ``None`` where it is no environment, or cannot be read. Only names are looked at, and of a large archive
    only the first twenty thousand.
    """
    try:
        names = _folder_names(path) if Path(path).is_dir() else _archive_names(path)
        for name in names:
            match = _LIBRARY.search(name)
            if match:
                return match.group(1)
    except (OSError, EOFError, ValueError, zlib.error, tarfile.TarError):
        return None
    return None


def _folder_names(path: str) -> Iterator[str]:
    return (f"lib/{entry.name}" for entry in Path(path, "lib").iterdir())


def _archive_names(path: str) -> Iterator[str]:
    with tarfile.open(path, "r|*") as archive:
        for member in islice(archive, _MEMBERS_LOOKED_AT):
            yield member.name
