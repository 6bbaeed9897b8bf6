"""``constructs-triton cost``: what the instances of a template cost per hour,
per month and per call.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from typing import Any, NamedTuple

from constructs_triton_core.aws_reader import AwsError, make_session
from constructs_triton_core.cloud_assembly.assembly import read_stacks
from constructs_triton_core.cloud_assembly.endpoints import (
    DeclaredEndpoint,
    DeclaredVariant,
    declared_endpoints,
    scalable_targets,
)
from constructs_triton_core.cloud_assembly.intrinsics import number_of
from constructs_triton_core.cloud_assembly.synthesized_stack import SynthesizedStack
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.program.argument_types import add_common, pair_argument
from constructs_triton_core.spelling import did_you_mean, quoted
from constructs_triton_core.untrusted.terminal import (
    print_json,
    print_lines,
    print_note,
    print_table,
)
from constructs_triton_tools.cli.assembly import add_template_arguments
from constructs_triton_tools.cli.options import add_price_arguments
from constructs_triton_tools.planning.prices import (
    HOURS_PER_MONTH,
    Prices,
    fetch_known_prices,
    given_prices,
)
from constructs_triton_tools.planning.quantities import read_decimal

NOT_COUNTED = (
    "Not counted: storage of instances and archives, data transfer, CloudWatch metrics, alarms and "
    "logs, functions of the deployment, serverless variants, discounts, Savings Plans and taxes. "
    "During an update, up to twice the instances run."
)
_HOUR_SECONDS, _MILLION = 3600, 1_000_000
_VARIANTS = "ProductionVariants", "ShadowProductionVariants"
_BOUNDS = "MinCapacity", "MaxCapacity"
_UPDATE_STACK = ":cloudformation:updateStack"
_COLUMNS = (
    "endpoint",
    "variant",
    "instance type",
    ("instances", "right"),
    ("per hour", "right"),
    ("per month", "right"),
)
Rates = Mapping[str, Decimal]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "Calculate what the instances of a template's endpoints cost: at the fewest instances that "
        "scaling allows, at those of the first deployment (in brackets), and at the most. Without "
        "--price and --prices, AWS's price list is read, in US dollars. A month has 730 hours. "
        f"{NOT_COUNTED}"
    )
    add_template_arguments(parser)
    add_price_arguments(parser)
    parser.add_argument(
        "--requests-per-second",
        action="extend",
        nargs="+",
        type=pair_argument("ENDPOINT=N", "digits=20"),
        default=[],
        metavar="ENDPOINT=N",
        help="mean rate of an endpoint, for its cost per million calls",
    )
    add_common(parser, "--region", "--profile", "--json")


class CostRange(NamedTuple):
    """Cost per hour of the fewest instances, of those of the first deployment, and of the most."""

    least: Decimal = Decimal(0)
    initial: Decimal = Decimal(0)
    most: Decimal = Decimal(0)

    def times(self, factor: Decimal | int) -> CostRange:
        """Return the cost of a longer time, or of more calls."""
        return CostRange(*(each * factor for each in self))

    @classmethod
    def together(cls, ranges: Iterable[CostRange]) -> CostRange:
        """Return the cost of all together."""
        return cls(*(sum(each, Decimal(0)) for each in zip(cls(), *ranges, strict=True)))


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
    #: A Region stands for an unknown one, so only different Regions say something.
    region: str = ""

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


@dataclass(frozen=True, slots=True)
class _Costs:
    """The fleets, their costs where known, and what could not be calculated."""

    fleets: Sequence[VariantFleet]
    prices_of: Mapping[str, Prices]
    """The prices of each Region of the fleets; they have one currency."""
    rates: Rates
    unknown: Sequence[str]
    notes: Sequence[str] = ()

    def cost(self, fleet: VariantFleet) -> CostRange | None:
        return fleet.cost_per_hour(self.prices_of[fleet.region])

    @property
    def prices(self) -> Prices:
        """Any prices, for their currency."""
        return next(iter(self.prices_of.values()))

    @property
    def priced(self) -> int:
        """The number of fleets whose cost is known."""
        return sum(self.cost(each) is not None for each in self.fleets)

    def total(self, endpoint: str | None = None) -> CostRange:
        """Return the cost of one endpoint, or of all, per hour."""
        fleets = (each for each in self.fleets if endpoint in (None, each.endpoint))
        return CostRange.together(cost for each in fleets if (cost := self.cost(each)))

    def per_million(self, endpoint: str) -> CostRange:
        return self.total(endpoint).times(
            Decimal(_MILLION) / (self.rates[endpoint] * _HOUR_SECONDS)
        )


def run(arguments: argparse.Namespace) -> int:
    """Print the cost of each variant and of all."""
    stacks = read_stacks(arguments.template, arguments.stack)
    fleets = [fleet for stack in stacks for fleet in fleets_of(stack)]
    if not fleets:
        names = quoted(each.name for each in stacks)
        raise InvalidValueError(
            f"{arguments.template}: no endpoint in the stacks {names}; choose other stacks"
        )
    rates = _rates(arguments.requests_per_second, fleets)
    unknown: list[str] = []
    prices_of = _prices(arguments, fleets, unknown)
    unknown += [
        f"{each.endpoint}/{each.variant}: only the deployment knows the number of instances"
        for each in fleets
        if each.instance_types and None in (each.least, each.initial, each.most)
    ]
    notes = [*_notes_of_prices(prices_of), *_notes(stacks)]
    costs = _Costs(fleets, prices_of, rates, unknown, notes)
    if not costs.priced:
        raise InvalidValueError(
            "\n".join([f"{arguments.template}: no cost can be calculated", *unknown])
        )
    if arguments.json:
        print_json(_as_json(costs))
    else:
        places = _places(fleets)
        columns = ("stack", *_COLUMNS) if places else _COLUMNS
        rows = [[*places.get(each.stack, ()), *_row(each, costs.cost(each))] for each in fleets]
        print_table(columns, rows)
        print_lines(*_summary(costs))
        print_note(*costs.prices.notes)
    return 0


def _places(fleets: Sequence[VariantFleet]) -> dict[str, list[str]]:
    """Return the cell of each stack if there are several, with its Region if there are several."""
    stacks = {fleet.stack: fleet.region for fleet in fleets}
    if len(stacks) == 1:
        return {}
    has_regions = len(set(stacks.values())) > 1
    return {
        name: [f"{name} ({region})" if has_regions else name] for name, region in stacks.items()
    }


def _notes_of_prices(prices_of: Mapping[str, Prices]) -> Iterator[str]:
    """Yield of which Region the prices are; of given ones, only the user knows it."""
    regions = sorted(prices_of)
    listed = sorted({prices.region for prices in prices_of.values() if prices.region})
    if listed:
        yield f"The prices are those of AWS's price list for {' and '.join(listed)}."
    if len(regions) > 1 and len(listed) < 2:
        yield (
            f"The prices of one Region count for all stacks, which are in {' and '.join(regions)}; "
            "for other prices, run it for each with --stack and --region or --price."
        )


def _notes(stacks: Sequence[SynthesizedStack]) -> Iterator[str]:
    """Yield what the sums do not say of an app that is off at times."""
    switched = [stack.name for stack in stacks if _is_switched(stack)]
    if switched:
        yield (
            f"The month counts all hours, also those in which a schedule turns {quoted(switched)} "
            "off: multiply by the part of the hours in which it is on."
        )


def _is_switched(stack: SynthesizedStack) -> bool:
    """Return whether EventBridge Scheduler updates a stack, as that of an off switch does."""
    schedules = stack.template.resources_of_type("AWS::Scheduler::Schedule")
    return any(
        _UPDATE_STACK in str(schedule.properties.get("Target")) for schedule in schedules.values()
    )


def fleets_of(stack: SynthesizedStack) -> Iterator[VariantFleet]:
    """Yield the fleet of each production and shadow variant of a stack."""
    bounds = {each.resource_id: _bounds(each.properties) for each in scalable_targets(stack)}
    for endpoint in declared_endpoints(stack, is_complete=False):
        variants = [each for kind in _VARIANTS for each in endpoint.config.get(kind, ())]
        declared = {str(each["VariantName"]): each for each in variants}
        for variant in (*endpoint.variants, *endpoint.shadow_variants):
            fleet = _fleet(stack.name, endpoint, variant, declared[variant.name], bounds)
            yield replace(fleet, region=stack.region)


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
        found = [
            *bounds.get(f"endpoint/{endpoint.name}/variant/{variant.name}", [initial, initial])
        ]
    types = [str(each) for each in variant.instance_types]
    return VariantFleet(stack, endpoint.name, variant.name, types, found[0], initial, found[1])


def _bounds(target: Mapping[str, Any]) -> Sequence[int | None]:
    """Return the fewest and the most instances of a target, also of those that a schedule sets."""
    scheduled = [
        each.get("ScalableTargetAction") or {} for each in target.get("ScheduledActions") or ()
    ]
    return [
        _extreme(
            choose,
            [_count(each[name]) for each in (target, *scheduled) if each.get(name) is not None],
        )
        for name, choose in zip(_BOUNDS, (min, max), strict=True)
    ]


def _extreme(choose: Any, counts: Sequence[int | None]) -> int | None:
    return None if None in counts or not counts else int(choose(counts))


def _count(declared: Any) -> int | None:
    value = number_of(declared)
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _rates(given: Sequence[tuple[str, str]], fleets: Sequence[VariantFleet]) -> dict[str, Decimal]:
    known = {each.endpoint for each in fleets}
    for name, _ in given:
        if name not in known:
            hint = did_you_mean(name, known, f"use one of {quoted(sorted(known))}")
            raise InvalidValueError(
                f'--requests-per-second: no endpoint "{name}" in the template; {hint}'
            )
    rates = {}
    for name, text in given:
        where = f"--requests-per-second {name}"
        rates[name] = read_decimal(where, text)
        if rates[name] <= 0:
            raise InvalidValueError(f"{where}: must be above 0, got {text}; give the mean rate")
    return rates


def _prices(
    arguments: argparse.Namespace, fleets: Sequence[VariantFleet], unknown: list[str]
) -> Mapping[str, Prices]:
    """Return the prices of each Region, and add to ``unknown`` what has none.

    AWS is asked only if no price was given.
    """
    prices = given_prices(arguments.price, arguments.prices)
    types = {name for each in fleets for name in each.instance_types}
    if not prices:
        try:
            return _listed_prices(arguments, fleets, unknown)
        except AwsError as error:
            example = f"--price {min(types, default='TYPE')}=PRICE"
            raise InvalidValueError(f"{error}, or give prices, such as {example}") from None
    unknown += [
        f"{name}: no price was given; add --price {name}=PRICE"
        for name in sorted(types - prices.keys())
    ]
    return dict.fromkeys((fleet.region for fleet in fleets), prices)


def _listed_prices(
    arguments: argparse.Namespace, fleets: Sequence[VariantFleet], unknown: list[str]
) -> Mapping[str, Prices]:
    """Return AWS's prices: of the Region of each stack, if there are several, else of the session.

    A stack without a Region of its own has a stand-in, so one Region alone says nothing.
    """
    types_of: dict[str, set[str]] = {}
    for fleet in fleets:
        types_of.setdefault(fleet.region, set()).update(fleet.instance_types)
    if arguments.region is not None or len(types_of) == 1:
        session = make_session(arguments.region, arguments.profile)
        every_type = sorted(set().union(*types_of.values()))
        return dict.fromkeys(types_of, fetch_known_prices(session, every_type, unknown))
    return {
        region: fetch_known_prices(make_session(region, arguments.profile), sorted(types), unknown)
        for region, types in sorted(types_of.items())
    }


def _row(fleet: VariantFleet, cost: CostRange | None) -> list[str]:
    return [
        fleet.endpoint,
        fleet.variant,
        " or ".join(fleet.instance_types) or "serverless",
        _range(
            *(
                "?" if each is None else str(each)
                for each in (fleet.least, fleet.initial, fleet.most)
            )
        ),
        "unknown" if cost is None else _money(cost),
        "unknown" if cost is None else _money(cost.times(HOURS_PER_MONTH)),
    ]


def _money(cost: CostRange) -> str:
    return _range(*(f"{each:,.2f}" for each in cost))


def _range(least: str, initial: str, most: str) -> str:
    """Return the least and the most, if they differ, and in brackets the first deployment's."""
    if least == most:
        return least
    return f"{least} to {most}" if initial in (least, most) else f"{least} to {most} ({initial})"


