"""``constructs-triton simulate``: simulate a scaling policy on a traffic pattern."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from decimal import Decimal
from shutil import get_terminal_size
from textwrap import wrap
from typing import Any

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.program.argument_types import add_common, whole_number
from constructs_triton_core.untrusted.terminal import print_json, print_lines
from constructs_triton_tools.cli.prices import decimal_argument
from constructs_triton_tools.cli.simulate.chart import LEGEND, draw_simulation
from constructs_triton_tools.measuring.plots import plot_simulation
from constructs_triton_tools.measuring.plots.figure import check_path
from constructs_triton_tools.planning import Assumptions, Fleet, Traffic, read_scaling, read_traffic, simulate
from constructs_triton_tools.planning.scaling import Scaling, ScheduledAction, TargetTracking
from constructs_triton_tools.planning.simulation_result import Simulation

__all__ = ["add_arguments", "run"]

_WIDTH = 100  # characters, where the output is not a terminal
_PATTERNS = ("step", "diurnal", "spike")
_EPILOG = """\
traffic files:
  traffic.csv    columns minute (or timestamp) and invocations
  traffic.json   the output of `aws cloudwatch get-metric-data` for Invocations, Sum, with a Period of 60

examples:
  constructs-triton simulate --pattern spike --low 2000 --high 15000 --throughput 1335 \\
      --target 667.5 --min-capacity 2 --max-capacity 25 --price-per-hour 0.94
  constructs-triton simulate traffic.csv --throughput 1335 --template cdk.out/Stack.template.json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "Simulate Application Auto Scaling minute by minute: instances over time, requests above capacity, "
        "and the cost compared with a fixed fleet. Nothing is sent to AWS. "
        "`constructs-triton simulate models` simulates how many models a multi-model endpoint keeps loaded."
    )
    parser.epilog = _EPILOG
    _add_traffic(parser.add_argument_group("traffic"))
    _add_fleet(parser.add_argument_group("instances"))
    _add_policy(parser.add_argument_group("scaling, by options or from a template"))
    _add_assumptions(parser.add_argument_group("assumptions that AWS does not document"))
    parser.add_argument("--plot", metavar="FILE", help="write a figure: .svg, .png or .pdf")
    add_common(parser, "--json")


def _add_traffic(group: argparse._ArgumentGroup) -> None:
    group.add_argument("traffic", nargs="?", metavar="TRAFFIC", help="a .csv or .json file, see below")
    group.add_argument("--pattern", choices=_PATTERNS, help="a generated pattern instead of a file")
    for name, text in (("--low", "lowest"), ("--high", "highest")):
        group.add_argument(
            name, type=decimal_argument, metavar="N", help=f"{text} invocations per minute of the pattern"
        )
    group.add_argument(
        "--high-minutes",
        type=whole_number(),
        metavar="N",
        help="length of a spike (default: 8) or a step (default: 120)",
    )


def _add_fleet(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--throughput",
        required=True,
        type=decimal_argument,
        metavar="N",
        help="invocations per minute that one instance can serve, from a load test",
    )
    group.add_argument(
        "--start-minutes",
        type=whole_number(),
        default=6,
        metavar="N",
        help="minutes until a new instance is in service (default: %(default)s; about 3 with image caching)",
    )
    group.add_argument(
        "--price-per-hour",
        type=decimal_argument,
        default=Decimal(0),
        metavar="PRICE",
        help="price of one instance hour (default: no costs)",
    )
    group.add_argument(
        "--latency-ms",
        type=decimal_argument,
        metavar="MS",
        help="time of one request, for policies on concurrent requests",
    )


