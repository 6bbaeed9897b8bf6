"""Recognizes the deploy-time functions of this library by the digest of their code."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from constructs_triton_functions import CODE_DIRECTORY, CODE_FOLDER

__all__ = ["library_handler"]

_MAX_BYTES = 4 * 1024 * 1024


@cache
def library_handler(archive: bytes) -> str | None:
    """Return the handler of a ``.zip`` file with exactly the code of one of this library's functions.

    The template's own property is not used: it could name any function that can be imported.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            members = [each for each in opened.infolist() if not each.is_dir()]
            if sum(each.file_size for each in members) > _MAX_BYTES:
                return None
            return _handlers().get(_digest((each.filename, opened.read(each)) for each in members))
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError):
        return None


@cache
def _handlers() -> dict[str, str]:
    """The handler of each function by the digest of its code."""
    root = CODE_DIRECTORY / CODE_FOLDER
    shared = list(root.glob("*.py"))
    folders = [each for each in root.iterdir() if (each / "handler.py").exists()]
    return {
        _digest(map(_read, [*shared, *folder.glob("*.py")])): f"{CODE_FOLDER}.{folder.name}.handler.handler"
        for folder in folders
    }


def _read(path: Path) -> tuple[str, bytes]:
    return path.relative_to(CODE_DIRECTORY).as_posix(), path.read_bytes()


def _digest(files: Iterable[tuple[str, bytes]]) -> str:
    digest = hashlib.sha256()
    for name, content in sorted(files):
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()
