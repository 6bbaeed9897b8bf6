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


def print_plans(given: Iterable[Plan], chosen: Plan | None) -> None:
    """Print a row for each plan, the cheapest first, and those that miss a limit last."""
    plans = sorted(given, key=_order)
    width = get_terminal_size().columns if sys.stdout.isatty() else WIDE
    columns = _stream_columns() if _are_streams(plans) else _COLUMNS
    cells = _stream_cells if _are_streams(plans) else _cells
    rows = [cells(plan, plan is chosen) for plan in plans]
    needed = [
        _width(heading, [row[index] for row in rows]) for index, (heading, _) in enumerate(columns)
    ]
    shown = _fitting(needed, width)
    print_table(
        [columns[index] for index in shown],
        ([row[index] for index in shown] for row in rows),
        highlighted=next((index for index, plan in enumerate(plans) if plan is chosen), None),
        is_narrow=len(shown) < len(columns),
        width=width,
    )
    if len(shown) < len(columns):
        hidden = [heading for index, (heading, _) in enumerate(columns) if index not in shown]
        names = ", ".join(" ".join(heading.split()) for heading in hidden)
        print_note(
            f"hidden: {names}; widen the terminal to {_total(needed)} columns, or use --json"
        )


def _width(heading: str, cells: Iterable[str]) -> int:
    return max(len(line) for line in (*heading.split("\n"), *cells))


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
    shown.remove(_OPTIONAL[0])
    for column in _OPTIONAL[1:]:
        if _total([widths[index] for index in shown], space=1) > width:
            shown.remove(column)
    return shown


def _order(plan: Plan) -> tuple[bool, Decimal]:
    return not plan.meets_latency, plan.cost_per_hour


def _cells(plan: Plan, is_chosen: bool) -> tuple[str, ...]:
    at_least, at_most = (">= ", "<= ") if plan.measurement.is_lower_bound else ("", "")
    return (
        "*" if is_chosen else "",
        plan.configuration,
        plan.instance_type,
        f"{at_least}{plan.measurement.invocations_per_minute:f}",
        f"{plan.measurement.latency_ms:f}",
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
    measured = plan.measurement
    at_least = ">= " if measured.is_lower_bound else ""
    cells = _cells(plan, is_chosen)
    cost = "" if plan.cost_per_million_tokens is None else f"{plan.cost_per_million_tokens:f}"
    return (
        *cells[:3],
        "" if measured.concurrency is None else f"{at_least}{measured.concurrency:f}",
        f"{measured.first_token_ms:f}",
        "" if measured.between_tokens_ms is None else f"{measured.between_tokens_ms:f}",
        *cells[5:9],
        f"{cost} (events)" if cost and measured.token_unit == "events" else cost,
        *cells[10:12],
        _target(plan),
    )


def _target(plan: Plan) -> str:
    """The target of scaling, for each instance."""
    if plan.target_concurrent_requests is None:
        return f"{plan.target_invocations_per_minute:.10g}/min"
    return f"{plan.target_concurrent_requests:.10g} open"


def summary(plan: Plan, currency: str = "") -> str:
    """Return the chosen plan in one line; ``currency`` follows each cost."""
    names = {
        "latency_ms": "",
        "first_token_ms": "first token ",
        "between_tokens_ms": "between tokens ",
    }
    limits = plan.requirement.limits
    bound = " and".join(f" {names[name]}within {limits[name]} ms" for name in limits)
    at_most = "at most " if plan.measurement.is_lower_bound else ""
    return (
        f"* cheapest{bound}: {plan}, {at_most}{_instances(plan.initial_instance_count)} at "
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
    hour, month = (
        f"{least:f} to {most:f}" for least, most in (pooled.cost_per_hour, pooled.cost_per_month)
    )
    return (
        f"instance pools {types}: {_instances(pooled.initial_instance_count)}, enough for the "
        f"slowest type, at {hour}{currency} an hour, {month}{currency} a month; scale from "
        f"{pooled.plans[0].min_capacity} to {_instances(pooled.max_capacity)} with "
        f"max_requests_per_second={json.dumps(pooled.max_requests_per_second)}"
    )


def _instances(count: int) -> str:
    return f"{count} instance{'' if count == 1 else 's'}"
