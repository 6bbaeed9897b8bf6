"""``constructs-triton simulate``: simulate a scaling policy on a traffic pattern."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from shutil import get_terminal_size
from textwrap import wrap
from typing import Annotated, Any, Literal, TypedDict

from constructs_triton_core.declared_values import Value
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.program.argument_types import add_common
from constructs_triton_core.untrusted.terminal import print_json, print_lines, print_note
from constructs_triton_tools.cli.options import add_options, chosen, chosen_fields
from constructs_triton_tools.cli.simulate.chart import LEGEND, draw_simulation
from constructs_triton_tools.measuring.plots import plot_simulation
from constructs_triton_tools.measuring.plots.figure import check_path
from constructs_triton_tools.planning import (
    Assumptions,
    Fleet,
    Traffic,
    read_scaling,
    read_traffic,
    simulate,
)
from constructs_triton_tools.planning.scaling import Scaling, ScheduledAction, TargetTracking
from constructs_triton_tools.planning.simulation_result import Simulation

__all__ = ["add_arguments", "run"]

_WIDTH = 100  # characters, where the output is not a terminal
_EPILOG = """\
traffic files:
  traffic.csv    columns minute (or timestamp) and invocations
  traffic.json   the output of `aws cloudwatch get-metric-data` for Invocations, Sum, \
with a Period of 60

examples:
  constructs-triton simulate --pattern spike --low 2000 --high 15000 --throughput 1335 \\
      --target 667.5 --min-capacity 2 --max-capacity 25 --price-per-hour 0.94
  constructs-triton simulate traffic.csv --throughput 1335 --template cdk.out/Stack.template.json
