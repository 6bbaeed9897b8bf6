"""``constructs-triton cost``: what the instances of a template cost per hour,
per month and per call.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any, NamedTuple

from constructs_triton_core.aws_reader import AwsError, make_session
from constructs_triton_core.cloud_assembly.assembly import read_stacks
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
from constructs_triton_tools.assembly.fleets import VariantFleet, fleets_of
from constructs_triton_tools.cli.assembly import add_template_arguments
from constructs_triton_tools.cli.options import add_price_arguments
from constructs_triton_tools.planning.costs import CostRange, Costs
from constructs_triton_tools.planning.prices import Prices, fetch_known_prices, given_prices
from constructs_triton_tools.planning.quantities import read_decimal

NOT_COUNTED = (
    "Not counted: storage of instances and archives, data transfer, CloudWatch metrics, alarms and "
    "logs, functions of the deployment, serverless variants, discounts, Savings Plans and taxes. "
    "During an update, up to twice the instances run."
)
_UPDATE_STACK = ":cloudformation:updateStack"
_COLUMNS = (
    "endpoint",
    "variant",
    "instance type",
    ("instances", "right"),
    ("per hour", "right"),
    ("per month", "right"),
)


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


def run(arguments: argparse.Namespace) -> int:
    """Print the cost of each variant and of all."""
    stacks = read_stacks(arguments.template, arguments.stack)
    report = _report(arguments, stacks)
    if not report.costs.known_count:
        reasons = "".join(f"\n{reason}" for reason in report.unknown)
        raise InvalidValueError(f"{arguments.template}: no cost can be calculated{reasons}")

    if arguments.json:
        print_json(_as_json(report))
        return 0
    _print_table(report.costs)
    print_lines(*_summary(report))
    print_note(*report.costs.prices.notes)
    return 0


@dataclass(frozen=True, slots=True)
class _Report:
    """The costs, what could not be calculated, and what the sums do not show."""

    costs: Costs
    unknown: list[str]
    notes: list[str]


def _report(arguments: argparse.Namespace, stacks: Sequence[SynthesizedStack]) -> _Report:
    """Calculate the costs of the endpoints of these stacks.

    Raises:
        InvalidValueError: the stacks have no endpoint, or an option is wrong.
    """
    fleets: list[VariantFleet] = []
    for stack in stacks:
        fleets += fleets_of(stack)
    if not fleets:
        names = quoted(stack.name for stack in stacks)
        raise InvalidValueError(
            f"{arguments.template}: no endpoint in the stacks {names}; choose other stacks"
        )

    # Read before the prices: a wrong option fails without asking AWS.
    rates = _read_rates(arguments.requests_per_second, {fleet.endpoint for fleet in fleets})
    prices = _find_prices(arguments, fleets)
    return _Report(
        Costs(fleets, prices.of_region, rates),
        unknown=[*prices.unknown, *_unknown_counts(fleets)],
        notes=[*_price_notes(prices.of_region), *_schedule_notes(stacks)],
    )


def _read_rates(given: Sequence[tuple[str, str]], known: set[str]) -> dict[str, Decimal]:
    """Return the mean requests per second of endpoints by name."""
    rates = {}
    for name, text in given:
        if name not in known:
            hint = did_you_mean(name, known, f"use one of {quoted(sorted(known))}")
            raise InvalidValueError(
                f'--requests-per-second: no endpoint "{name}" in the template; {hint}'
            )
        where = f"--requests-per-second {name}"
        rate = read_decimal(where, text)
        if rate <= 0:
            raise InvalidValueError(f"{where}: must be above 0, got {text}; give the mean rate")
        rates[name] = rate
    return rates


def _unknown_counts(fleets: Sequence[VariantFleet]) -> Iterator[str]:
    """Yield a sentence for each fleet whose size is not in the template."""
    for fleet in fleets:
        if fleet.instance_types and None in fleet.counts:
            yield (
                f"{fleet.endpoint}/{fleet.variant}: only the deployment knows the number of "
                "instances"
            )


# --- the prices -----------------------------------------------------------------------------------


class _FoundPrices(NamedTuple):
    """The prices of each Region of the fleets, and a sentence for each that was not found."""

    of_region: Mapping[str, Prices]
    unknown: list[str]


def _find_prices(arguments: argparse.Namespace, fleets: Sequence[VariantFleet]) -> _FoundPrices:
    """Return the given prices, or those of AWS if none was given."""
    types_of: dict[str, set[str]] = {}
    for fleet in fleets:
        types_of.setdefault(fleet.region, set()).update(fleet.instance_types)
    types = _all_types(types_of)

    prices = given_prices(arguments.price, arguments.prices)
    if prices:
        missing = [name for name in types if name not in prices]
        unknown = [f"{name}: no price was given; add --price {name}=PRICE" for name in missing]
        return _FoundPrices(dict.fromkeys(types_of, prices), unknown)

    try:
        return _fetch_prices(arguments, types_of)
    except AwsError as error:
        example = f"--price {min(types, default='TYPE')}=PRICE"
        raise InvalidValueError(f"{error}, or give prices, such as {example}") from None


def _all_types(types_of: Mapping[str, set[str]]) -> list[str]:
    """Return the instance types of all Regions."""
    return sorted(set().union(*types_of.values()))


def _fetch_prices(arguments: argparse.Namespace, types_of: Mapping[str, set[str]]) -> _FoundPrices:
    """Return AWS's prices of the instance types of each Region.

    With one Region, or with --region, they are those of the session: a stack without a Region of
    its own has a stand-in, so one Region alone says nothing.
    """
    unknown: list[str] = []
    if arguments.region is not None or len(types_of) == 1:
        session = make_session(arguments.region, arguments.profile)
        prices = fetch_known_prices(session, _all_types(types_of), unknown)
        return _FoundPrices(dict.fromkeys(types_of, prices), unknown)

    of_region = {}
    for region, names in sorted(types_of.items()):
        session = make_session(region, arguments.profile)
        of_region[region] = fetch_known_prices(session, sorted(names), unknown)
    return _FoundPrices(of_region, unknown)


# --- what the sums do not show --------------------------------------------------------------------


def _price_notes(prices_of: Mapping[str, Prices]) -> Iterator[str]:
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


def _schedule_notes(stacks: Sequence[SynthesizedStack]) -> Iterator[str]:
    """Yield that the month also counts the hours in which a schedule turns stacks off."""
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


# --- the output -----------------------------------------------------------------------------------


def _print_table(costs: Costs) -> None:
    """Print a row for each fleet, with its stack if there are several."""
    rows = [_row(fleet, costs.of(fleet)) for fleet in costs.fleets]
    places = _places(costs.fleets)
    if not places:
        print_table(_COLUMNS, rows)
        return

    placed = []
    for fleet, row in zip(costs.fleets, rows, strict=True):
        placed.append([places[fleet.stack], *row])
    print_table(("stack", *_COLUMNS), placed)


def _places(fleets: Sequence[VariantFleet]) -> dict[str, str]:
    """Return the cell of each stack, with its Region if there are several; empty for one stack."""
    region_of = {fleet.stack: fleet.region for fleet in fleets}
    if len(region_of) == 1:
        return {}
    if len(set(region_of.values())) == 1:
        return {stack: stack for stack in region_of}
    return {stack: f"{stack} ({region})" for stack, region in region_of.items()}


def _row(fleet: VariantFleet, cost: CostRange | None) -> list[str]:
    """Return the cells of a fleet, in the order of ``_COLUMNS``."""
    least, initial, most = ("?" if count is None else str(count) for count in fleet.counts)
    return [
        fleet.endpoint,
        fleet.variant,
        " or ".join(fleet.instance_types) or "serverless",
        _range(least, initial, most),
        "unknown" if cost is None else _money(cost),
        "unknown" if cost is None else _money(cost.per_month()),
    ]


def _money(cost: CostRange) -> str:
    """Return a cost with two decimal places, without a currency."""
    return _range(f"{cost.least:,.2f}", f"{cost.initial:,.2f}", f"{cost.most:,.2f}")


def _range(least: str, initial: str, most: str) -> str:
    """Return the least and the most, if they differ, and in brackets the first deployment's."""
    if least == most:
        return least
    if initial in (least, most):
        return f"{least} to {most}"
    return f"{least} to {most} ({initial})"


