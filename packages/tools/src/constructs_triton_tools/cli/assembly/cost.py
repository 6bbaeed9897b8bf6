"""``constructs-triton cost``: what the instances of a template cost per hour, per month and per call."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any

from constructs_triton_core.aws.aws_reader import AwsError
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.program.argument_types import add_common, pair_argument
from constructs_triton_core.spelling import did_you_mean, quoted
from constructs_triton_core.untrusted.terminal import print_json, print_lines, print_table
from constructs_triton_tools.cli.assembly.stacks import add_template_arguments, read_stacks
from constructs_triton_tools.cli.options import (
    add_price_arguments,
    decimal_argument,
    fetch_known_prices,
    given_prices,
    open_session,
)
from constructs_triton_tools.planning.prices import HOURS_PER_MONTH
from constructs_triton_tools.planning.template_cost import CostRange, VariantFleet, fleets_of

NOT_COUNTED = (
    "Not counted: storage of instances and archives, data transfer, CloudWatch metrics, alarms and logs, "
    "functions of the deployment, serverless variants, discounts, Savings Plans and taxes. During an update, "
    "up to twice the instances run."
)
_HOUR_SECONDS, _MILLION = 3600, 1_000_000
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
        "Calculate what the instances of a template's endpoints cost: at the fewest instances that scaling "
        "allows, at those of the first deployment (in brackets), and at the most. Without --price and "
        "--prices, AWS's price list is read, in US dollars. A month has 730 hours. `cost prices` fetches "
        f"prices of instance types, and `cost idle` finds deployed endpoints without calls. {NOT_COUNTED}"
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


@dataclass(frozen=True, slots=True)
class _Costs:
    """The fleets, their costs where known, and what could not be calculated."""

    fleets: Sequence[VariantFleet]
    prices: Mapping[str, Decimal]
    rates: Rates
    unknown: Sequence[str]

    def cost(self, fleet: VariantFleet) -> CostRange | None:
        return fleet.cost_per_hour(self.prices)

    @property
    def priced(self) -> int:
        """The number of fleets whose cost is known."""
        return sum(self.cost(each) is not None for each in self.fleets)

    def total(self, endpoint: str | None = None) -> CostRange:
        """Return the cost of one endpoint, or of all, per hour."""
        fleets = (each for each in self.fleets if endpoint in (None, each.endpoint))
        return CostRange.sum(cost for each in fleets if (cost := self.cost(each)))

    def per_million(self, endpoint: str) -> CostRange:
        return self.total(endpoint).times(Decimal(_MILLION) / (self.rates[endpoint] * _HOUR_SECONDS))


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
    prices, unknown = _prices(arguments, fleets)
    unknown += [
        f"{each.endpoint}/{each.variant}: only the deployment knows the number of instances"
        for each in fleets
        if each.instance_types and None in (each.least, each.initial, each.most)
    ]
    costs = _Costs(fleets, prices, rates, unknown)
    if not costs.priced:
        raise InvalidValueError("\n".join([f"{arguments.template}: no cost can be calculated", *unknown]))
    if arguments.json:
        print_json(_as_json(costs))
    else:
        print_table(_COLUMNS, [_row(each, costs.cost(each)) for each in fleets])
        print_lines(*_summary(costs))
    return 0


def _rates(given: Sequence[tuple[str, str]], fleets: Sequence[VariantFleet]) -> dict[str, Decimal]:
    known = {each.endpoint for each in fleets}
    for name, _ in given:
        if name not in known:
            hint = did_you_mean(name, known, f"use one of {quoted(sorted(known))}")
            raise InvalidValueError(f'--requests-per-second: no endpoint "{name}" in the template; {hint}')
    rates = {}
    for name, text in given:
        try:
            rates[name] = decimal_argument(text)
        except argparse.ArgumentTypeError as error:
            raise InvalidValueError(f"--requests-per-second {name}: {error}") from None
        if rates[name] <= 0:
            raise InvalidValueError(
                f"--requests-per-second {name}: must be above 0, got {text}; give the mean rate"
            )
    return rates


def _prices(
    arguments: argparse.Namespace, fleets: Sequence[VariantFleet]
) -> tuple[dict[str, Decimal], list[str]]:
    """Return the prices and what has none. AWS is asked only if no price was given."""
    prices, unknown = given_prices(arguments), list[str]()
    types = {name for each in fleets for name in each.instance_types}
    if not prices:
        try:
            return fetch_known_prices(open_session(arguments), sorted(types), unknown), unknown
        except AwsError as error:
            example = f"--price {min(types, default='TYPE')}=PRICE"
            raise InvalidValueError(f"{error}, or give prices, such as {example}") from None
    unknown += [
        f"{name}: no price was given; add --price {name}=PRICE" for name in sorted(types - prices.keys())
    ]
    return prices, unknown


def _row(fleet: VariantFleet, cost: CostRange | None) -> list[str]:
    return [
        fleet.endpoint,
        fleet.variant,
        " or ".join(fleet.instance_types) or "serverless",
        _range(*("?" if each is None else str(each) for each in (fleet.least, fleet.initial, fleet.most))),
        "unknown" if cost is None else _money(cost),
        "unknown" if cost is None else _money(cost.times(HOURS_PER_MONTH)),
    ]


def _money(cost: CostRange) -> str:
    return _range(*(f"{each:,.2f}" for each in (cost.least, cost.initial, cost.most)))


def _range(least: str, initial: str, most: str) -> str:
    """Return the least and the most, if they differ, and in brackets the first deployment's."""
    if least == most:
        return least
    return f"{least} to {most}" if initial in (least, most) else f"{least} to {most} ({initial})"


def _summary(costs: _Costs) -> Iterator[str]:
    total = costs.total()
    every = len(costs.fleets)
    partly = "" if costs.priced == every else f" ({costs.priced} of {every} variants)"
    yield f"together{partly}: {_money(total)} per hour, {_money(total.times(HOURS_PER_MONTH))} per month"
    for endpoint, rate in costs.rates.items():
        cost = _money(costs.per_million(endpoint))
        yield f"{endpoint}: {cost} per million calls at {rate:f} requests per second"
    yield from (f"unknown: {each}" for each in costs.unknown)
    yield NOT_COUNTED


def _as_json(costs: _Costs) -> dict[str, Any]:
    return {
        "variants": [{**asdict(each), "cost_per_hour": _numbers(costs.cost(each))} for each in costs.fleets],
        "cost_per_hour": _numbers(costs.total()),
        "cost_per_month": _numbers(costs.total().times(HOURS_PER_MONTH)),
        "cost_per_million_calls": {each: _numbers(costs.per_million(each)) for each in costs.rates},
        "unknown": list(costs.unknown),
    }


def _numbers(cost: CostRange | None) -> dict[str, float] | None:
    return None if cost is None else {name: float(value) for name, value in asdict(cost).items()}
