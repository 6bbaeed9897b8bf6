"""Construct libraries whose deploy-time functions run in the simulated account.

A library names a module with the members of ``ConstructLibrary`` in the entry-point group
``cdk_rehearse.libraries``. Without it, its custom resources are taken as created. Its functions are
recognized by the digest of their code.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Protocol

_GROUP = "cdk_rehearse.libraries"
_MAX_BYTES = 4 * 1024 * 1024


class ConstructLibrary(Protocol):
    """The deploy-time functions of a construct library, and what their custom resources expect."""

    @property
    def CODE_DIRECTORY(self) -> Path:  # noqa: N802 - a constant of a module
        """The directory that contains the code of the functions."""

    @property
    def CODE_FOLDER(self) -> str:  # noqa: N802 - a constant of a module
        """Its folder, the top-level package in AWS; each folder in it with ``handler.py`` is a function."""

    def buckets_of(self, resource_type: str, properties: Mapping[str, Any]) -> Collection[str]:
        """The buckets that a custom resource uses; none for the types of others."""

    def sources_of(
        self, resource_type: str, properties: Mapping[str, Any], read: Callable[[str, str], bytes | None]
    ) -> Iterable[tuple[str, str]]:
        """The objects that a custom resource expects in buckets of the user, as bucket and key.

        ``read`` returns the content of a bucket's object, or ``None`` if there is none.
        """


@cache
def construct_libraries() -> tuple[ConstructLibrary, ...]:
    """Return the installed libraries, in the order of their names."""
    from importlib.metadata import entry_points

    found = sorted(entry_points(group=_GROUP), key=lambda each: each.name)
    return tuple(each.load() for each in found)


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
