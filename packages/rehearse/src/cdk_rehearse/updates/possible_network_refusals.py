"""What EFS and Elastic Load Balancing may refuse: two of what can exist only once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from constructs_triton_core.cloud_assembly.template import Resource, references

from .replacements import replacements
from .stack_update import PossibleRefusal, StackUpdate

__all__ = ["NETWORK_RULES"]

_MOUNT_TARGET = "AWS::EFS::MountTarget"
_SUBNET = "AWS::EC2::Subnet"
_LISTENER = "AWS::ElasticLoadBalancingV2::Listener"
_GROUP = "AWS::ElasticLoadBalancingV2::TargetGroup"
_BALANCER = "AWS::ElasticLoadBalancingV2::LoadBalancer"


class _Mount(NamedTuple):
    """A mount target, with its file system and its Availability Zone as JSON."""

    logical_id: str
    subnet: str
    file_system: str
    zone: str

    def excludes(self, other: _Mount) -> bool:
        """Whether both cannot exist together; that of one subnet is a collision of its own."""
        is_same = (self.file_system, self.zone) == (other.file_system, other.zone)
        return is_same and self.subnet != other.subnet


def mount_targets_of_a_zone(update: StackUpdate) -> Iterator[PossibleRefusal]:
    """Another mount target of a file system in an Availability Zone that has one.

    A replacement is created before the old one is deleted. Source: EFS API reference,
    CreateMountTarget: MountTargetConflict; aws/aws-cdk#10170 and #25099.
    """
    deployed = list(_mounts(update.before))
    wanted = list(_mounts(update.after))
    for mount in wanted:
        if mount in deployed:
            continue
        others = [other.logical_id for other in (*deployed, *wanted) if mount.excludes(other)]
        if others:
            yield PossibleRefusal(
                mount.logical_id,
                f"{others[0]} is a mount target of the same file system in the same Availability "
                "Zone; EFS refuses a second one, also while the other is being replaced",
                "choose one subnet for each Availability Zone, and keep the mount targets of the "
                "others as they are",
            )


def _mounts(resources: Mapping[str, Resource]) -> Iterator[_Mount]:
    """The mount targets whose subnets and their zones the template declares."""
    for logical_id, resource in resources.items():
        if resource.type != _MOUNT_TARGET:
            continue
        subnet = resource.properties.get("SubnetId")
        name = subnet.get("Ref") if isinstance(subnet, Mapping) else None
        declared = resources.get(str(name))
        if declared is None or declared.type != _SUBNET:
            continue
        zone = declared.properties.get("AvailabilityZone")
        if zone is not None:
            file_system = json.dumps(resource.properties.get("FileSystemId"), sort_keys=True)
            yield _Mount(logical_id, str(name), file_system, json.dumps(zone, sort_keys=True))


def target_groups_of_balancers(update: StackUpdate) -> Iterator[PossibleRefusal]:
    """A target group that stays, while its load balancer is replaced.

    The new load balancer gets it while the old one has it. Source: Elastic Load Balancing API
    reference, CreateListener: TargetGroupAssociationLimit; aws/aws-cdk#847.
    """
    if update.old is None:
        return
    replaced = replacements(update.old, update.new).certain
    for balancer in update.of_type(_BALANCER):
        if balancer.logical_id not in replaced:
            continue
        before = _groups_of(update.before, balancer.logical_id)
        after = _groups_of(update.after, balancer.logical_id)
        kept = sorted((before & after) - replaced.keys())
        if kept:
            yield PossibleRefusal(
                kept[0],
                f"{balancer.logical_id} is replaced because of "
                f"{' and '.join(replaced[balancer.logical_id])}, and the new load balancer gets "
                "this target group while the old one has it; a target group has one load balancer",
                "give the target group another logical ID in the same update",
            )


def _groups_of(resources: Mapping[str, Resource], balancer: str) -> set[str]:
    """The target groups that the listeners of a load balancer name."""
    found: set[str] = set()
    for resource in resources.values():
        of_balancer = resource.properties.get("LoadBalancerArn") == {"Ref": balancer}
        if resource.type == _LISTENER and of_balancer:
            found |= references(dict(resource.properties))
    return {name for name in found if name in resources and resources[name].type == _GROUP}


NETWORK_RULES: Sequence[Callable[[StackUpdate], Iterator[PossibleRefusal]]] = (
    mount_targets_of_a_zone,
    target_groups_of_balancers,
)
