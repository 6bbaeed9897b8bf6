"""What the instances of variants cost per hour, per month and per call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

from constructs_triton_tools.assembly.fleets import VariantFleet
from constructs_triton_tools.planning.prices import HOURS_PER_MONTH, Prices

_HOUR_SECONDS = 3600
_MILLION = 1_000_000


class CostRange(NamedTuple):
    """Cost of the fewest instances, of those of the first deployment, and of the most."""

    least: Decimal = Decimal(0)
    initial: Decimal = Decimal(0)
    most: Decimal = Decimal(0)

    def times(self, factor: Decimal | int) -> CostRange:
        """Return the cost of a longer time, or of more calls."""
        return CostRange(self.least * factor, self.initial * factor, self.most * factor)

    def per_month(self) -> CostRange:
        """Return the cost per month, of a cost per hour."""
        return self.times(HOURS_PER_MONTH)

    @classmethod
    def sum_of(cls, ranges: Iterable[CostRange]) -> CostRange:
        """Return the cost of all of them together."""
        total = cls()
        for cost in ranges:
            total = cls(
                total.least + cost.least, total.initial + cost.initial, total.most + cost.most
            )
        return total


def cost_per_hour(fleet: VariantFleet, prices: Mapping[str, Decimal]) -> CostRange | None:
    """Return the cost of a fleet; ``None`` if a count, or the price of a type, is not known.

    Of several types, the cheapest counts for the fewest instances, the first for the first
    deployment, and the most expensive for the most.
    """
    least, initial, most = fleet.counts
    if least is None or initial is None or most is None or not fleet.instance_types:
        return None
    if not all(name in prices for name in fleet.instance_types):
        return None
    known = [prices[name] for name in fleet.instance_types]
    return CostRange(least * min(known), initial * known[0], most * max(known))


@dataclass(frozen=True, slots=True)
class Costs:
    """The costs of fleets, where they are known.

    Args:
        fleets: The instances.
        prices_of: The prices in each Region of the fleets; all have one currency.
        rates: Mean requests per second of endpoints, by name.
    """

    fleets: Sequence[VariantFleet]
    prices_of: Mapping[str, Prices]
    rates: Mapping[str, Decimal]

    @property
    def prices(self) -> Prices:
        """Any prices, for their currency."""
        return next(iter(self.prices_of.values()))

    @property
    def known_count(self) -> int:
        """The number of fleets whose cost is known."""
        return sum(self.of(fleet) is not None for fleet in self.fleets)

    def of(self, fleet: VariantFleet) -> CostRange | None:
        """Return the cost of a fleet per hour; ``None`` if it is not known."""
        return cost_per_hour(fleet, self.prices_of[fleet.region])

    def total(self) -> CostRange:
        """Return the known cost of all fleets per hour."""
        return self._sum(self.fleets)

    def per_million_calls(self, endpoint: str) -> CostRange:
        """Return the known cost of a million calls of an endpoint, at its rate."""
        hourly = self._sum(fleet for fleet in self.fleets if fleet.endpoint == endpoint)
        return hourly.times(Decimal(_MILLION) / (self.rates[endpoint] * _HOUR_SECONDS))

    def _sum(self, fleets: Iterable[VariantFleet]) -> CostRange:
        costs = (self.of(fleet) for fleet in fleets)
        return CostRange.sum_of(cost for cost in costs if cost is not None)