def _summary(costs: _Costs) -> Iterator[str]:
    total = costs.total()
    every = len(costs.fleets)
    partly = "" if costs.priced == every else f" ({costs.priced} of {every} variants)"
    unit, month = costs.prices.unit, _money(total.times(HOURS_PER_MONTH))
    yield f"together{partly}: {_money(total)}{unit} per hour, {month}{unit} per month"
    for endpoint, rate in costs.rates.items():
        cost = _money(costs.per_million(endpoint))
        yield f"{endpoint}: {cost}{unit} per million calls at {rate:f} requests per second"
    yield from (f"unknown: {each}" for each in costs.unknown)
    yield from costs.notes
    yield NOT_COUNTED


def _as_json(costs: _Costs) -> dict[str, Any]:
    return {
        "variants": [
            {**asdict(each), "cost_per_hour": _numbers(costs.cost(each))} for each in costs.fleets
        ],
        "cost_per_hour": _numbers(costs.total()),
        "cost_per_month": _numbers(costs.total().times(HOURS_PER_MONTH)),
        "cost_per_million_calls": {each: _numbers(costs.per_million(each)) for each in costs.rates},
        "currency": costs.prices.currency or None,
        "unknown": list(costs.unknown),
        "notes": list(costs.notes),
    }


def _numbers(cost: CostRange | None) -> dict[str, float] | None:
    return None if cost is None else {name: float(value) for name, value in cost._asdict().items()}
