"""Deletes archives: those without a name for long enough, or everything below a prefix."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any

from .index import read_index, update_index
from .placement import OWNER_METADATA, Placement, SyncError, head

__all__ = ["empty_prefix", "prune"]

LOGGER = logging.getLogger(__name__)


def prune(placement: Placement, target_models: Iterable[str]) -> list[str]:
    """Delete archives without a name that ``placement``'s owner has placed; returns those deleted.

    The index is read again just before, since another process may have named one again.
    """
    client, bucket, prefix = placement.client, placement.bucket, placement.prefix
    named = set(read_index(client, bucket, prefix).target_models.values())
    pruned = []
    for target_model in set(target_models) - named:
        found = head(client, bucket, prefix + target_model)
        if found is not None and found["Metadata"].get(OWNER_METADATA) == placement.owner:
            client.delete_object(Bucket=bucket, Key=prefix + target_model)
            LOGGER.info("%s%s pruned", prefix, target_model)
            pruned.append(target_model)
    if pruned:
        update_index(client, bucket, prefix, lambda index: index.without_retired(set(pruned)))
    return sorted(pruned)


def empty_prefix(client: Any, bucket: str, prefix: str, is_time_up: Callable[[], bool]) -> bool:
    """Delete every version of every object below the prefix; returns whether there was time for all."""
    pages = client.get_paginator("list_object_versions").paginate(Bucket=bucket, Prefix=prefix)
    for page in pages:
        rows = [*page.get("Versions", ()), *page.get("DeleteMarkers", ())]
        if rows:
            _delete(client, bucket, [{"Key": row["Key"], "VersionId": row["VersionId"]} for row in rows])
        if is_time_up():
            return False
    return True


def _delete(client: Any, bucket: str, objects: list[dict[str, str]]) -> None:
    result = client.delete_objects(Bucket=bucket, Delete={"Objects": objects, "Quiet": True})
    failures = [f"{each['Key']}: {each.get('Code')}" for each in result.get("Errors", ())]
    if failures:
        raise SyncError(f"{len(failures)} objects of {bucket} could not be deleted: " + "; ".join(failures))
