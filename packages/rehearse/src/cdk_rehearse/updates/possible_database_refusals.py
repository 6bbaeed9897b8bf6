"""What RDS may refuse of an update: versions of engines, parameter groups and subnets."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from .stack_update import PossibleRefusal, StackUpdate

__all__ = ["DATABASE_RULES"]

_INSTANCE = "AWS::RDS::DBInstance"
_CLUSTER = "AWS::RDS::DBCluster"


def versions_of_members(update: StackUpdate) -> Iterator[PossibleRefusal]:
    """The engine's version of an instance that belongs to a cluster.

    Source: CloudFormation template reference, AWS::RDS::DBInstance, EngineVersion ("the version of
    the engine is managed by the DB cluster"); aws/aws-cdk#21758, whose rollback failed too.
    """
    for instance, old, new in update.kept(_INSTANCE):
        is_member = "DBClusterIdentifier" in new
        if is_member and _is_major(old.get("EngineVersion"), new.get("EngineVersion")):
            yield PossibleRefusal(
                instance.logical_id,
                f"EngineVersion changes from {old['EngineVersion']} to {new['EngineVersion']} in a "
                "member of a cluster; RDS changes the version of the cluster only, and may refuse "
                "this, also in the rollback",
                "remove EngineVersion from the instance, and change that of the cluster",
            )


def groups_of_members(update: StackUpdate) -> Iterator[PossibleRefusal]:
    """A major upgrade of a cluster whose instances have a parameter group of their own.

    Source: RDS API reference, ModifyDBCluster, DBInstanceParameterGroupName; aws/aws-cdk#26072.
    """
    for cluster, old, new in update.kept(_CLUSTER):
        if not _is_major(old.get("EngineVersion"), new.get("EngineVersion")):
            continue
        if "DBInstanceParameterGroupName" in new:
            continue
        custom = _members_with_own_group(update, cluster.logical_id)
        if custom:
            yield PossibleRefusal(
                cluster.logical_id,
                f"EngineVersion changes from {old['EngineVersion']} to {new['EngineVersion']}, and "
                f"{' and '.join(custom)} has a parameter group of its own; RDS refuses the upgrade "
                "unless the cluster names one for the new version",
                "set DBInstanceParameterGroupName of the cluster to the new group in this update",
            )


def _members_with_own_group(update: StackUpdate, cluster: str) -> list[str]:
    """Return the logical IDs of a cluster's instances that have a custom parameter group."""
    reference = json.dumps({"Ref": cluster})
    found = []
    for instance in update.before.values():
        if instance.type != _INSTANCE:
            continue
        is_member = json.dumps(instance.properties.get("DBClusterIdentifier")) == reference
        if is_member and _is_custom_group(instance.properties.get("DBParameterGroupName")):
            found.append(instance.logical_id)
    return found


def subnets_in_use(update: StackUpdate) -> Iterator[PossibleRefusal]:
    """A subnet that leaves a group while a database may be in it.

    Source: RDS API reference, ModifyDBSubnetGroup: SubnetAlreadyInUse; aws/aws-cdk#15879.
    """
    for group, _, __ in update.kept("AWS::RDS::DBSubnetGroup"):
        before = update.before[group.logical_id].properties.get("SubnetIds")
        after = group.properties.get("SubnetIds")
        if not isinstance(before, list) or not isinstance(after, list):
            continue
        removed = [subnet for subnet in before if subnet not in after]
        users = _kept_databases_in(update, group.logical_id)
        if removed and users:
            yield PossibleRefusal(
                group.logical_id,
                f"{_names(removed)} leaves the group of {' and '.join(users)}; RDS refuses this "
                "while the database is in that subnet, which no template shows",
                "add the new subnets first, and move the database before you remove the old ones",
            )


def _kept_databases_in(update: StackUpdate, group: str) -> list[str]:
    """Return the logical IDs of the databases in a subnet group that the update keeps."""
    found = []
    for database in update.before.values():
        if database.type not in (_INSTANCE, _CLUSTER) or database.logical_id not in update.after:
            continue
        if database.properties.get("DBSubnetGroupName") == {"Ref": group}:
            found.append(database.logical_id)
    return found


def _is_major(old: Any, new: Any) -> bool:
    """Whether the first number of two known versions differs."""
    if not isinstance(old, str | float | int) or not isinstance(new, str | float | int):
        return False
    before = re.match(r"\d+", str(old))
    after = re.match(r"\d+", str(new))
    return before is not None and after is not None and before[0] != after[0]


def _is_custom_group(name: Any) -> bool:
    """Whether this is not one of the groups of RDS, whose names begin with ``default.``."""
    if isinstance(name, Mapping):
        return True
    return isinstance(name, str) and not name.startswith("default")


def _names(subnets: Sequence[Any]) -> str:
    refs = [subnet.get("Ref") if isinstance(subnet, Mapping) else subnet for subnet in subnets]
    return " and ".join(str(ref) for ref in refs if ref) or "a subnet"


DATABASE_RULES: Sequence[Callable[[StackUpdate], Iterator[PossibleRefusal]]] = (
    versions_of_members,
    groups_of_members,
    subnets_in_use,
)
