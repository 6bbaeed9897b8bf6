"""What services refuse of an update or a deletion, which no template alone shows.

A service knows the version before, or protects what exists. What a service refuses of one template
is left to cfn-lint, to the CDK's own validation and to cdk-preflight. Each rule is a function that
returns the reason in the words of AWS, or an empty string. What is not known is not refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..errors import StackError
from ..providers.provider import Deployed, Request, without
from ..values.stand_ins import is_opaque

Properties = Mapping[str, Any]
DeletionRule = Callable[[Properties], str]
"""Takes the properties of the resource that is deleted."""
ChangeRule = Callable[[Properties, Properties], str]
"""Takes the properties before and after."""


def expect_accepted(kind: str, request: Request, current: Deployed | None = None) -> None:
    """Raise ``StackError`` if the service refuses to update, replace or delete a resource."""
    for reason in _reasons(kind, request, current):
        if reason:
            raise StackError(reason)


def _reasons(kind: str, request: Request, current: Deployed | None) -> Iterator[str]:
    new = request.properties
    if kind == "delete":
        yield from (rule(new) for rule in DELETIONS.get(request.type, ()))
    elif current is not None:
        rules = UPDATES if kind == "update" else REPLACEMENTS
        yield from (rule(current.properties, new) for rule in rules.get(request.type, ()))


def protected_user_pool(properties: Properties) -> str:
    """A user pool with deletion protection is not deleted.

    Source: Cognito API reference, DeleteUserPool and DeletionProtection.
    """
    if properties.get("DeletionProtection") != "ACTIVE":
        return ""
    return (
        "The user pool cannot be deleted because deletion protection is activated. "
        "Deletion protection must be inactivated first."
    )


def protected_cluster(properties: Properties) -> str:
    """A database cluster with deletion protection is not deleted.

    Source: API references of RDS, DocumentDB and Neptune, DeleteDBCluster.
    """
    if not _is_true(properties.get("DeletionProtection")):
        return ""
    return "Cannot delete protected Cluster, please disable deletion protection and try again."


def protected_db_instance(properties: Properties) -> str:
    """A database instance with deletion protection is not deleted.

    Source: RDS API reference, DeleteDBInstance.
    """
    if not _is_true(properties.get("DeletionProtection")):
        return ""
    return "Cannot delete protected DB Instance, please disable deletion protection and try again."


def protected_table(properties: Properties) -> str:
    """A table is not deleted while it, or a replica, has deletion protection.

    Source: DynamoDB API reference, DeleteTable and DeletionProtectionEnabled.
    """
    tables = [properties, *_list(properties.get("Replicas"))]
    if not any(_is_true(table.get("DeletionProtectionEnabled")) for table in tables):
        return ""
    return (
        "Resource cannot be deleted as it is currently protected against deletion. "
        "Disable deletion protection first."
    )


def protected_load_balancer(properties: Properties) -> str:
    """A load balancer with deletion protection is not deleted.

    Source: Elastic Load Balancing API reference, DeleteLoadBalancer.
    """
    for attribute in _list(properties.get("LoadBalancerAttributes")):
        is_protection = attribute.get("Key") == "deletion_protection.enabled"
        if is_protection and _is_true(attribute.get("Value")):
            return "Load balancer cannot be deleted because deletion protection is enabled"
    return ""


def way_of_signing_in(old: Properties, new: Properties) -> str:
    """A user pool keeps the attributes with which its users sign in.

    Source: aws-amplify/amplify-cli#4227; Cognito API reference, UpdateUserPool, which does not have
    these parameters.
    """
    for name in ("AliasAttributes", "UsernameAttributes", "UsernameConfiguration"):
        if _is_changed(old.get(name), new.get(name)):
            return f"Updates are not allowed for property - {name}."
    return ""


def attributes_of_users(old: Properties, new: Properties) -> str:
    """A user pool keeps each attribute as it is; only further ones can be added.

    Source: aws-amplify/amplify-cli#13989; Cognito API reference, AddCustomAttributes.
    """
    before = old.get("Schema")
    after = new.get("Schema")
    if is_opaque(before) or is_opaque(after):
        return ""
    fixed = ("AttributeDataType", "Mutable", "Required")
    kept = _items(after, "Name", fixed)
    for name, attribute in _items(before, "Name", fixed).items():
        if name not in kept or _is_changed(attribute, kept[name]):
            return "Existing schema attributes cannot be modified or deleted."
    return ""


def domain_of_user_pool(old: Properties, new: Properties) -> str:
    """A user pool has one domain, so that the new one cannot exist beside the old one.

    Source: aws/aws-cdk#10062; Cognito API reference, CreateUserPoolDomain.
    """
    if _is_changed(without(old, "Domain"), without(new, "Domain")):
        return ""
    return "User pool already has a domain configured."


def indexes_of_table(old: Properties, new: Properties) -> str:
    """An update creates or deletes one global secondary index, and changes the key of none.

    Source: DynamoDB API reference, UpdateTable, GlobalSecondaryIndexUpdates; aws/aws-cdk#14920 and
    aws-amplify/amplify-cli#11384.
    """
    before = old.get("GlobalSecondaryIndexes")
    after = new.get("GlobalSecondaryIndexes")
    if is_opaque(before) or is_opaque(after):
        return ""
    fixed = ("KeySchema", "Projection")
    indexes = _items(before, "IndexName", fixed)
    kept = _items(after, "IndexName", fixed)
    if len(indexes.keys() ^ kept.keys()) > 1:
        return "Cannot perform more than one GSI creation or deletion in a single update"
    if any(_is_changed(indexes[name], kept[name]) for name in indexes.keys() & kept.keys()):
        return (
            "Cannot update GSI's properties other than Provisioned Throughput and Contributor "
            "Insights Specification. You can create a new GSI with a different name."
        )
    return ""


def engine_version(old: Properties, new: Properties) -> str:
    """A database keeps its engine's version or gets a later one.

    Source: RDS User Guide, Upgrading a DB instance engine version.
    """
    before = old.get("EngineVersion")
    after = new.get("EngineVersion")
    return f"Cannot upgrade from {before} to {after}" if _is_lower(before, after) else ""


def allocated_storage(old: Properties, new: Properties) -> str:
    """The storage of a database instance does not get smaller.

    Source: RDS User Guide, Increasing DB instance storage capacity.
    """
    before = old.get("AllocatedStorage")
    after = new.get("AllocatedStorage")
    return (
        f"Invalid storage size: {after} is less than {before}" if _is_lower(before, after) else ""
    )


def volume_size(old: Properties, new: Properties) -> str:
    """A volume does not get smaller.

    Source: EC2 API reference, ModifyVolume, Size.
    """
    is_smaller = _is_lower(old.get("Size"), new.get("Size"))
    return "New size cannot be smaller than existing size" if is_smaller else ""


DELETIONS: Mapping[str, Sequence[DeletionRule]] = {
    "AWS::Cognito::UserPool": [protected_user_pool],
    "AWS::DocDB::DBCluster": [protected_cluster],
    "AWS::DynamoDB::GlobalTable": [protected_table],
    "AWS::DynamoDB::Table": [protected_table],
    "AWS::ElasticLoadBalancingV2::LoadBalancer": [protected_load_balancer],
    "AWS::Neptune::DBCluster": [protected_cluster],
    "AWS::RDS::DBCluster": [protected_cluster],
    "AWS::RDS::DBInstance": [protected_db_instance],
}
"""The rules of deletions, by type."""
UPDATES: Mapping[str, Sequence[ChangeRule]] = {
    "AWS::Cognito::UserPool": [way_of_signing_in, attributes_of_users],
    "AWS::DynamoDB::GlobalTable": [indexes_of_table],
    "AWS::DynamoDB::Table": [indexes_of_table],
    "AWS::EC2::Volume": [volume_size],
    "AWS::RDS::DBCluster": [engine_version],
    "AWS::RDS::DBInstance": [engine_version, allocated_storage],
}
"""The rules of updates without a replacement, by type."""
REPLACEMENTS: Mapping[str, Sequence[ChangeRule]] = {
    "AWS::Cognito::UserPoolDomain": [domain_of_user_pool],
}
"""The rules of replacements, by type."""


def _is_true(value: Any) -> bool:
    """Whether a boolean of a template is true; CloudFormation takes strings too."""
    return str(value).lower() == "true"


def _is_changed(old: Any, new: Any) -> bool:
    """Whether two values certainly differ: what contains an unknown value may be equal."""
    return bool(old != new) and not _has_unknown(old) and not _has_unknown(new)


def _has_unknown(value: Any) -> bool:
    if isinstance(value, Mapping):
        return any(map(_has_unknown, value.values()))
    if isinstance(value, list):
        return any(map(_has_unknown, value))
    return is_opaque(value)


def _is_lower(old: Any, new: Any) -> bool:
    """Whether a number or version is lower, in the parts that both have."""
    if _has_unknown(old) or _has_unknown(new):
        return False
    before = _numbers(old)
    after = _numbers(new)
    return after[: len(before)] < before[: len(after)]


def _numbers(value: Any) -> tuple[int, ...]:
    return tuple(int(digits) for digits in re.findall(r"\d+", json.dumps(value)))


def _list(value: Any) -> list[Any]:
    """The known items of a list that may be missing or unknown."""
    items = value if isinstance(value, list) else []
    return [item for item in items if isinstance(item, Mapping)]


def _items(value: Any, key: str, fixed: Sequence[str]) -> dict[str, Any]:
    """What cannot change of each item of a list, by its name."""
    return {str(item.get(key)): [item.get(name) for name in fixed] for item in _list(value)}
