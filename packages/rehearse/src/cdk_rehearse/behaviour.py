"""How a simulated account behaves, within what AWS leaves open or does on a bad day.

Every decision is drawn from the seed and from the names of what it concerns. Two runs with the same
seed make the same decisions, whatever time their steps take.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.instance_types import InstanceType
from constructs_triton_core.facts.limits import RangeLimit
from constructs_triton_core.limit_checks import check_range
from constructs_triton_core.spelling import did_you_mean, quoted

from .steps import When

_EndpointUpdate = Literal["succeeds", "fails", "reverts"]


@dataclass(frozen=True)
class Behaviour:
    """How a simulated account behaves. The defaults are a calm account: one order, and no failure.

    Args:
        seed: The random decisions depend on it; two runs with the same seed make the same ones.
        random_order: Whether CloudFormation changes independent resources in a random order.
        updates_replaced_on_rollback: Whether a rollback sends an Update event with the old
            properties also to custom resources whose physical ID changed. AWS does not document
            this.
        duplicates_events: Whether Lambda delivers about every second event of CloudFormation twice.
        propagation: Highest number of requests of a role that a new or changed policy does not
            apply to yet.
        launches_old_fleet: Whether SageMaker also launches an instance of the old configuration
            during an update of an endpoint, for example to replace a host.
        endpoint_update: Whether an update of an endpoint succeeds, fails with an error, or reverts:
            the endpoint is in service again with its old configuration, without an error.
        updated_endpoints: Names of the endpoints that ``endpoint_update`` is about. Default: all.
        component_update_resets_copies: Whether CloudFormation sends the template's number of copies
            with each update of an inference component.
        looks_up_alarms_at_create: Whether ``CreateEndpoint`` refuses rollback alarms that do not
            exist, as ``UpdateEndpoint`` does.
        tags_assets: Whether a scanner tags every object in the asset bucket.
        updates_with_the_same_config: Whether CloudFormation calls ``UpdateEndpoint`` also when the
            name of the endpoint configuration does not change. AWS does not document whether a
            change of ``RetainAllVariantProperties`` alone leads to this call.
        failure_rate: Share of the changes to resources that fail, from 0 to 1.
        failing: Logical IDs, or ``STACK/ID``, of resources that cannot be created, updated or
            replaced, and whether they fail before or after the service carried out the change. In a
            nested stack it is ``STACK/NESTED/ID``. A custom resource that fails after it lost its
            function's response; with ``"answers FAILED"``, the function did its work and answers
            so.
        failing_restore: The same for resources that the rollback of an update cannot restore.
        failing_delete: Logical IDs of resources that cannot be deleted.
        without_capacity: Instance types of which SageMaker can start no instance.
        quotas: The most instances of an instance type over all endpoints. Default: no limit.
        deleted_images: Container images that ECR no longer has.
        days_passed: How many days later it is for deploy-time functions, as their ``time.time()``.

    Raises:
        InvalidValueError: a word, an instance type or a rate that does not exist, or one string in
            place of several names. A typing error would otherwise be a failure that never happens.
    """

    seed: int = 0
    random_order: bool = False
    updates_replaced_on_rollback: bool = True
    duplicates_events: bool = False
    propagation: int = 0
    launches_old_fleet: bool = False
    endpoint_update: _EndpointUpdate = "succeeds"
    updated_endpoints: Collection[str] = ()
    component_update_resets_copies: bool = False
    looks_up_alarms_at_create: bool = False
    tags_assets: bool = False
    updates_with_the_same_config: bool = False
    failure_rate: float = 0.0
    failing: Mapping[str, When] = field(default_factory=dict)
    failing_restore: Mapping[str, When] = field(default_factory=dict)
    failing_delete: Collection[str] = ()
    without_capacity: Collection[str] = ()
    quotas: Mapping[str, int] = field(default_factory=dict)
    deleted_images: Collection[str] = ()
    days_passed: int = 0

    def __post_init__(self) -> None:
        _check_word("endpoint_update", self.endpoint_update, get_args(_EndpointUpdate))
        check_range("failure_rate", self.failure_rate, RangeLimit(0, 1))
        for name in ("failing", "failing_restore"):
            for logical_id, when in getattr(self, name).items():
                _check_word(f"{name}[{logical_id!r}]", when, get_args(When))

        # `"Endpoint" in "MyEndpoint"` is true, so a string would stand for other names.
        for name in ("updated_endpoints", "failing_delete", "without_capacity", "deleted_images"):
            names = getattr(self, name)
            if isinstance(names, str):
                raise InvalidValueError(
                    f"{name}: must be several names, got {names!r}; write [{names!r}]"
                )
        for instance_type in (*self.without_capacity, *self.quotas):
            InstanceType.of(instance_type)

    @classmethod
    def unfriendly(cls, seed: int) -> Behaviour:
        """Return a behaviour with every difficulty except failures of changes.

        Args:
            seed: The random decisions depend on it, and whether a rollback updates replaced custom
                resources.
        """
        chance = random.Random(seed)
        return cls(
            seed=seed,
            random_order=True,
            updates_replaced_on_rollback=chance.random() < 0.5,
            updates_with_the_same_config=chance.random() < 0.5,
            duplicates_events=True,
            propagation=3,
            launches_old_fleet=True,
            component_update_resets_copies=True,
            looks_up_alarms_at_create=True,
            tags_assets=True,
        )

    def draw(self, *key: str) -> float:
        """Return a number from 0 to 1 that depends only on the seed and the key."""
        return random.Random(f"{self.seed} {' '.join(key)}").random()

    def failure(self, logical_id: str, stack: str, *, is_custom: bool = False) -> When | None:
        """Return whether the change of a resource fails, before or after its service carried it
        out.

        Args:
            logical_id: Logical ID of the resource.
            stack: Path of its stack: its name, or ``STACK/NESTED`` for a nested stack.
            is_custom: Whether it is a custom resource, which does not lose its function's response
                at random.
        """
        for name in (f"{stack}/{logical_id}", logical_id):
            if name in self.failing:
                return self.failing[name]
        if self.draw("fails", logical_id) >= self.failure_rate:
            return None
        if self.draw("fails before", logical_id) < 0.5:
            return "before"
        return None if is_custom else "after"


def _check_word(name: str, value: object, known: Sequence[str]) -> None:
    if value not in known:
        hint = did_you_mean(str(value), known, "write one of them")
        raise InvalidValueError(f"{name}: must be one of {quoted(known)}, got {value!r}; {hint}")


CALM = Behaviour()
