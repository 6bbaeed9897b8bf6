"""Where the constructs of nested stacks are, of which several can have the same logical ID."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

__all__ = ["paths_in_nested_stacks"]

_LOGICAL_ID = "aws:cdk:logicalId"
_RESOURCE = re.compile(r"(?P<stack>.*/(?P<id>[^/]+))\.NestedStack/(?P=id)\.NestedStackResource")
"""The path that the CDK gives the ``AWS::CloudFormation::Stack`` of a ``NestedStack``."""


def paths_in_nested_stacks(metadata: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, str]:
    """Return the path of each construct of a nested stack, by its place.

    The place is the logical ID after those of the nested stacks that it is in, as ``NESTED/ID``.
    The CDK derives a logical ID from the path below the nested stack, so the constructs of two
    nested stacks of one class have the same.

    Args:
        metadata: What the CDK writes of the constructs of a stack, by their paths.
    """
    found = list(_logical_ids(metadata))
    nested: dict[str, str] = {}
    for path, logical_id in found:
        if match := _RESOURCE.fullmatch(path):
            nested[match["stack"]] = logical_id

    places: dict[str, str] = {}
    for path, logical_id in found:
        around = [nested[above] for above in _paths_above(path) if above in nested]
        if around:
            places["/".join([*around, logical_id])] = path
    return places


def _logical_ids(
    metadata: Mapping[str, Sequence[Mapping[str, Any]]],
) -> Iterator[tuple[str, str]]:
    for path, entries in metadata.items():
        for entry in entries:
            if entry["type"] == _LOGICAL_ID:
                yield path.removeprefix("/"), str(entry["data"])


def _paths_above(path: str) -> Iterator[str]:
    """The paths of the constructs that a construct is in, from the outermost."""
    names = path.split("/")
    for length in range(1, len(names)):
        yield "/".join(names[:length])
