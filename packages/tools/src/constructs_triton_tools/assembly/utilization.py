"""What a target of a scaling policy on utilization means: each vCPU and each GPU has 100 percent.

Source: Amazon SageMaker AI developer guide, metrics of endpoint instances: ``CPUUtilization`` is
the sum over the cores, so it ranges up to 400 percent on an instance with four vCPUs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from constructs_triton_core.facts.instance_types import InstanceType

_UNITS = {"CPUUtilization": "vCPU", "GPUUtilization": "GPU", "GPUMemoryUtilization": "GPU"}


def share_of_instance(metric: str | None, target: Any, instance_types: Iterable[Any]) -> str:
    """Return the part of an instance in brackets, such as `` (60% of 2 vCPUs)``; "" for other
    metrics.

    If the number of vCPUs or GPUs is not known, or differs, the text says what 100 percent are.
    """
    unit = _UNITS.get(metric or "")
    if unit is None:
        return ""
    count = _count_of_each(unit, instance_types)
    if not count or not isinstance(target, int | float):
        return f" (each {unit} has 100)"
    plural = "s" if count > 1 else ""
    return f" ({target / count:g}% of {count} {unit}{plural})"


def _count_of_each(unit: str, instance_types: Iterable[Any]) -> int | None:
    """Return how many vCPUs or GPUs each type has; ``None`` if not known, or if they differ."""
    # A type that only the deployment knows is not a string.
    types = [InstanceType.of(name) for name in instance_types if isinstance(name, str)]
    counts = {found.vcpus if unit == "vCPU" else found.gpus for found in types}
    return counts.pop() if len(counts) == 1 else None
