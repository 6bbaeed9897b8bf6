"""The instances that the endpoints of a template may run, and their cost per hour."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from constructs_triton_core.cloud_assembly.endpoints import (
    DeclaredEndpoint,
    DeclaredVariant,
    declared_endpoints,
    scalable_targets,
)
from constructs_triton_core.cloud_assembly.intrinsics import number_of
from constructs_triton_core.cloud_assembly.synthesized_stack import SynthesizedStack

_VARIANTS = "ProductionVariants", "ShadowProductionVariants"
_BOUNDS = "MinCapacity", "MaxCapacity"


@dataclass(frozen=True, slots=True)
class CostRange:
    """Cost per hour of the fewest instances, of those of the first deployment, and of the most."""

    least: Decimal
    initial: Decimal
    most: Decimal

    def times(self, factor: Decimal | int) -> CostRange:
        """Return the cost of a longer time, or of more calls."""
        return CostRange(self.least * factor, self.initial * factor, self.most * factor)

    @classmethod
    def sum(cls, ranges: Iterable[CostRange]) -> CostRange:
        """Return the cost of all together."""
        every = list(ranges)
        zero = Decimal(0)
        return cls(
            sum((each.least for each in every), zero),
            sum((each.initial for each in every), zero),
            sum((each.most for each in every), zero),
        )


@dataclass(frozen=True, slots=True)
class VariantFleet:
    """The instances of a variant: their types in order of priority, and how many of them may run.

    A count is ``None`` if only the deployment knows it. A serverless variant has no types.
    """

    stack: str
    endpoint: str
    variant: str
    instance_types: Sequence[str]
    least: int | None
    initial: int | None
    most: int | None

    def cost_per_hour(self, prices: Mapping[str, Decimal]) -> CostRange | None:
        """Return the cost; ``None`` if a count, or the price of a type, is not known.

        Of several types, the cheapest counts for the fewest instances and the dearest for the most.
        """
        known = [prices[name] for name in self.instance_types if name in prices]
        counts = self.least, self.initial, self.most
        if not known or len(known) < len(self.instance_types) or None in counts:
            return None
        least, initial, most = (Decimal(each or 0) for each in counts)
        return CostRange(least * min(known), initial * known[0], most * max(known))


def fleets_of(stack: SynthesizedStack) -> Iterator[VariantFleet]:
    """Yield the fleet of each production and shadow variant of a stack."""
    bounds = {each.resource_id: _bounds(each.properties) for each in scalable_targets(stack)}
    for endpoint in declared_endpoints(stack, is_complete=False):
        variants = [each for kind in _VARIANTS for each in endpoint.config.get(kind, ())]
        declared = {str(each["VariantName"]): each for each in variants}
        for variant in (*endpoint.variants, *endpoint.shadow_variants):
            yield _fleet(stack.name, endpoint, variant, declared[variant.name], bounds)


def _fleet(
    stack: str,
    endpoint: DeclaredEndpoint,
    variant: DeclaredVariant,
    declared: Mapping[str, Any],
    bounds: Mapping[str, Sequence[int | None]],
) -> VariantFleet:
    initial = _count(declared.get("InitialInstanceCount", 1))
    managed = declared.get("ManagedInstanceScaling") or {}
    if managed.get("Status") == "ENABLED":
        found = [_count(managed.get(f"{each}InstanceCount", initial)) for each in ("Min", "Max")]
    else:
        found = [*bounds.get(f"endpoint/{endpoint.name}/variant/{variant.name}", [initial, initial])]
    types = [str(each) for each in variant.instance_types]
    return VariantFleet(stack, endpoint.name, variant.name, types, found[0], initial, found[1])


def _bounds(target: Mapping[str, Any]) -> Sequence[int | None]:
    """Return the fewest and the most instances of a target, also of those that a schedule sets."""
    scheduled = [each.get("ScalableTargetAction") or {} for each in target.get("ScheduledActions") or ()]
    return [
        _extreme(choose, [_count(each[name]) for each in (target, *scheduled) if each.get(name) is not None])
        for name, choose in zip(_BOUNDS, (min, max), strict=True)
    ]


def _extreme(choose: Any, counts: Sequence[int | None]) -> int | None:
    return None if None in counts or not counts else int(choose(counts))


def _count(declared: Any) -> int | None:
    value = number_of(declared)
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
