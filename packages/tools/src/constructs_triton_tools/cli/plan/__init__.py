"""``constructs-triton plan``: choose instances and scaling targets from a measured benchmark."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from decimal import Decimal

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.program.argument_types import add_common, whole_number
from constructs_triton_core.program.exit_codes import EXIT_SUCCESS, EXIT_WRONG
from constructs_triton_core.untrusted.terminal import print_error, print_json, print_lines, print_note
from constructs_triton_tools.cli.dialogue import recommend
from constructs_triton_tools.cli.plan.table import print_plans, summary, summary_of_pools
from constructs_triton_tools.cli.prices import add_price_arguments, decimal_argument
from constructs_triton_tools.measuring.plots import plot_measurements, plot_plans
from constructs_triton_tools.measuring.plots.figure import check_path
from constructs_triton_tools.planning import Plan, Requirement, cheapest, plan_all, read_measurements
from constructs_triton_tools.planning.capacity import best_of_each
from constructs_triton_tools.planning.instance_pools import PooledPlan, plan_pools, plans_of_pools
from constructs_triton_tools.planning.prices import given_prices

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "Calculate for each measured configuration how many instances a load needs, the scaling target and "
        "the cost, and mark the cheapest. Exit code 1 if no configuration meets the limits, or none of a "
        "type of --instance-pools. `constructs-triton plan recommender` writes jobs of SageMaker Inference "
        "Recommender, and reads their results as a benchmark."
    )
    parser.add_argument(
        "benchmark",
        metavar="BENCHMARK",
        help="a CSV file with the columns configuration, instance_type, invocations_per_minute, latency_ms "
        "and price_per_hour; the last is optional with --price or --prices",
    )
    _add_requirement(parser)
    add_price_arguments(parser)
    parser.add_argument(
        "--steps",
        action="store_true",
        help="list every measured rate (default: the cheapest rate of each configuration within the limit)",
    )
    parser.add_argument(
        "--instance-pools",
        nargs="+",
        default=[],
        metavar="TYPE",
        help="also plan an endpoint with these instance types, of which any mix may run",
    )
    add_common(parser, "--json")
    parser.add_argument(
        "--plot", metavar="FILE", help="write a figure of cost against latency: .svg, .png or .pdf"
    )
    parser.add_argument(
        "--plot-throughput", metavar="FILE", help="write a figure of latency against throughput"
    )


def _add_requirement(parser: argparse.ArgumentParser) -> None:
    load = parser.add_mutually_exclusive_group(required=True)
    load.add_argument(
        "--requests-per-second",
        type=decimal_argument,
        metavar="N",
        help="peak load in requests per second",
    )
    load.add_argument(
        "--concurrent-streams",
        type=decimal_argument,
        metavar="N",
        help="most streams that are open at a time, of a benchmark by `load-test --stream`",
    )
    parser.add_argument(
        "--latency-ms",
        type=decimal_argument,
        metavar="MS",
        help="maximum latency in milliseconds (default: no limit)",
    )
    parser.add_argument(
        "--first-token-ms",
        type=decimal_argument,
        metavar="MS",
        help="maximum time to the first token of a stream in milliseconds (default: no limit)",
    )
    parser.add_argument(
        "--between-tokens-ms",
        type=decimal_argument,
        metavar="MS",
        help="maximum mean time between the tokens of a stream in milliseconds (default: no limit)",
    )
    parser.add_argument(
        "--headroom",
        type=decimal_argument,
        default=Decimal(0),
        metavar="FRACTION",
        help="additional capacity: 0.2 plans for 1.2 times the load (default: %(default)s)",
    )
    parser.add_argument(
        "--safety-factor",
        type=decimal_argument,
        default=Decimal("0.5"),
        metavar="FRACTION",
        help="fraction of the measured throughput that is the scaling target (default: %(default)s)",
    )
    parser.add_argument(
        "--min-capacity",
        type=whole_number(),
        default=1,
        metavar="N",
        help="minimum number of instances (default: %(default)s)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print every configuration and mark the cheapest one that meets the limits; return 1 if none does."""
    _check_plots(arguments)
    every = _plans(arguments)
    plans = every if arguments.steps else best_of_each(every)
    _warn(plans)
    pools = plans_of_pools(every, arguments.instance_pools or ())
    chosen: Plan | None = None
    pooled: PooledPlan | None = None
    missed: InvalidValueError | None = None
    try:
        chosen = cheapest(plans)
        pooled = plan_pools(pools) if pools else None
    except InvalidValueError as error:
        missed = error
    # The table is printed anyway: it shows how far the measurements are from the limit.
    _show(arguments, every, plans, chosen, pooled)
    if missed is None:
        return EXIT_SUCCESS
    print_error(missed)
    return EXIT_WRONG


