"""What a run of the simulated account leaves to chance, or does as AWS does on a bad day.

Every decision is drawn from the seed and from the names of what it concerns. Two runs with the same seed take
the same decisions, however long their steps take.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from .steps import When

__all__ = ["CALM", "Behaviour"]


@dataclass(frozen=True)
class Behaviour:
    """How an account behaves. The defaults are a calm account, in which everything has one order."""

    seed: int = 0
    random_order: bool = False
    """CloudFormation treats independent resources in a random order."""
    updates_replaced_on_rollback: bool = True
    """A rollback sends an Update with the old properties also to custom resources whose physical id changed.

    AWS does not document which of the two happens.
    """
    duplicates_events: bool = False
    """Lambda delivers about every second request of CloudFormation twice."""
    propagation: int = 0
    """How many requests of a role a new or changed policy may at most miss."""
    launches_old_fleet: bool = False
    """UpdateEndpoint launches an instance of the old configuration too, for example to replace a host."""
    endpoint_update: Literal["succeeds", "fails", "reverts"] = "succeeds"
    """A failed update is reported. One that reverts is InService again with the old configuration."""
    component_update_resets_copies: bool = False
    """CloudFormation sends the template's number of copies with every update of an inference component."""
    looks_up_alarms_at_create: bool = False
    """CreateEndpoint refuses rollback alarms that do not exist, as UpdateEndpoint always does."""
    tags_assets: bool = False
    """A scanner tags every object in the asset bucket."""
    updates_with_the_same_config: bool = False
    """CloudFormation calls UpdateEndpoint also when the name of the endpoint configuration stays equal.

    AWS does not document whether a change of RetainAllVariantProperties alone leads to this call.
    """
    failure_rate: float = 0.0
    """The share of changes to resources that fail."""
    failing: Mapping[str, When] = field(default_factory=dict)
    """Logical ids of resources that cannot be created, updated or replaced.

    A custom resource that fails after its function carried out the request is one whose response was lost.
    """
    failing_restore: Mapping[str, When] = field(default_factory=dict)
    """Logical ids of resources that the rollback of an update cannot restore."""
    failing_delete: Collection[str] = ()
    """Logical ids of resources that cannot be deleted."""

    @classmethod
    def unfriendly(cls, seed: int) -> Behaviour:
        """Everything at once; the seed chooses the mode of rollback, and what is sent to an endpoint."""
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
        """A number from 0 to 1 that depends only on the seed and the key."""
        return random.Random(f"{self.seed} {' '.join(key)}").random()

    def failure(self, logical_id: str, *, is_custom: bool = False) -> When | None:
        """Whether the change of a resource fails, before or after its service carried it out.

        At random, a custom resource does not lose its function's response.
        """
        if logical_id in self.failing:
            return self.failing[logical_id]
        if self.draw("fails", logical_id) >= self.failure_rate:
            return None
        if self.draw("fails before", logical_id) < 0.5:
            return "before"
        return None if is_custom else "after"


CALM = Behaviour()