def _add_policy(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--template", metavar="FILE", help="read policies from a synthesized template")
    group.add_argument("--endpoint", metavar="NAME", help="the endpoint in the template")
    group.add_argument("--variant", metavar="NAME", help="its variant")
    group.add_argument("--instance-type", metavar="TYPE", help="its instance type, if the template has none")
    group.add_argument(
        "--target", type=decimal_argument, metavar="N", help="target of invocations per instance and minute"
    )
    group.add_argument("--min-capacity", type=whole_number(), metavar="N", help="minimum number of instances")
    group.add_argument("--max-capacity", type=whole_number(), metavar="N", help="maximum number of instances")
    group.add_argument(
        "--initial",
        type=whole_number(),
        metavar="N",
        help="number of instances at the start (default: the minimum)",
    )
    for way in ("out", "in"):
        group.add_argument(
            f"--scale-{way}-cooldown",
            type=whole_number(),
            default=300,
            metavar="SECONDS",
            help=f"cooldown after scaling {way} (default: %(default)s)",
        )
    group.add_argument(
        "--schedule",
        action="append",
        default=[],
        metavar="WHEN=MIN:MAX",
        help="new bounds at a minute of the traffic or at a cron expression in UTC, for example 420=6:25 or "
        '"cron(0 7 * * ? *)=6:25"; repeat it',
    )


def _add_assumptions(group: argparse._ArgumentGroup) -> None:
    for name, type_, default, text in (
        ("--metric-delay-minutes", whole_number(), 1, "minutes until an alarm sees a finished minute"),
        ("--scale-out-points", whole_number(), 3, "minutes above the target before instances are added"),
        ("--scale-in-points", whole_number(), 15, "minutes below it before instances are removed"),
        ("--wait-minutes", decimal_argument, Decimal(1), "minutes that a request waits before it fails"),
    ):
        group.add_argument(
            name, type=type_, default=default, metavar="N", help=f"{text} (default: %(default)s)"
        )
    group.add_argument(
        "--refused-requests-do-not-count",
        action="store_true",
        help="the metric counts only served requests (default: all)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Simulate, and print a chart, the totals and what to change."""
    if arguments.plot:
        check_path(arguments.plot)
    result = simulate(_traffic(arguments), _scaling(arguments), _fleet(arguments), _assumptions(arguments))
    print_json(result.to_dict()) if arguments.json else _print(result)
    if arguments.plot:
        plot_simulation(result, arguments.plot)
    return 0


def _traffic(arguments: argparse.Namespace) -> Traffic:
    if (arguments.traffic is None) == (arguments.pattern is None):
        raise InvalidValueError(
            "TRAFFIC: must be either a file or a pattern; give a file, or --pattern with --low and --high"
        )
    if arguments.traffic is not None:
        return read_traffic(arguments.traffic)
    if arguments.low is None or arguments.high is None:
        raise InvalidValueError("--pattern: needs two levels; set --low and --high to invocations per minute")
    low, high = float(arguments.low), float(arguments.high)
    return Traffic.pattern(arguments.pattern, low=low, high=high, high_minutes=arguments.high_minutes)


def _fleet(arguments: argparse.Namespace) -> Fleet:
    return Fleet(
        invocations_per_minute=arguments.throughput,
        start_minutes=arguments.start_minutes,
        price_per_hour=arguments.price_per_hour,
        latency_ms=arguments.latency_ms,
    )


def _assumptions(arguments: argparse.Namespace) -> Assumptions:
    return Assumptions(
        metric_delay_minutes=arguments.metric_delay_minutes,
        scale_out_points=arguments.scale_out_points,
        scale_in_points=arguments.scale_in_points,
        wait_minutes=arguments.wait_minutes,
        counts_refused_requests=not arguments.refused_requests_do_not_count,
    )


def _scaling(arguments: argparse.Namespace) -> Scaling:
    if arguments.template is None:
        return _scaling_of_options(arguments)
    if arguments.target is not None:
        raise InvalidValueError("--target: cannot be combined with --template; remove one of them")
    scaling = read_scaling(
        arguments.template, arguments.endpoint, arguments.variant, instance_type=arguments.instance_type
    )
    changes: dict[str, Any] = {
        "min_capacity": arguments.min_capacity,
        "max_capacity": arguments.max_capacity,
        "initial_instance_count": arguments.initial,
    }
    changes = {name: value for name, value in changes.items() if value is not None}
    return replace(scaling, schedules=(*scaling.schedules, *map(_schedule, arguments.schedule)), **changes)


def _scaling_of_options(arguments: argparse.Namespace) -> Scaling:
    if arguments.min_capacity is None or arguments.max_capacity is None:
        raise InvalidValueError(
            "--min-capacity: the bounds are required; set --min-capacity and --max-capacity, or --template"
        )
    tracking = {
        "scale_out_cooldown_seconds": arguments.scale_out_cooldown,
        "scale_in_cooldown_seconds": arguments.scale_in_cooldown,
    }
    target = arguments.target
    return Scaling(
        min_capacity=arguments.min_capacity,
        max_capacity=arguments.max_capacity,
        policies=() if target is None else (TargetTracking(target=target, **tracking),),
        schedules=tuple(map(_schedule, arguments.schedule)),
        initial_instance_count=arguments.initial,
    )


def _schedule(text: str) -> Any:
    when, _, bounds = text.rpartition("=")
    low, colon, high = bounds.partition(":")
    if not (when and colon and (low.isdecimal() or high.isdecimal())):
        raise InvalidValueError(f'--schedule: must have the form WHEN=MIN:MAX, got "{text}"; write 420=6:25')
    return ScheduledAction(
        schedule=int(when) if when.isdecimal() else when,
        min_capacity=int(low) if low else None,
        max_capacity=int(high) if high else None,
    )


# --- output -----------------------------------------------------------------------------------------------


def _print(result: Simulation) -> None:
    width = get_terminal_size().columns if sys.stdout.isatty() else _WIDTH
    print_lines(*draw_simulation(result, width), f"        {LEGEND}", "")
    print_lines(*(part for line in _totals(result) for part in wrap(line, width)))
    print_lines(*([(part, "1")] for sentence in result.advice for part in wrap(sentence, width)))


def _totals(result: Simulation) -> list[str]:
    share = f" ({result.failed / result.arrived:.1%})" if result.arrived else ""
    lines = [
        f"instances          {result.peak_instances} at most, {result.activities} changes, "
        f"{result.instance_hours} instance hours",
        f"above capacity     {result.overloaded_minutes} minutes, "
        f"{result.requests_above_capacity:,} requests that waited or failed",
        f"failed             {result.failed:,} of {result.arrived:,} requests{share}",
    ]
    if result.cost:
        lines.append(
            f"cost               {result.cost:,}; fixed fleet of {result.fixed_instances}: "
            f"{result.fixed_cost:,}; perfect fleet: {result.perfect_cost:,}"
        )
    return lines
