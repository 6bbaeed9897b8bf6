"""Recognizes the deploy-time functions of construct libraries by the digest of their code."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Iterable, Iterator
from functools import cache

from ..construct_libraries import ConstructLibrary, construct_libraries

__all__ = ["library_handler"]

_MAX_BYTES = 4 * 1024 * 1024


@cache
def library_handler(archive: bytes) -> str | None:
    """Return the handler of a ``.zip`` file with exactly the code of a construct library's function.

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
    return {digest: handler for each in construct_libraries() for digest, handler in _handlers_of(each)}


def _handlers_of(library: ConstructLibrary) -> Iterator[tuple[str, str]]:
    root = library.CODE_DIRECTORY / library.CODE_FOLDER
    shared = list(root.glob("*.py"))
    for folder in root.iterdir():
        if (folder / "handler.py").exists():
            files = [*shared, *folder.glob("*.py")]
            members = (
                (path.relative_to(library.CODE_DIRECTORY).as_posix(), path.read_bytes()) for path in files
            )
            yield _digest(members), f"{library.CODE_FOLDER}.{folder.name}.handler.handler"


def _digest(files: Iterable[tuple[str, bytes]]) -> str:
    digest = hashlib.sha256()
    for name, content in sorted(files):
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()
