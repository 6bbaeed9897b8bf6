"""Construct libraries whose deploy-time functions run in the simulated account.

A library names a module with the members of ``ConstructLibrary`` in the entry-point group
``cdk_rehearse.libraries``. Without it, its custom resources are taken as created. Its functions,
and those of its releases, are recognized by the digest of their code.
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from constructs_triton_core.cloud_assembly.synthesized_stack import SynthesizedStack
from constructs_triton_core.model_tensors import ModelTensor

_GROUP = "cdk_rehearse.libraries"
_MAX_BYTES = 4 * 1024 * 1024


class ConstructLibrary(Protocol):
    """The deploy-time functions of a construct library, and what their custom resources expect."""

    @property
    def CODE_DIRECTORY(self) -> Path:  # noqa: N802 - a constant of a module
        """The directory that contains the code of the functions."""

    @property
    def CODE_FOLDER(self) -> str:  # noqa: N802 - a constant of a module
        """Its folder, the top-level package in AWS; each folder in it with
        ``handler.py`` is a function.
        """

    @property
    def RELEASED_FUNCTIONS(self) -> Mapping[str, str]:  # noqa: N802 - a constant of a module
        """The handler of each released function, by its digest as in :func:`function_digests`."""

    def buckets_of(self, resource_type: str, properties: Mapping[str, Any]) -> Collection[str]:
        """The buckets that a custom resource uses; none for the types of others."""

    def sources_of(
        self,
        resource_type: str,
        properties: Mapping[str, Any],
        read: Callable[[str, str], bytes | None],
    ) -> Iterable[tuple[str, str]]:
        """The objects that a custom resource expects in buckets of the user, as bucket and key.

        ``read`` returns the content of a bucket's object, or ``None`` if there is none.
        """

    def assume_adopted(
        self, stack: SynthesizedStack, api: Any, assume_role: Callable[[str], None]
    ) -> None:
        """Create what exists before a stack that takes it over; ``api`` is a ``ServiceApi``."""

    def places_of(
        self, resource_type: str, properties: Mapping[str, Any]
    ) -> Iterable[tuple[str, str]]:
        """Where a custom resource places objects, as bucket and prefix;
        properties may be of any version.
        """

    def targets_of(
        self, resource_type: str, properties: Mapping[str, Any]
    ) -> Iterable[tuple[str, int]]:
        """What a custom resource registers for scaling, as resource ID and maximum;
        properties as above.
        """

    def tensors_of(self, files: Mapping[str, bytes], model: str) -> Collection[ModelTensor] | None:
        """The inputs and outputs of a model, for callers; ``None`` if they are not known.

        ``files`` are those of a model repository by path, or ``model.tar.gz`` alone. ``model`` is
        the name of the model that is called, or empty if it is the only one.
        """


@cache
def construct_libraries() -> tuple[ConstructLibrary, ...]:
    """Return the installed libraries, in the order of their names."""
    from importlib.metadata import entry_points

    found = sorted(entry_points(group=_GROUP), key=lambda entry_point: entry_point.name)
    return tuple(entry_point.load() for entry_point in found)


@cache
def library_handler(archive: bytes) -> str | None:
    """Return the handler of a ``.zip`` file with exactly the code of a construct library's
    function.

    The template's own property is not used: it could name any function that can be imported.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            members = [member for member in opened.infolist() if not member.is_dir()]
            if sum(member.file_size for member in members) > _MAX_BYTES:
                return None
            files = [(member.filename, opened.read(member)) for member in members]
            return _handlers().get(_digest(files))
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError):
        return None


@cache
def _handlers() -> dict[str, str]:
    """The handler of each function by the digest of its code."""
    found: dict[str, str] = {}
    for library in construct_libraries():
        found |= library.RELEASED_FUNCTIONS
        found |= function_digests(library.CODE_DIRECTORY / library.CODE_FOLDER)
    return found


def is_named_as_library(handler: str) -> bool:
    """Whether a handler has the name of a library's function,
    in a top-level package of any name.
    """
    known = {library_handler.partition(".")[2] for library_handler in _handlers().values()}
    return handler.partition(".")[2] in known


def function_digests(root: Path) -> dict[str, str]:
    """Return the handler of each function in a library's folder, by the digest of its code."""
    found = {}
    shared = list(root.glob("*.py"))
    for folder in root.iterdir():
        if (folder / "handler.py").exists():
            files = [*shared, *folder.glob("*.py")]
            members = (
                (path.relative_to(root.parent).as_posix(), path.read_bytes()) for path in files
            )
            found[_digest(members)] = f"{root.name}.{folder.name}.handler.handler"
    return found


def _digest(files: Iterable[tuple[str, bytes]]) -> str:
    digest = hashlib.sha256()
    for name, content in sorted(files):
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()
