"""Lets ``cdk_rehearse`` run the deploy-time functions of this library; see its
``ConstructLibrary``.

Properties may come from another version of this library, so that none of them is required.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping
from importlib.resources import files
from typing import Any

from constructs_triton.testing.adopted_endpoints import assume_adopted
from constructs_triton.testing.served_tensors import tensors_of
from constructs_triton_functions import CODE_DIRECTORY, CODE_FOLDER
from constructs_triton_functions.model_sync import FILES_RESOURCE_TYPE, RESOURCE_TYPE
from constructs_triton_functions.model_sync.manifest import Manifest
from constructs_triton_functions.scaling_guard import TARGET_TYPE

__all__ = [
    "CODE_DIRECTORY",
    "CODE_FOLDER",
    "RELEASED_FUNCTIONS",
    "assume_adopted",
    "buckets_of",
    "places_of",
    "sources_of",
    "targets_of",
    "tensors_of",
]

_RELEASES = files(__package__).joinpath("released_functions.json")


def _released_functions() -> dict[str, str]:
    releases = json.loads(_RELEASES.read_text(encoding="utf-8"))
    handler_of = {}
    for functions in releases.values():
        for handler, digest in functions.items():
            handler_of[digest] = handler
    return handler_of


RELEASED_FUNCTIONS: Mapping[str, str] = _released_functions()
"""The handler of each function of a release, by the digest of its code."""


def buckets_of(resource_type: str, properties: Mapping[str, Any]) -> Collection[str]:
    """Return the buckets from and to which a resource copies models."""
    found = [place for place, _ in places_of(resource_type, properties)]
    return [*found, *_given_buckets(properties)] if found else ()


def sources_of(
    resource_type: str, properties: Mapping[str, Any], read: Callable[[str, str], bytes | None]
) -> Iterator[tuple[str, str]]:
    """Yield bucket and key of the archives of the list that are in buckets of the user."""
    given = _given_buckets(properties)
    if resource_type != RESOURCE_TYPE or not given:
        return

    bucket = properties.get("SourceBucket")
    key = properties.get("ManifestKey")
    content = read(bucket, key) if bucket and key else None
    if content is None:
        return
    try:
        archives = Manifest.from_json(content).archives
    except ValueError:  # a list of another version
        return
    for archive in archives:
        if archive.given_bucket is not None:
            yield given[archive.given_bucket], archive.source_key


def places_of(resource_type: str, properties: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the bucket and the prefix to which a resource copies models."""
    bucket = properties.get("DestinationBucket")
    if resource_type in (RESOURCE_TYPE, FILES_RESOURCE_TYPE) and bucket:
        yield bucket, properties.get("DestinationPrefix", "")


def targets_of(resource_type: str, properties: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield the variant that a resource of the scaling guard registers,
    and its maximum of instances.
    """
    if resource_type == TARGET_TYPE and "ResourceId" in properties and "MaxCapacity" in properties:
        yield properties["ResourceId"], int(properties["MaxCapacity"])


def _given_buckets(properties: Mapping[str, Any]) -> list[str]:
    return list(properties.get("GivenBuckets") or ())
