"""The table and the summaries of ``constructs-triton plan``."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from decimal import Decimal
from shutil import get_terminal_size

from constructs_triton_core.untrusted.terminal import WIDE, print_note, print_table
from constructs_triton_tools.planning import Plan
from constructs_triton_tools.planning.instance_pools import PooledPlan

# The columns that a narrow terminal leaves out, in this order: scaling and cost, then the
# measurement.
_OPTIONAL = (12, 11, 10, 9, 8, 3, 4, 5)
_COLUMNS = (
    ("", "left"),
    ("configuration", "left"),
    ("instance type", "left"),
    ("invocations\nper min", "right"),
    ("latency\nms", "right"),
    ("within\nbound", "left"),
    ("instances", "right"),
    ("cost\nper h", "right"),
    ("cost\nper month", "right"),
    ("cost per\nmillion", "right"),
    ("max\ninstances", "right"),
    ("max cost\nper h", "right"),
    ("target\nper min", "right"),
)
# What the summary says of each limit of a plan, before "within 50 ms".
_LIMITED = {
    "latency_ms": "",
    "first_token_ms": "first token ",
    "between_tokens_ms": "between tokens ",
}


def print_plans(given: Iterable[Plan], chosen: Plan | None) -> None:
    """Print a row for each plan, the cheapest first, and those that miss a limit last."""
    plans = sorted(given, key=_order)
    if _are_streams(plans):
        columns = _stream_columns()
        rows = [_stream_cells(plan, plan is chosen) for plan in plans]
    else:
        columns = _COLUMNS
        rows = [_cells(plan, plan is chosen) for plan in plans]

    widths = _widths(columns, rows)
    available = get_terminal_size().columns if sys.stdout.isatty() else WIDE
    shown = _fitting(widths, available)
    print_table(
        [columns[column] for column in shown],
        [_only(row, shown) for row in rows],
        highlighted=_place_of(chosen, plans),
        is_narrow=len(shown) < len(columns),
        width=available,
    )

    hidden = [column for column in range(len(columns)) if column not in shown]
    if hidden:
        names = ", ".join(_in_one_line(columns[column][0]) for column in hidden)
        print_note(
            f"hidden: {names}; widen the terminal to {_total(widths)} columns, or use --json"
        )


def _only(row: Sequence[str], columns: Sequence[int]) -> list[str]:
    """Return the cells of a row that are in these columns."""
    return [row[column] for column in columns]


def _place_of(chosen: Plan | None, plans: Sequence[Plan]) -> int | None:
    """Return the row of the chosen plan itself, not of an equal one."""
    for row, plan in enumerate(plans):
        if plan is chosen:
            return row
    return None


def _in_one_line(heading: str) -> str:
    return " ".join(heading.split())


def _widths(columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the width of each column: that of its longest cell or line of the heading."""
    widths = []
    for column, (heading, _) in enumerate(columns):
        lines = heading.split("\n")
        cells = [row[column] for row in rows]
        widths.append(max(len(text) for text in (*lines, *cells)))
    return widths


def _total(widths: Sequence[int], space: int = 2) -> int:
    """Return the width of a table with this space between columns.

    Tables that lack columns have less.
    """
    return sum(widths) + space * (len(widths) - 1)


def _fitting(widths: Sequence[int], width: int) -> list[int]:
    """Return the columns that a terminal of this width shows."""
    shown = list(range(len(widths)))
    if _total(widths) <= width:
        return shown
    # A table that lacks a column has one space between columns in place of two.
    shown.remove(_OPTIONAL[0])
    for column in _OPTIONAL[1:]:
        if _total([widths[index] for index in shown], space=1) > width:
            shown.remove(column)
    return shown


def _order(plan: Plan) -> tuple[bool, Decimal]:
    """Sort by cost, after all plans that are within their latency."""
    return not plan.meets_latency, plan.cost_per_hour


def _cells(plan: Plan, is_chosen: bool) -> tuple[str, ...]:
    """Return the cells of a plan, in the order of ``_COLUMNS``."""
    measured = plan.measurement
    # If the rate is a lower bound, the number of instances is an upper bound.
    at_least = ">= " if measured.is_lower_bound else ""
    at_most = "<= " if measured.is_lower_bound else ""
    return (
        "*" if is_chosen else "",
        plan.configuration,
        plan.instance_type,
        f"{at_least}{measured.invocations_per_minute:f}",
        f"{measured.latency_ms:f}",
        "yes" if plan.meets_latency else "no",
        f"{at_most}{plan.initial_instance_count}",
        f"{plan.cost_per_hour:f}",
        f"{plan.cost_per_month:f}",
        f"{plan.cost_per_million:f}",
        str(plan.max_capacity),
        f"{plan.max_cost_per_hour:f}",
        f"{plan.target_invocations_per_minute:.10g}",
    )


