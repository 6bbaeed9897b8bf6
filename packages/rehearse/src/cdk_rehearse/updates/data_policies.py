"""What the policies of a resource make of its data when it is deleted or replaced.

Source: CloudFormation template reference, DeletionPolicy and UpdateReplacePolicy attributes.
"""

from __future__ import annotations

from collections.abc import Mapping

from constructs_triton_core.cloud_assembly.synthesized_stack import SynthesizedStack
from constructs_triton_core.cloud_assembly.template import Resource

from .data_change import Fate
from .data_types import is_emptied, is_protected
from .known_properties import known_properties

__all__ = ["deletion_policy", "fate", "lost_protection", "policy"]

_POLICIES = ("DeletionPolicy", "UpdateReplacePolicy")
_RETAINING = ("Retain", "RetainExceptOnCreate")
#: The types that CloudFormation snapshots before a deletion if the template has no policy; of an
#: instance, only one that belongs to no cluster. Source: template reference, DeletionPolicy.
_SNAPSHOT_BY_DEFAULT = ("AWS::RDS::DBCluster", "AWS::RDS::DBInstance")


def policy(stack: SynthesizedStack, resource: Resource, attribute: str) -> str:
    """The policy of a resource; empty if a function decides it.

    Args:
        stack: The stack that declares the resource.
        resource: The resource.
        attribute: ``DeletionPolicy`` or ``UpdateReplacePolicy``.
    """
    declared = stack.template.body["Resources"][resource.logical_id].get(attribute)
    if declared is None:
        is_member = "DBClusterIdentifier" in resource.properties
        is_snapshot = resource.type in _SNAPSHOT_BY_DEFAULT and not is_member
        return "Snapshot" if is_snapshot and attribute == "DeletionPolicy" else "Delete"
    return declared if isinstance(declared, str) else ""


def deletion_policy(
    stack: SynthesizedStack, resource: Resource, siblings: Mapping[str, SynthesizedStack]
) -> str:
    """The policy of a resource whose stack is deleted too.

    A nested stack that its parent retains is kept as a whole.

    Args:
        stack: The stack that declares the resource.
        resource: The resource.
        siblings: All stacks before the update.
    """
    parent, _, name = stack.name.rpartition("/")
    outer = siblings.get(parent)
    if outer is not None and name in outer.template.resources:
        found = policy(outer, outer.template.resources[name], "DeletionPolicy")
        if found in _RETAINING:
            return found
    return policy(stack, resource, "DeletionPolicy")


def fate(stack: SynthesizedStack, resource: Resource, policy: str) -> Fate:
    """What becomes of the data of a resource that is deleted under a policy.

    Args:
        stack: The stack that has the resource, before the update.
        resource: The resource.
        policy: The policy that applies; empty if it is not known.
    """
    properties = known_properties(stack, resource.logical_id)
    if policy in _RETAINING or is_protected(properties):
        return "kept"
    # The name of the snapshot has a random part, so that none is in its way. Source:
    # aws-cloudformation-resource-providers-rds, DeleteHandler.
    if policy == "Snapshot":
        return "snapshot"
    if policy != "Delete":
        return "unknown"

    resources = stack.existing().values()
    others = ((other.type, known_properties(stack, other.logical_id)) for other in resources)
    is_lost = is_emptied(resource.type, resource.logical_id, properties, others, stack.name_of)
    return "lost" if is_lost else "kept if not empty"


def lost_protection(
    old: tuple[SynthesizedStack, Resource], new: tuple[SynthesizedStack, Resource]
) -> tuple[str, ...]:
    """The policies that keep the data before the update, and delete it afterwards.

    Args:
        old: The stack and the resource before the update.
        new: The stack and the resource after it.
    """
    keeping = (*_RETAINING, "Snapshot")
    return tuple(
        attribute
        for attribute in _POLICIES
        if policy(*old, attribute) in keeping and policy(*new, attribute) == "Delete"
    )
