"""Whether the copies of components fit on the instances of their endpoint.

Memory that SageMaker keeps for itself is not published, so a simulated instance offers all of its memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from constructs_triton_core.facts.instance_types import InstanceType


@dataclass(frozen=True, order=True)
class Copy:
    """What one copy of a component reserves."""

    accelerators: float
    cpus: float
    memory_mib: float

    @classmethod
    def of(cls, specification: Mapping[str, Any]) -> Copy:
        needs = specification["ComputeResourceRequirements"]
        return cls(
            needs.get("NumberOfAcceleratorDevicesRequired", 0),
            needs.get("NumberOfCpuCoresRequired", 0),
            needs["MinMemoryRequiredInMb"],
        )

    def without(self, other: Copy) -> Copy:
        return Copy(
            self.accelerators - other.accelerators, self.cpus - other.cpus, self.memory_mib - other.memory_mib
        )

    def holds(self, other: Copy) -> bool:
        """Whether this free room is enough for a copy."""
        left = self.without(other)
        return min(left.accelerators, left.cpus, left.memory_mib) >= 0


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
    unknown = float("inf")
    return Copy(
        unknown if facts.gpus is None else facts.gpus,
        unknown if facts.vcpus is None else facts.vcpus,
        unknown if facts.memory_gib is None else facts.memory_gib * 1024,
    )