def _summary(report: _Report) -> Iterator[str]:
    costs = report.costs
    total = costs.total()
    unit = costs.prices.unit

    partly = ""
    if costs.known_count < len(costs.fleets):
        partly = f" ({costs.known_count} of {len(costs.fleets)} variants)"
    yield (
        f"together{partly}: {_money(total)}{unit} per hour, "
        f"{_money(total.per_month())}{unit} per month"
    )

    for endpoint, rate in costs.rates.items():
        cost = _money(costs.per_million_calls(endpoint))
        yield f"{endpoint}: {cost}{unit} per million calls at {rate:f} requests per second"

    yield from (f"unknown: {sentence}" for sentence in report.unknown)
    yield from report.notes
    yield NOT_COUNTED


def _as_json(report: _Report) -> dict[str, Any]:
    costs = report.costs
    total = costs.total()
    variants = [
        {**asdict(fleet), "cost_per_hour": _numbers(costs.of(fleet))} for fleet in costs.fleets
    ]
    per_million_calls = {
        endpoint: _numbers(costs.per_million_calls(endpoint)) for endpoint in costs.rates
    }
    return {
        "variants": variants,
        "cost_per_hour": _numbers(total),
        "cost_per_month": _numbers(total.per_month()),
        "cost_per_million_calls": per_million_calls,
        "currency": costs.prices.currency or None,
        "unknown": report.unknown,
        "notes": report.notes,
    }


def _numbers(cost: CostRange | None) -> dict[str, float] | None:
    if cost is None:
        return None
    return {name: float(value) for name, value in cost._asdict().items()}
