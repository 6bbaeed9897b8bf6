"""Instances that AWS does not have: no capacity for an instance type, or a quota that is reached.

Sources: answers of SageMaker that users reported (the known failures ``insufficient-capacity`` and
``quota-instances``). Of several instance pools, one with capacity is enough (SageMaker developer guide,
heterogeneous endpoints). Each type needs its quota; only a vendor's guide states that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from moto.sagemaker.exceptions import SagemakerClientError

from constructs_triton_core.cloud_assembly.endpoints import instance_types_of

from ..behaviour import Behaviour
from ..steps import Step
from .fleets import Fleets


class _LimitError(SagemakerClientError):
    code = "ResourceLimitExceeded"


def has_capacity(behaviour: Behaviour, variant: Mapping[str, Any]) -> bool:
    """Return whether an instance of a variant can start."""
    types = instance_types_of(variant)
    return not types or not set(types) <= set(behaviour.without_capacity)


def expect_instances(fleets: Fleets, config: Any, added: Mapping[str, int]) -> None:
    """Raise SageMaker's error if instances of a configuration cannot start beside those that run.

    ``added`` has the instances that start, by type; an instance of any pool may start, so each type has all.
    """
    behaviour, present = fleets.api.behaviour, Counter[str]()
    for each in fleets.sizes(Step("start", "now")):
        present.update(dict.fromkeys(each.instance_type.split(", "), each.count))
    for kind, limit in behaviour.quotas.items():
        if added.get(kind) and present[kind] + added[kind] > limit:
            raise _LimitError(
                f"The account-level service limit '{kind} for endpoint usage' is {limit} Instances, with "
                f"current utilization of {present[kind]} Instances and a request delta of {added[kind]} "
                "Instances."
            )
    variants = [each for each in config.production_variants if any(map(added.get, instance_types_of(each)))]
    if not all(has_capacity(behaviour, each) for each in variants):
        raise PermissionError(
            "Unable to provision requested ML compute capacity due to InsufficientInstanceCapacity error."
        )
