"""Deletes archives and folders: those without a name for long enough,
or everything below a prefix.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

from .index import read_index, update_index
from .placement import OWNER_METADATA, Placement, SyncError, head
from .properties import INDEX_FILE

__all__ = ["empty_prefix", "prune", "prune_folders"]

LOGGER = logging.getLogger(__name__)


def prune(placement: Placement, target_models: Iterable[str]) -> list[str]:
    """Delete archives without a name that ``placement``'s owner has placed; returns those deleted.

    What is left when time runs out is deleted by a later deployment.
    """
    client, bucket, prefix = placement.client, placement.bucket, placement.prefix
    named = _NamedModels(placement)
    pruned, missing = [], set()
    for target_model in sorted(set(target_models)):
        if placement.is_time_up():
            break
        if target_model in named:
            continue
        found = head(client, bucket, prefix + target_model)
        if found is None:
            missing.add(target_model)  # a run that ended before it wrote the index has deleted it
        elif found["Metadata"].get(OWNER_METADATA) == placement.owner:
            client.delete_object(Bucket=bucket, Key=prefix + target_model)
            LOGGER.info("%s%s pruned", prefix, target_model)
            pruned.append(target_model)
    if pruned or missing:
        update_index(
            client,
            bucket,
            prefix,
            lambda index: index.without_retired(missing.union(pruned)),
            placement.encryption,
        )
    return sorted(pruned)


class _NamedModels:
    """What the index names, read again whenever another process has written it.

    Thousands of deletions take minutes, in which another stack may name an archive again.
    """

    def __init__(self, placement: Placement) -> None:
        self._placement = placement
        self._version: str | None = "not read yet"
        self._names: frozenset[str] = frozenset()

    def __contains__(self, target_model: str) -> bool:
        client, bucket, prefix = (
            self._placement.client,
            self._placement.bucket,
            self._placement.prefix,
        )
        found = head(client, bucket, prefix + INDEX_FILE)
        version = None if found is None else found["ETag"]
        if version != self._version:
            self._version = version
            self._names = frozenset(read_index(client, bucket, prefix).target_models.values())
        return target_model in self._names


def prune_folders(placement: Placement, folders: Iterable[str]) -> list[str]:
    """Delete folders of files without a name that ``placement``'s owner has placed; returns those
    deleted.

    What is left when time runs out is deleted by a later deployment.
    """
    client, bucket, prefix = placement.client, placement.bucket, placement.prefix
    named = _NamedModels(placement)
    pruned = [
        folder
        for folder in sorted(set(folders))
        if folder not in named and _prune_folder(placement, folder)
    ]
    if pruned:
        update_index(
            client,
            bucket,
            prefix,
            lambda index: index.without_retired(set(pruned)),
            placement.encryption,
        )
    return pruned


def _prune_folder(placement: Placement, folder: str) -> bool:
    """Delete the objects of a folder; returns whether the owner has placed
    them and all are deleted.
    """
    client, bucket = placement.client, placement.bucket
    pages = client.get_paginator("list_objects_v2").paginate(
        Bucket=bucket, Prefix=placement.prefix + folder
    )
    is_owned = False
    for page in pages:
        keys = [found["Key"] for found in page.get("Contents", ())]
        if keys and not is_owned:
            found = head(client, bucket, keys[0])
            is_owned = (
                found is not None and found["Metadata"].get(OWNER_METADATA) == placement.owner
            )
        if not keys or not is_owned or placement.is_time_up():
            return not keys
        _delete(client, bucket, [{"Key": key} for key in keys])
    LOGGER.info("%s%s pruned", placement.prefix, folder)
    return True


def empty_prefix(
    client: Any, bucket: str, prefix: str, is_time_up: Callable[[], bool], others: str = ""
) -> bool:
    """Delete every version of every object below the prefix; returns whether there was time for
    all.

    Objects below the prefix ``others`` are kept (default: none).
    """
    pages = client.get_paginator("list_object_versions").paginate(Bucket=bucket, Prefix=prefix)
    for page in pages:
        rows = [*page.get("Versions", ()), *page.get("DeleteMarkers", ())]
        rows = [row for row in rows if not others or not row["Key"].startswith(others)]
        if rows:
            _delete(
                client, bucket, [{"Key": row["Key"], "VersionId": row["VersionId"]} for row in rows]
            )
        if is_time_up():
            return False
    return True


def _delete(client: Any, bucket: str, objects: list[dict[str, str]]) -> None:
    result = client.delete_objects(Bucket=bucket, Delete={"Objects": objects, "Quiet": True})
    failures = [f"{each['Key']}: {each.get('Code')}" for each in result.get("Errors", ())]
    if failures:
        raise SyncError(
            f"{len(failures)} objects of {bucket} could not be deleted: " + "; ".join(failures)
        )
