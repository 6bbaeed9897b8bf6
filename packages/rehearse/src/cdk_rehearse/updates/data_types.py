"""The resource types that hold data, and what their properties say about its life."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from ..services.resource_schemas import stateful_types

__all__ = [
    "data_types",
    "emptying_type",
    "holds_data",
    "is_emptied",
    "is_emptied_by_removal",
    "is_protected",
    "shorter_retention",
]

_FACTS = json.loads(Path(__file__).with_suffix(".json").read_text())
_BUCKET = "AWS::S3::Bucket"
_REPOSITORY = "AWS::ECR::Repository"
#: The CDK's custom resources that empty a resource before it is deleted, with the property that
#: names it. Source: aws-cdk-lib, aws-s3/auto-delete-objects-handler and aws-ecr.
_EMPTYING = {
    _BUCKET: ("Custom::S3AutoDeleteObjects", "BucketName"),
    _REPOSITORY: ("Custom::ECRAutoDeleteImages", "RepositoryName"),
}
#: The tag without which these functions do not empty a resource; those of an older CDK have none.
#: Source: the same handlers; aws/aws-cdk#16603.
_TAGS = {_BUCKET: "aws-cdk:auto-delete-objects", _REPOSITORY: "aws-cdk:auto-delete-images"}
#: Members of a cluster, which holds the data. Sources: Amazon Aurora, DocumentDB and Neptune user
#: guides, "storage".
_MEMBERS = ("AWS::DocDB::DBInstance", "AWS::Neptune::DBInstance")


@cache
def data_types() -> frozenset[str]:
    """The types that hold data: those of cfn-lint's rule I3011, and of ``data_types.json``."""
    return stateful_types() | frozenset(_FACTS["more types"])


def holds_data(type: str, properties: Mapping[str, Any]) -> bool:
    """Whether a resource holds data itself."""
    if type in _MEMBERS or "DBClusterIdentifier" in properties or _is_replica(properties):
        return False
    return type in data_types()


def _is_replica(properties: Mapping[str, Any]) -> bool:
    """Whether a database is a read replica, whose data is that of its source.

    Such a database gets no final snapshot either. With a time, the properties restore another
    database from the backups of the source. Sources: RDS API reference,
    RestoreDBInstanceToPointInTime; aws-cloudformation-resource-providers-rds, DeleteHandler.
    """
    sources = ("SourceDBInstanceIdentifier", "SourceDBClusterIdentifier")
    times = ("RestoreTime", "UseLatestRestorableTime")
    is_copy = any(properties.get(name) for name in sources)
    return is_copy and not any(properties.get(name) for name in times)


def is_protected(properties: Mapping[str, Any]) -> bool:
    """Whether AWS refuses to delete the resource, so that its data stays."""
    names = ("DeletionProtection", "DeletionProtectionEnabled")
    return any(str(properties.get(name)) in ("True", "true", "ACTIVE") for name in names)


def is_emptied(
    type: str,
    logical_id: str,
    properties: Mapping[str, Any],
    others: Iterable[tuple[str, Mapping[str, Any]]],
    name_of: Callable[[str], str],
) -> bool:
    """Whether the deletion of a resource deletes its data.

    AWS refuses to delete a bucket with objects and a repository with images. The CDK's
    ``auto_delete_objects`` and ``empty_on_delete`` empty them before.

    Args:
        type: The type of the resource.
        logical_id: Its logical ID.
        properties: Its properties.
        others: Types and properties of the resources of its stack.
        name_of: Returns the name of the resource with a logical ID.
    """
    if type not in _EMPTYING:
        return True
    if str(properties.get("EmptyOnDelete")).lower() == "true":
        return True
    emptying, name = _EMPTYING[type]
    names = {logical_id, name_of(logical_id)}
    return any(other == emptying and given.get(name) in names for other, given in others)


def is_emptied_by_removal(type: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether a resource that stays is emptied when the update removes what empties it.

    The function that is asked to delete the custom resource empties the resource if its tag is
    still there, or if it is one of an older CDK, which sets no tag.

    Args:
        type: The type of the resource.
        old: Its properties before the update.
        new: Its properties after the update.
    """
    tag = _TAGS[type]
    return tag in _tags(new) or tag not in _tags(old)


def emptying_type(type: str) -> str:
    """The type of the custom resource that empties such a resource; empty if there is none."""
    return _EMPTYING.get(type, ("", ""))[0]


def _tags(properties: Mapping[str, Any]) -> set[str]:
    """Return the names of the tags whose value is "true"."""
    tags = properties.get("Tags")
    if not isinstance(tags, list):
        return set()
    names = set()
    for tag in tags:
        if isinstance(tag, Mapping) and str(tag.get("Value")).lower() == "true":
            names.add(str(tag.get("Key")))
    return names


def shorter_retention(type: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """The property whose change makes AWS delete older data; empty if there is none."""
    name, default = _FACTS["retention"].get(type, ("", None))
    if not name:
        return ""
    before = _number(old.get(name, default))
    after = _number(new.get(name, default))
    # Without a value, log events are kept for ever.
    is_shorter = after is not None and (before is None or after < before)
    return name if is_shorter and _is_given(old, name) and _is_given(new, name) else ""


def _is_given(properties: Mapping[str, Any], name: str) -> bool:
    """Whether a value is absent or a number, not one that only AWS knows."""
    return name not in properties or _number(properties[name]) is not None


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
