"""How an endpoint distributes requests among its variants."""

from __future__ import annotations

from collections.abc import Sequence

from constructs_triton_tools.local.sources.specs import VariantSpec

__all__ = ["ShadowShare", "TrafficShare"]


class TrafficShare:
    """Chooses variants by smooth weighted round robin.

    Over any sequence of requests each variant's share is as close to its weight as whole requests allow. A
    variant with weight 0 receives only requests that name it in ``TargetVariant``.
    """

    def __init__(self, variants: Sequence[VariantSpec]) -> None:
        self._weights = {variant.name: variant.weight for variant in variants}
        self._credits = dict.fromkeys(self._weights, 0.0)

    def next(self) -> str:
        """Return the variant for the next request; the first one if all weights are 0."""
        total = sum(self._weights.values())
        for name, weight in self._weights.items():
            self._credits[name] += weight
        chosen = max(
            self._credits, key=lambda name: self._credits[name] if self._weights[name] else -total - 1
        )
        self._credits[chosen] -= total
        return chosen


class ShadowShare:
    """Chooses the requests that a shadow variant receives: its weight relative to production's."""

    def __init__(self, production: VariantSpec, shadow: VariantSpec) -> None:
        self._fraction = min(1.0, shadow.weight / production.weight) if production.weight else 0.0
        self._credit = 0.0

    def takes_next(self) -> bool:
        """Return whether the next request is copied."""
        self._credit += self._fraction
        if self._credit < 1.0:
            return False
        self._credit -= 1.0
        return True
