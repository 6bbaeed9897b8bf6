"""The instances that the endpoints of a template run: their types, and how many of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from constructs_triton_core.cloud_assembly.endpoints import (
    DeclaredEndpoint,
    declared_endpoints,
    scalable_targets,
)
from constructs_triton_core.cloud_assembly.intrinsics import number_of
from constructs_triton_core.cloud_assembly.synthesized_stack import SynthesizedStack


class InstanceCounts(NamedTuple):
    """How many instances a variant may run; ``None`` if only the deployment knows a count.

    Args:
        least: The fewest that scaling allows.
        initial: Those of the first deployment.
        most: The most that scaling allows.
    """

    least: int | None
    initial: int | None
    most: int | None


@dataclass(frozen=True, slots=True)
class VariantFleet:
    """The instances of a variant: their types in order of priority, and how many of them may run.

    A count is ``None`` if only the deployment knows it. A serverless variant has no types.
    """

    stack: str
    endpoint: str
    variant: str
    instance_types: list[str]
    least: int | None
    initial: int | None
    most: int | None
    #: A stack without a Region of its own has a stand-in, so only different Regions mean something.
    region: str = ""

    @property
    def counts(self) -> InstanceCounts:
        """The fewest, the first and the most instances."""
        return InstanceCounts(self.least, self.initial, self.most)


def fleets_of(stack: SynthesizedStack) -> Iterator[VariantFleet]:
    """Yield the fleet of each production and shadow variant of a stack."""
    bounds = {target.resource_id: _bounds(target.properties) for target in scalable_targets(stack)}
    for endpoint in declared_endpoints(stack, is_complete=False):
        declared = _declared_variants(endpoint)
        for variant in (*endpoint.variants, *endpoint.shadow_variants):
            scaled = bounds.get(f"endpoint/{endpoint.name}/variant/{variant.name}")
            yield VariantFleet(
                stack.name,
                endpoint.name,
                variant.name,
                [str(name) for name in variant.instance_types],
                *_counts(declared[variant.name], scaled),
                region=stack.region,
            )


def _declared_variants(endpoint: DeclaredEndpoint) -> dict[str, Mapping[str, Any]]:
    """Return the variants of the endpoint configuration as the template declares them, by name."""
    variants = [
        *endpoint.config.get("ProductionVariants", ()),
        *endpoint.config.get("ShadowProductionVariants", ()),
    ]
    return {str(variant["VariantName"]): variant for variant in variants}


class _Bounds(NamedTuple):
    least: int | None
    most: int | None


def _counts(variant: Mapping[str, Any], scaled: _Bounds | None) -> InstanceCounts:
    """Return the counts of a variant: managed scaling comes before Application Auto Scaling."""
    initial = _count(variant.get("InitialInstanceCount", 1))

    managed = variant.get("ManagedInstanceScaling") or {}
    if managed.get("Status") == "ENABLED":
        least = _count(managed.get("MinInstanceCount", initial))
        most = _count(managed.get("MaxInstanceCount", initial))
        return InstanceCounts(least, initial, most)

    if scaled is None:
        return InstanceCounts(initial, initial, initial)
    return InstanceCounts(scaled.least, initial, scaled.most)


def _bounds(target: Mapping[str, Any]) -> _Bounds:
    """Return the fewest and the most instances of a target, also of those that a schedule sets."""
    capacities = [target]
    for action in target.get("ScheduledActions") or ():
        capacities.append(action.get("ScalableTargetAction") or {})
    return _Bounds(
        _extreme(min, (capacity.get("MinCapacity") for capacity in capacities)),
        _extreme(max, (capacity.get("MaxCapacity") for capacity in capacities)),
    )


def _extreme(choose: Callable[[list[int]], int], declared: Iterable[Any]) -> int | None:
    """Return the smallest or largest count; ``None`` if one is not known, or none is declared."""
    known = []
    for value in declared:
        # A scheduled action that sets one bound leaves the other as it is.
        if value is None:
            continue
        count = _count(value)
        if count is None:
            return None
        known.append(count)
    return choose(known) if known else None


def _count(declared: Any) -> int | None:
    value = number_of(declared)
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