"""


class _Pattern(TypedDict, total=False):
    pattern: Annotated[
        Literal["step", "diurnal", "spike"], Value("a generated pattern instead of a file")
    ]
    low: Annotated[Decimal, Value("lowest invocations per minute of the pattern", metavar="N")]
    high: Annotated[Decimal, Value("highest invocations per minute of the pattern", metavar="N")]
    high_minutes: Annotated[
        int,
        Value(
            "length of a spike or a step", default_text="8 for a spike, 120 for a step", metavar="N"
        ),
    ]


class _Template(TypedDict, total=False):
    template: Annotated[str, Value("read policies from a synthesized template", metavar="FILE")]
    endpoint: Annotated[str, Value("the endpoint in the template", metavar="NAME")]
    variant: Annotated[str, Value("its variant", metavar="NAME")]
    instance_type: Annotated[
        str, Value("its instance type, if the template has none", metavar="TYPE")
    ]


class _Bounds(TypedDict, total=False):
    min_capacity: Annotated[int, Value("minimum number of instances", metavar="N")]
    max_capacity: Annotated[int, Value("maximum number of instances", metavar="N")]
    initial_instance_count: Annotated[
        int,
        Value(
            "number of instances at the start",
            default_text="the minimum",
            flag="--initial",
            metavar="N",
        ),
    ]


class _Policy(TypedDict, total=False):
    target: Annotated[Decimal, Value("target of invocations per instance and minute", metavar="N")]
    schedule: Annotated[
        Sequence[str],
        Value(
            "new bounds at a minute of the traffic or at a cron expression in UTC, for example "
            '420=6:25 or "cron(0 7 * * ? *)=6:25"',
            metavar="WHEN=MIN:MAX",
        ),
    ]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.description = (
        "Simulate Application Auto Scaling minute by minute: instances over time, requests above "
        "capacity, and the cost compared with a fixed fleet. Nothing is sent to AWS."
    )
    parser.epilog = _EPILOG
    traffic = parser.add_argument_group("traffic")
    traffic.add_argument(
        "traffic", nargs="?", metavar="TRAFFIC", help="a .csv or .json file, see below"
    )
    add_options(traffic, _Pattern)
    add_options(parser.add_argument_group("instances"), Fleet)
    scaling = parser.add_argument_group("scaling, by options or from a template")
    for kind in (_Template, _Bounds, _Policy, TargetTracking):
        add_options(scaling, kind)
    assumptions = parser.add_argument_group("assumptions that AWS does not document")
    add_options(assumptions, Assumptions)
    assumptions.add_argument(
        "--refused-requests-do-not-count",
        dest="counts_refused_requests",
        action="store_false",
        help="the metric counts only served requests (default: all)",
    )
    parser.add_argument("--plot", metavar="FILE", help="write a figure: .svg, .png or .pdf")
    add_common(parser, "--json")


def run(arguments: argparse.Namespace) -> int:
    """Simulate, and print a chart, the totals and what to change."""
    if arguments.plot:
        check_path(arguments.plot)
    assumptions = Assumptions(
        **chosen_fields(arguments, Assumptions),
        counts_refused_requests=arguments.counts_refused_requests,
    )
    fleet = Fleet(**chosen_fields(arguments, Fleet))
    result = simulate(_traffic(arguments), _scaling(arguments), fleet, assumptions)
    print_json(result.to_dict()) if arguments.json else _print(result)
    if arguments.plot:
        plot_simulation(result, arguments.plot)
    return 0


def _traffic(arguments: argparse.Namespace) -> Traffic:
    if (arguments.traffic is None) == (arguments.pattern is None):
        raise InvalidValueError(
            "TRAFFIC: must be either a file or a pattern; "
            "give a file, or --pattern with --low and --high"
        )
    if arguments.traffic is not None:
        return read_traffic(arguments.traffic)
    if arguments.low is None or arguments.high is None:
        raise InvalidValueError(
            "--pattern: needs two levels; set --low and --high to invocations per minute"
        )
    low = float(arguments.low)
    high = float(arguments.high)
    return Traffic.pattern(
        arguments.pattern, low=low, high=high, high_minutes=arguments.high_minutes
    )


def _scaling(arguments: argparse.Namespace) -> Scaling:
    if arguments.template is None:
        return _scaling_of_options(arguments)
    if arguments.target is not None:
        raise InvalidValueError("--target: cannot be combined with --template; remove one of them")
    scaling = read_scaling(
        arguments.template,
        arguments.endpoint,
        arguments.variant,
        instance_type=arguments.instance_type,
    )
    schedules = (*scaling.schedules, *map(_schedule, arguments.schedule))
    return replace(scaling, schedules=schedules, **chosen(arguments, _Bounds))


def _scaling_of_options(arguments: argparse.Namespace) -> Scaling:
    if arguments.min_capacity is None or arguments.max_capacity is None:
        raise InvalidValueError(
            "--min-capacity: the bounds are required; "
            "set --min-capacity and --max-capacity, or --template"
        )
    target = arguments.target
    policies = []
    if target is not None:
        fields = chosen_fields(arguments, TargetTracking)
        policies.append(TargetTracking(target=target, **fields))
    schedules = tuple(map(_schedule, arguments.schedule))
    return Scaling(policies=tuple(policies), schedules=schedules, **chosen(arguments, _Bounds))


def _schedule(text: str) -> Any:
    when, _, bounds = text.rpartition("=")
    low, colon, high = bounds.partition(":")
    if not (when and colon and (low.isdecimal() or high.isdecimal())):
        raise InvalidValueError(
            f'--schedule: must have the form WHEN=MIN:MAX, got "{text}"; write 420=6:25'
        )
    return ScheduledAction(
        schedule=int(when) if when.isdecimal() else when,
        min_capacity=int(low) if low else None,
        max_capacity=int(high) if high else None,
    )


# --- output ---------------------------------------------------------------------------------------


def _print(result: Simulation) -> None:
    width = get_terminal_size().columns if sys.stdout.isatty() else _WIDTH
    print_lines(*draw_simulation(result, width), f"        {LEGEND}", "")
    for line in _totals(result):
        print_lines(*wrap(line, width))
    if result.cost:
        print_note("Costs are in the currency of --price-per-hour.")
    for sentence in result.advice:
        print_lines(*([(part, "1")] for part in wrap(sentence, width)))


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
