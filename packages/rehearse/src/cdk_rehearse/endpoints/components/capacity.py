"""Whether the copies of components fit on the instances of their endpoint.

Memory that SageMaker keeps for itself is not published, so a simulated instance offers all of its
memory.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from constructs_triton_core.cloud_assembly.endpoints import instance_types_of
from constructs_triton_core.facts.instance_types import InstanceType

from ...behaviour import Behaviour
from ..instance_pools import has_capacity
from .component import Component, specifications


class Copy(NamedTuple):
    """What one copy of a component reserves, or what is free on an instance."""

    accelerators: float
    cpus: float
    memory_mib: float

    @classmethod
    def of(cls, specification: Mapping[str, Any]) -> Copy:
        needs = specification.get("ComputeResourceRequirements", {})  # an adapter has none
        return cls(
            needs.get("NumberOfAcceleratorDevicesRequired", 0),
            needs.get("NumberOfCpuCoresRequired", 0),
            needs.get("MinMemoryRequiredInMb", 0),
        )

    def without(self, other: Copy) -> Copy:
        return Copy(*map(operator.sub, self, other))

    def holds(self, other: Copy) -> bool:
        """Whether this free room is enough for a copy."""
        return all(map(operator.ge, self, other))


def has_room(
    behaviour: Behaviour,
    variant: Mapping[str, Any],
    component: Component,
    count: int,
    others: Iterable[Component],
) -> bool:
    """Whether a number of copies of a component fits beside those of the others.

    Instances are added up to the largest fleet, unless AWS has no capacity for them.
    """
    copy = Copy.of(specifications(component.body)[0])
    of_others: list[Copy] = []
    for other in others:
        of_others += [Copy.of(specifications(other.body)[0])] * other.copies

    instance_type = instance_types_of(variant)[0]
    instances = largest_fleet(variant)
    if not has_capacity(behaviour, variant):
        present = [*of_others, *[copy] * component.copies]
        instances = _running(present, instance_type, variant, instances)
    return fit([*of_others, *[copy] * count], instance_type, instances)


def _running(
    present: list[Copy], instance_type: str, variant: Mapping[str, Any], largest: int
) -> int:
    """The instances that run now: the fewest with room for the copies that exist."""
    for count in range(int(variant["InitialInstanceCount"]), largest):
        if fit(present, instance_type, count):
            return count
    return largest


def fit(copies: Iterable[Copy], instance_type: str, instances: int) -> bool:
    """Whether all copies fit, the largest placed first."""
    free = [_room(instance_type)] * instances
    for copy in sorted(copies, reverse=True):
        place = next((index for index, room in enumerate(free) if room.holds(copy)), None)
        if place is None:
            return False
        free[place] = free[place].without(copy)
    return True


def largest_fleet(variant: Mapping[str, Any]) -> int:
    """How many instances the variant may have."""
    scaling = variant.get("ManagedInstanceScaling", {})
    if scaling.get("Status") == "ENABLED":
        return int(scaling["MaxInstanceCount"])
    return int(variant["InitialInstanceCount"])


def _room(instance_type: str) -> Copy:
    """What an empty instance offers; what is not published is no limit."""
    facts = InstanceType.of(instance_type)
    return Copy(
        math.inf if facts.gpus is None else facts.gpus,
        math.inf if facts.vcpus is None else facts.vcpus,
        math.inf if facts.memory_gib is None else facts.memory_gib * 1024,
    )
