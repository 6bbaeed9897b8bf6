"""Construct libraries whose deploy-time functions run in the simulated account.

A library names a module with the members of ``ConstructLibrary`` in the entry-point group
``cdk_rehearse.libraries``. Without it, its custom resources are taken as created.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Protocol

__all__ = ["ConstructLibrary", "construct_libraries"]

_GROUP = "cdk_rehearse.libraries"


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
        self,
        resource_type: str,
        properties: Mapping[str, Any],
        read: Callable[[str, str], bytes | None],
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
