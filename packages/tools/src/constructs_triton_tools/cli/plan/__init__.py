"""``constructs-triton plan``: choose instances and scaling targets from a measured benchmark."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from typing import Annotated, TypedDict

from constructs_triton_core.declared_values import Value
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.program.argument_types import add_common
from constructs_triton_core.program.exit_codes import EXIT_SUCCESS, EXIT_WRONG
from constructs_triton_core.untrusted.terminal import (
    print_error,
    print_json,
    print_lines,
    print_note,
)
from constructs_triton_tools.cli.next_command import recommend
from constructs_triton_tools.cli.options import (
    add_options,
    add_price_arguments,
    chosen_fields,
)
from constructs_triton_tools.cli.plan.table import print_plans, summary, summary_of_pools
from constructs_triton_tools.measuring.plots import plot_measurements, plot_plans
from constructs_triton_tools.measuring.plots.figure import check_path
from constructs_triton_tools.planning import (
    Plan,
    Requirement,
    cheapest,
    plan_all,
    read_measurements,
)
from constructs_triton_tools.planning.capacity import best_of_each
from constructs_triton_tools.planning.instance_pools import PooledPlan, plan_pools, plans_of_pools
from constructs_triton_tools.planning.prices import Prices, given_prices

__all__ = ["add_arguments", "run"]

_LOADS = ("requests_per_second", "concurrent_streams")


class _Shown(TypedDict, total=False):
    steps: Annotated[
        bool,
        Value(
            "list every measured rate",
            default=False,
            default_text="the cheapest rate of each configuration within the limit",
        ),
    ]
    instance_pools: Annotated[
        tuple[str, ...],
        Value(
            "also plan an endpoint with these instance types, of which any mix may run",
            metavar="TYPE",
        ),
    ]
    plot: Annotated[
        str, Value("write a figure of cost against latency: .svg, .png or .pdf", metavar="FILE")
    ]
    plot_throughput: Annotated[
        str, Value("write a figure of latency against throughput", metavar="FILE")
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "Calculate for each measured configuration how many instances a load needs, the scaling "
        "target and the cost, and mark the cheapest. Exit code 1 if no configuration meets the "
        "limits, or none of a type of --instance-pools."
    )
    parser.add_argument(
        "benchmark",
        metavar="BENCHMARK",
        help=(
            "a CSV file with the columns configuration, instance_type, invocations_per_minute, "
            "latency_ms and price_per_hour; the last is optional with --price or --prices"
        ),
    )
    add_options(parser.add_mutually_exclusive_group(required=True), Requirement, *_LOADS)
    add_options(parser, Requirement, without=_LOADS)
    add_price_arguments(parser)
    add_options(parser, _Shown)
    add_common(parser, "--json")


def run(arguments: argparse.Namespace) -> int:
    """Print every configuration and mark the cheapest one that meets the limits;
    return 1 if none does.
    """
    _check_plots(arguments)
    requirement = Requirement(**chosen_fields(arguments, Requirement))
    prices = given_prices(arguments.price, arguments.prices)
    every = plan_all(read_measurements(arguments.benchmark), requirement, prices)
    plans = every if arguments.steps else best_of_each(every)
    _warn(plans)
    pools = plans_of_pools(every, arguments.instance_pools)
    best: Plan | None = None
    pooled: PooledPlan | None = None
    missed: InvalidValueError | None = None
    try:
        best = cheapest(plans)
        pooled = plan_pools(pools) if pools else None
    except InvalidValueError as error:
        missed = error
    # The table is printed anyway: it shows how far the measurements are from the limit.
    _print(arguments, plans, best, pooled, prices)
    if arguments.plot:
        plot_plans(plans, arguments.plot, chosen=best, currency=prices.currency)
    _plot_throughput(arguments, requirement, every)
    if missed is None:
        return EXIT_SUCCESS
    print_error(missed)
    return EXIT_WRONG


def _check_plots(arguments: argparse.Namespace) -> None:
    for path in filter(None, (arguments.plot, arguments.plot_throughput)):
        check_path(path)


def _warn(plans: Iterable[Plan]) -> None:
    """Warn about figures of what may be another machine, and about those that are lower bounds."""
    given = {
        plan.instance_type: None
        for plan in plans
        if plan.measurement.instance_type_source == "given"
    }
    if given:
        print_note(
            f"warning: {', '.join(given)}: the instance type was given to the load test by hand, "
            "so another machine may have been measured; "
            "measure the endpoint in AWS before you rely on the plan"
        )
    bounds = {str(plan): None for plan in plans if plan.measurement.is_lower_bound}
    if bounds:
        print_note(
            f"warning: {', '.join(bounds)}: the load test ended before it reached the endpoint's "
            "limit. An instance may serve more (>=), so fewer instances may be enough (<=); run "
            "load-test again with a higher --to, --rates or --concurrency, "
            "or with more --processes"
        )


# --- output ---------------------------------------------------------------------------------------


def _plot_throughput(
    arguments: argparse.Namespace, requirement: Requirement, every: Sequence[Plan]
) -> None:
    if arguments.plot_throughput:
        plot_measurements(
            [plan.measurement for plan in every],
            arguments.plot_throughput,
            **{name: float(value) for name, value in requirement.limits.items()},
        )


def _print(
    arguments: argparse.Namespace,
    plans: Sequence[Plan],
    best: Plan | None,
    pooled: PooledPlan | None,
    prices: Prices,
) -> None:
    if arguments.json:
        shown = [plan.to_dict() for plan in plans]
        answer = {
            "cheapest": best and best.to_dict(),
            "plans": shown,
            "currency": prices.currency or None,
        }
        print_json({**answer, "instance_pools": pooled.to_dict()} if pooled else answer)
        return
    print_plans(plans, best)
    if best is not None:
        print_lines(summary(best, prices.unit))
    if pooled is not None:
        print_lines(summary_of_pools(pooled, prices.unit))
    print_note(*prices.notes)
    if best is not None and arguments.requests_per_second is not None:
        rate = best.measurement.invocations_per_minute
        target = best.target_invocations_per_minute
        bounds = f"--min-capacity {best.min_capacity} --max-capacity {best.max_capacity}"
        recommend(f"simulate TRAFFIC --throughput {rate:f} --target {target} {bounds}")
