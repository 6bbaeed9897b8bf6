"""``constructs-triton cost idle``: find endpoints without calls, and what they cost."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Annotated, Any, TypedDict

from constructs_triton_core.declared_values import Value
from constructs_triton_core.facts.limits import RangeLimit
from constructs_triton_core.program.argument_types import add_common
from constructs_triton_core.program.exit_codes import EXIT_SUCCESS, EXIT_WRONG
from constructs_triton_core.untrusted.terminal import (
    print_json,
    print_lines,
    print_note,
    print_table,
    show_work,
)
from constructs_triton_tools.cli.options import add_options, open_session
from constructs_triton_tools.operations.idle import BilledVariant, IdleReport, find_idle
from constructs_triton_tools.planning.prices import (
    HOURS_PER_MONTH,
    Prices,
    fetch_known_prices,
    read_prices,
)

#: CloudWatch keeps data points of an hour for 455 days.
_KEPT_DAYS = 455
_COLUMNS = (
    "endpoint",
    "variant",
    ("calls", "right"),
    "instances",
    ("cost per day", "right"),
    ("cost per month", "right"),
    "owner",
)


class _Period(TypedDict, total=False):
    days: Annotated[
        int,
        Value(
            "days to look back; a younger endpoint is listed apart",
            default=14,
            limit=RangeLimit(1, _KEPT_DAYS),
            metavar="N",
        ),
    ]
    below: Annotated[
        int,
        Value(
            "call it idle with fewer calls than this; warm-up, canaries and `verify` call too",
            default=1,
            limit=RangeLimit(1, None),
            metavar="CALLS",
        ),
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "Find the variants and inference components of a Region that had no calls, with their cost "
        "at the on-demand price, their owner, and the command that stops them. Nothing is deleted. "
        "SageMaker has no figure for a single model of a multi-model endpoint. CloudWatch bills "
        "each metric that is read. Exit code 1 if something is idle."
    )
    add_options(parser, _Period)
    add_common(parser, "--prices", "--region", "--profile", "--json")


@dataclass(frozen=True, slots=True)
class _Found:
    """What is idle, the most expensive variants first, with prices per hour by instance type."""

    region: str
    limit: str
    report: IdleReport
    prices: Prices
    variants: Sequence[BilledVariant]
    not_read: Sequence[str]


def run(arguments: argparse.Namespace) -> int:
    """Print what is idle; return 1 if there is something, else 0."""
    prices = read_prices(arguments.prices) if arguments.prices else None
    session = open_session(arguments)
    period = timedelta(days=arguments.days)
    with show_work("reading the metrics of endpoints"):
        report = find_idle(session, now=datetime.now(UTC), period=period, below=arguments.below)
    not_read = list(report.not_read)
    if prices is None:
        types: set[str] = set()
        for variant in report.variants:
            types.update(variant.instances)
        prices = fetch_known_prices(session, sorted(types), not_read)
    calls = "no calls" if arguments.below == 1 else f"fewer than {arguments.below} calls"
    found = _Found(
        region=session.region_name,
        limit=f"{calls} in {arguments.days} days",
        report=report,
        prices=prices,
        variants=sorted(
            report.variants, key=lambda variant: -(_per_hour(variant, prices) or Decimal(0))
        ),
        not_read=not_read,
    )
    if arguments.json:
        print_json(_as_json(found))
    else:
        _print(found)
    return EXIT_WRONG if report.variants or report.components else EXIT_SUCCESS


def _per_hour(variant: BilledVariant, prices: Prices) -> Decimal | None:
    """Return the cost of the variant's instances; ``None`` if a price is not known."""
    if not variant.instances.keys() <= prices.keys():
        return None
    return sum((prices[name] * count for name, count in variant.instances.items()), Decimal(0))


def _print(found: _Found) -> None:
    counted = f"{len(found.variants)} of {found.report.looked_at} variants with instances"
    print_lines(f"{found.region}: {counted} had {found.limit}")
    if found.variants:
        print_table(_COLUMNS, [_row(variant, found.prices) for variant in found.variants])
        print_lines(
            *_total(found), *(f"stop: {_stop(variant, found.region)}" for variant in found.variants)
        )
    for component in found.report.components:
        print_lines(
            f"inference component {component.name} of {component.endpoint}: {component.calls} "
            "calls; others use its instances",
            "stop: aws sagemaker delete-inference-component --inference-component-name "
            f"{component.name} --region {found.region}",
        )
    print_note(*(found.prices.notes if found.variants else ()))
    print_lines(*_notes(found.report), *(f"not read: {unread}" for unread in found.not_read))


def _row(variant: BilledVariant, prices: Prices) -> list[str]:
    cost = _per_hour(variant, prices)
    return [
        variant.endpoint,
        variant.name,
        f"{variant.calls:,}",
        ", ".join(f"{count} x {name}" for name, count in sorted(variant.instances.items())),
        _money(cost, 24),
        _money(cost, HOURS_PER_MONTH),
        ", ".join(_owner(variant)),
    ]


def _money(per_hour: Decimal | None, hours: int) -> str:
    return "unknown" if per_hour is None else f"{per_hour * hours:,.2f}"


def _owner(variant: BilledVariant) -> Iterator[str]:
    if variant.stack:
        yield f"stack {variant.stack}"
    yield from (f"{key}={value}" for key, value in sorted(variant.tags.items()))


def _total(found: _Found) -> Iterator[str]:
    costs = [
        cost for variant in found.variants if (cost := _per_hour(variant, found.prices)) is not None
    ]
    if costs:
        total = sum(costs, Decimal(0))
        partly = "" if len(costs) == len(found.variants) else ", without those of unknown price"
        unit = found.prices.unit
        month = _money(total, HOURS_PER_MONTH)
        yield f"together{partly}: {_money(total, 24)}{unit} per day, {month}{unit} per month"


def _stop(variant: BilledVariant, region: str) -> str:
    """Return what removes the variant.

    A deletion beside CloudFormation breaks the stack's next update.
    """
    if variant.stack:
        thing = "the endpoint" if variant.is_only else f"variant {variant.name}"
        steps = f"remove {thing} from the app of stack {variant.stack}, and deploy it"
        if not variant.is_only:
            return steps
        return f"{steps}; `npx cdk destroy {variant.stack}` deletes the whole stack"
    if not variant.is_only:
        return f"remove variant {variant.name} from the configuration of {variant.endpoint}"
    return f"constructs-triton stop {variant.endpoint} --region {region}"


def _notes(report: IdleReport) -> Iterator[str]:
    if report.without_instances:
        yield f"no cost: {report.without_instances} variants have no instance now"
    if report.too_young:
        yield f"too young: {', '.join(report.too_young)}"
    for name, status in report.not_serving.items():
        yield f"not serving: {name} ({status}); whether SageMaker bills it is not settled"
    yield from (f"AWS disagrees: {disagreement}" for disagreement in report.disagreements)


def _as_json(found: _Found) -> dict[str, Any]:
    def priced(variant: BilledVariant) -> dict[str, Any]:
        cost = _per_hour(variant, found.prices)
        return {**asdict(variant), "cost_per_hour": None if cost is None else float(cost)}

    variants = [priced(variant) for variant in found.variants]
    currency = found.prices.currency or None
    return {
        **asdict(found.report),
        "variants": variants,
        "currency": currency,
        "not_read": list(found.not_read),
    }
