"""Lets ``cdk_rehearse`` run the deploy-time functions of this library; see its ``ConstructLibrary``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from constructs_triton_functions import CODE_DIRECTORY, CODE_FOLDER
from constructs_triton_functions.model_sync import FILES_RESOURCE_TYPE, RESOURCE_TYPE
from constructs_triton_functions.model_sync.manifest import Manifest
from constructs_triton_functions.model_sync.properties import SyncProperties

__all__ = ["CODE_DIRECTORY", "CODE_FOLDER", "buckets_of", "sources_of"]


def buckets_of(resource_type: str, properties: Mapping[str, Any]) -> Collection[str]:
    """Return the buckets from and to which a resource copies models."""
    if resource_type not in (RESOURCE_TYPE, FILES_RESOURCE_TYPE):
        return ()
    wanted = SyncProperties.from_cloudformation(properties)
    return (wanted.destination_bucket, *wanted.given_buckets)


def sources_of(
    resource_type: str, properties: Mapping[str, Any], read: Callable[[str, str], bytes | None]
) -> Iterator[tuple[str, str]]:
    """Yield bucket and key of the archives of the list that are in buckets of the user."""
    if resource_type != RESOURCE_TYPE:
        return
    wanted = SyncProperties.from_cloudformation(properties)
    content = read(wanted.source_bucket, wanted.manifest_key) if wanted.given_buckets else None
    for archive in Manifest.from_json(content).archives if content is not None else ():
        if archive.given_bucket is not None:
            yield wanted.given_buckets[archive.given_bucket], archive.source_key