def _check_plots(arguments: argparse.Namespace) -> None:
    for path in filter(None, (arguments.plot, arguments.plot_throughput)):
        check_path(path)


def _warn(plans: Iterable[Plan]) -> None:
    """Warn about figures of what may be another machine, and about those that are lower bounds."""
    given = {plan.instance_type: None for plan in plans if plan.measurement.instance_type_source == "given"}
    if given:
        print_note(
            f"warning: {', '.join(given)}: the instance type was given to the load test by hand, so another "
            "machine may have been measured; measure the endpoint in AWS before you rely on the plan"
        )
    bounds = {str(plan): None for plan in plans if plan.measurement.is_lower_bound}
    if bounds:
        print_note(
            f"warning: {', '.join(bounds)}: the load test ended before it reached the endpoint's limit. An "
            "instance may serve more (>=), so fewer instances may be enough (<=); run load-test again with a "
            "higher --to, --rates or --concurrency, or with more --processes"
        )


def _plans(arguments: argparse.Namespace) -> list[Plan]:
    requirement = Requirement(
        requests_per_second=arguments.requests_per_second,
        concurrent_streams=arguments.concurrent_streams,
        latency_ms=arguments.latency_ms,
        first_token_ms=arguments.first_token_ms,
        between_tokens_ms=arguments.between_tokens_ms,
        headroom=arguments.headroom,
        safety_factor=arguments.safety_factor,
        min_capacity=arguments.min_capacity,
    )
    prices = given_prices(arguments.price, arguments.prices)
    return plan_all(read_measurements(arguments.benchmark), requirement, prices)


# --- output -----------------------------------------------------------------------------------------------


def _show(
    arguments: argparse.Namespace,
    every: Sequence[Plan],
    plans: Sequence[Plan],
    chosen: Plan | None,
    pooled: PooledPlan | None = None,
) -> None:
    _print(arguments, plans, chosen, pooled)
    if arguments.plot:
        plot_plans(plans, arguments.plot, chosen=chosen)
    if arguments.plot_throughput:
        plot_measurements(
            [plan.measurement for plan in every],
            arguments.plot_throughput,
            latency_ms=_number(arguments.latency_ms),
            first_token_ms=_number(arguments.first_token_ms),
            between_tokens_ms=_number(arguments.between_tokens_ms),
        )


def _number(value: Decimal | None) -> float | None:
    return None if value is None else float(value)


def _print(
    arguments: argparse.Namespace, plans: Sequence[Plan], chosen: Plan | None, pooled: PooledPlan | None
) -> None:
    if arguments.json:
        answer = {"cheapest": chosen and chosen.to_dict(), "plans": [plan.to_dict() for plan in plans]}
        print_json({**answer, "instance_pools": pooled.to_dict()} if pooled else answer)
        return
    print_plans(plans, chosen)
    if chosen is not None:
        print_lines(summary(chosen))
    if pooled is not None:
        print_lines(summary_of_pools(pooled))
    if chosen is not None and arguments.requests_per_second is not None:
        rate, target = chosen.measurement.invocations_per_minute, chosen.target_invocations_per_minute
        bounds = f"--min-capacity {chosen.min_capacity} --max-capacity {chosen.max_capacity}"
        recommend(f"simulate TRAFFIC --throughput {rate:f} --target {target} {bounds}")