def _are_streams(plans: Sequence[Plan]) -> bool:
    """Whether every plan was measured with streams, so that the table can show their figures."""
    return all(plan.measurement.first_token_ms is not None for plan in plans)


def _stream_columns() -> tuple[tuple[str, str], ...]:
    """The columns of streams: what one instance has open replaces its invocations."""
    return (
        *_COLUMNS[:3],
        ("open\nstreams", "right"),
        ("first\ntoken ms", "right"),
        ("between\ntokens ms", "right"),
        *_COLUMNS[5:9],
        ("cost per\nmillion tokens", "right"),
        *_COLUMNS[10:12],
        ("target", "right"),
    )


def _stream_cells(plan: Plan, is_chosen: bool) -> tuple[str, ...]:
    """Return the cells of a plan, in the order of ``_stream_columns``."""
    measured = plan.measurement
    at_least = ">= " if measured.is_lower_bound else ""
    open_streams = "" if measured.concurrency is None else f"{at_least}{measured.concurrency:f}"
    cells = _cells(plan, is_chosen)
    return (
        *cells[:3],
        open_streams,
        f"{measured.first_token_ms:f}",
        "" if measured.between_tokens_ms is None else f"{measured.between_tokens_ms:f}",
        *cells[5:9],
        _cost_per_million_tokens(plan),
        *cells[10:12],
        _target(plan),
    )


def _cost_per_million_tokens(plan: Plan) -> str:
    """Return the cost; "(events)" follows it if the container's events were counted as tokens."""
    if plan.cost_per_million_tokens is None:
        return ""
    unit = " (events)" if plan.measurement.token_unit == "events" else ""
    return f"{plan.cost_per_million_tokens:f}{unit}"


def _target(plan: Plan) -> str:
    """The target of scaling, for each instance."""
    if plan.target_concurrent_requests is None:
        return f"{plan.target_invocations_per_minute:.10g}/min"
    return f"{plan.target_concurrent_requests:.10g} open"


def summary(plan: Plan, currency: str = "") -> str:
    """Return the chosen plan in one line; ``currency`` follows each cost."""
    limits = plan.requirement.limits.items()
    bounds = " and".join(f" {_LIMITED[name]}within {limit} ms" for name, limit in limits)
    at_most = "at most " if plan.measurement.is_lower_bound else ""
    return (
        f"* cheapest{bounds}: {plan}, {at_most}{_instances(plan.initial_instance_count)} at "
        f"{plan.cost_per_hour:f}{currency} an hour, {plan.cost_per_month:f}{currency} a month; "
        f"scale from {plan.min_capacity} to {_instances(plan.max_capacity)} "
        f"at {_scaling_target(plan)}"
    )


def _scaling_target(plan: Plan) -> str:
    if plan.target_concurrent_requests is None:
        return f"{plan.target_invocations_per_minute:.10g} invocations per minute and instance"
    return f"{plan.target_concurrent_requests:.10g} concurrent requests per instance"


def summary_of_pools(pooled: PooledPlan, currency: str = "") -> str:
    """Return the plan of a fleet with several instance types in one line;
    ``currency`` follows each cost.
    """
    types = ", ".join(plan.instance_type for plan in pooled.plans)
    hour = _range(pooled.cost_per_hour)
    month = _range(pooled.cost_per_month)
    return (
        f"instance pools {types}: {_instances(pooled.initial_instance_count)}, enough for the "
        f"slowest type, at {hour}{currency} an hour, {month}{currency} a month; scale from "
        f"{pooled.plans[0].min_capacity} to {_instances(pooled.max_capacity)} with "
        f"max_requests_per_second={json.dumps(pooled.max_requests_per_second)}"
    )


def _range(costs: tuple[Decimal, Decimal]) -> str:
    least, most = costs
    return f"{least:f} to {most:f}"


def _instances(count: int) -> str:
    return f"{count} instance{'' if count == 1 else 's'}"
