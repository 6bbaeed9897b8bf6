"""Recognizes the deploy-time functions of this library by the digest of their code."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from constructs_triton.custom_resource_handlers import CODE_DIRECTORY, CODE_FOLDER

__all__ = ["is_of_this_library"]

_MAX_BYTES = 4 * 1024 * 1024


def is_of_this_library(archive: bytes) -> bool:
    """Return whether a ``.zip`` file contains exactly the code of one of this library's functions."""
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            members = [each for each in opened.infolist() if not each.is_dir()]
            if sum(each.file_size for each in members) > _MAX_BYTES:
                return False
            return _digest((each.filename, opened.read(each)) for each in members) in _digests()
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError):
        return False


@cache
def _digests() -> frozenset[str]:
    root = CODE_DIRECTORY / CODE_FOLDER
    shared = list(root.glob("*.py"))
    folders = [each for each in root.iterdir() if (each / "handler.py").exists()]
    return frozenset(_digest(map(_read, [*shared, *folder.glob("*.py")])) for folder in folders)


def _read(path: Path) -> tuple[str, bytes]:
    return path.relative_to(CODE_DIRECTORY).as_posix(), path.read_bytes()


def _digest(files: Iterable[tuple[str, bytes]]) -> str:
    digest = hashlib.sha256()
    for name, content in sorted(files):
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()
