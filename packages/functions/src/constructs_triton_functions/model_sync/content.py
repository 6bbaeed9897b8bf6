"""What a custom resource places below its prefix: archives,
or the files of an uncompressed model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from . import FILES_RESOURCE_TYPE
from .file_placement import FilePlacement
from .manifest import FileManifest, ListedArchive, Manifest
from .placement import Placement, Source, objects_below
from .properties import FILES_FOLDER, INDEX_FILE, SyncProperties
from .pruning import prune, prune_folders


@dataclass(frozen=True)
class Task:
    """A part of the work that can be done at the same time as the others.

    ``label`` names it in errors. ``target_model`` is the archive or folder that it places, or a
    part of; empty for objects of others.
    """

    label: str
    run: Callable[[], None]
    target_model: str = ""


class Content(Protocol):
    """The content of a prefix."""

    @property
    def noun(self) -> str:
        """What the parts are called in errors, in the plural."""
        ...

    def tasks(self, placement: Placement) -> list[Task]:
        """The work, in an order that does not depend on what is in place already."""
        ...

    def others(self, placement: Placement) -> list[str]:
        """The objects that other deployments or programs placed,
        and that endpoints of this one may load.
        """
        ...

    def names(self, owner: str) -> Mapping[str, str]:
        """The names that the index has once everything is in place."""
        ...

    def prune(self, placement: Placement, expired: Iterable[str]) -> object:
        """Delete what has been without a name for long enough."""
        ...


def content_of(resource_type: str, manifest: bytes, properties: SyncProperties) -> Content:
    """The content that a manifest of this type of resource lists."""
    if resource_type == FILES_RESOURCE_TYPE:
        return _Files(FileManifest.from_json(manifest), properties)
    return _Archives(Manifest.from_json(manifest), properties)


@dataclass(frozen=True)
class _Archives:
    manifest: Manifest
    properties: SyncProperties
    noun: str = "archives"

    def tasks(self, placement: Placement) -> list[Task]:
        return [self._task(placement, archive) for archive in self.manifest.archives]

    def _task(self, placement: Placement, archive: ListedArchive) -> Task:
        source = _source(archive, self.properties)
        target_model = archive.target_model
        return Task(target_model, lambda: placement.place(source, target_model), target_model)

    def others(self, placement: Placement) -> list[str]:
        listed = {archive.target_model for archive in self.manifest.archives} | {INDEX_FILE}
        found = objects_below(placement.client, placement.bucket, placement.prefix)
        # Files below the prefix belong to other resources, which encrypt them again.
        return sorted(
            key for key in found if key not in listed and not key.startswith(FILES_FOLDER)
        )

    def names(self, owner: str) -> Mapping[str, str]:  # noqa: ARG002 - each archive has a name of its own
        return self.manifest.target_models

    def prune(self, placement: Placement, expired: Iterable[str]) -> Any:
        return prune(placement, expired)


def _source(archive: ListedArchive, properties: SyncProperties) -> Source:
    number = archive.given_bucket
    bucket = properties.source_bucket if number is None else properties.given_buckets[number]
    return Source(bucket, archive.source_key, archive.size_bytes)


@dataclass(frozen=True)
class _Files:
    manifest: FileManifest
    properties: SyncProperties
    noun: str = "files"

    def tasks(self, placement: Placement) -> list[Task]:
        files = FilePlacement(
            placement, self.properties.source_bucket, self.properties.folder, self.manifest
        )
        return [Task(label, run, self.properties.folder) for label, run in files.steps()]

    def others(self, placement: Placement) -> list[str]:
        # An endpoint loads one folder. A later deployment may return to another, whose key is
        # forgotten then.
        if not (placement.encryption.is_changed or placement.encryption.left_keys):
            return []
        found = objects_below(placement.client, placement.bucket, placement.prefix)
        return sorted(
            key for key in found if key != INDEX_FILE and not key.startswith(self.properties.folder)
        )

    def names(self, owner: str) -> Mapping[str, str]:
        # Several stacks may use the same prefix; a folder is kept as long as one of them uses it.
        return {owner: self.properties.folder}

    def prune(self, placement: Placement, expired: Iterable[str]) -> Any:
        return prune_folders(placement, expired)
