"""Cost against latency of plans, with their Pareto front; latency against throughput of measurements."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle
from os import PathLike
from typing import TYPE_CHECKING

from constructs_triton.errors import InvalidValueError
from constructs_triton.measuring.plots.figure import (
    BLUE,
    GREEN,
    GREY,
    PALETTE,
    RED,
    draw,
    set_plain_ticks,
    shortened,
)
from constructs_triton.planning import Measurement, Plan
from constructs_triton.planning.pareto import pareto_front

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_measurements", "plot_plans"]

_MARGIN = 1.35  # of a logarithmic axis beyond its points
_SUBTITLE = "One instance. A line joins the steps of a load test of one configuration."


def plot_plans(plans: Sequence[Plan], path: str | PathLike[str], *, chosen: Plan | None = None) -> None:
    """Draw cost per hour against latency.

    The line is the Pareto front: no plan left of it or below it was measured.

    Args:
        plans: The plans to draw.
        path: File to write; its ending decides the format, such as ``.svg`` or ``.png``.
        chosen: Plan to mark. Default: none.

    Raises:
        InvalidValueError: there are no plans, or the file cannot be written.
        MissingDependencyError: matplotlib is not installed.
    """
    if not plans:
        raise InvalidValueError("plans: must contain at least one plan, got none; measure a configuration")
    with draw(path, _title(plans[0], chosen), _subtitle(plans[0])) as axes:
        axes.set_xscale("log")
        axes.set_yscale("log")
        _draw_plans(axes, plans, chosen)
        axes.set_xlabel("cost per hour")
        axes.set_ylabel("latency in ms")
        axes.legend(loc="upper left", bbox_to_anchor=(0, -0.14), ncols=5)


def _title(plan: Plan, chosen: Plan | None) -> str:
    if chosen is None:
        return f"No configuration is within {plan.requirement.latency_ms} ms"
    count, cost = chosen.initial_instance_count, chosen.cost_per_hour
    return f"{shortened(str(chosen))}: {count} instance{'' if count == 1 else 's'} at {cost:f} an hour"


def _subtitle(plan: Plan) -> str:
    bound = plan.requirement.latency_ms
    limit = "" if bound is None else f", latency at most {bound} ms"
    return f"For {plan.requirement.requests_per_second} requests per second{limit}"


def _draw_plans(axes: Axes, plans: Sequence[Plan], chosen: Plan | None) -> None:
    front = pareto_front(plans)
    others = [plan for plan in plans if plan not in front]
    if others:
        axes.scatter(*_points(others), s=50, color=GREY, alpha=0.6, label="others")
    # From a point on, its latency is what the money buys until the next point.
    axes.step(*_points(front), where="post", color=BLUE, lw=2)
    axes.scatter(*_points(front), s=80, color=BLUE, zorder=3, label="Pareto front")
    if chosen is not None:
        axes.scatter(
            *_points([chosen]), s=320, facecolors="none", edgecolors=GREEN, lw=3, zorder=4, label="choice"
        )
    bound = plans[0].requirement.latency_ms
    if bound is not None:
        axes.axhline(float(bound), color=RED, ls="--", lw=1.5, label=f"limit {bound} ms")
    _set_limits(axes, plans, bound is not None)
    _label_points(axes, front)


def _points(plans: Sequence[Plan]) -> tuple[list[float], list[float]]:
    costs = [float(plan.cost_per_hour) for plan in plans]
    return costs, [float(plan.measurement.latency_ms) for plan in plans]


def _set_limits(axes: Axes, plans: Sequence[Plan], has_bound: bool) -> None:
    costs, latencies = _points(plans)
    if has_bound:
        latencies.append(float(plans[0].requirement.latency_ms or 0))
    axes.set_xlim(min(costs) / _MARGIN, max(costs) * _MARGIN)
    axes.set_ylim(min(latencies) / _MARGIN, max(latencies) * _MARGIN)
    set_plain_ticks(axes.xaxis, *axes.get_xlim())
    set_plain_ticks(axes.yaxis, *axes.get_ylim())


def _label_points(axes: Axes, front: Sequence[Plan]) -> None:
    """Label each point of the front with its configuration and instance type."""
    for plan, cost, latency in zip(front, *_points(front), strict=True):
        axes.annotate(
            f"{shortened(plan.configuration)}\n{plan.instance_type}",
            (cost, latency),
            xytext=(10, 8),
            textcoords="offset points",
            fontsize=10,
            linespacing=1.1,
        )


def plot_measurements(
    measurements: Sequence[Measurement], path: str | PathLike[str], *, latency_ms: float | None = None
) -> None:
    """Draw latency against throughput, with a line for each configuration on each instance type.

    The steps of a load test give a line; a single measurement gives a point.

    Args:
        measurements: What was measured.
        path: File to write; its ending decides the format, such as ``.svg`` or ``.png``.
        latency_ms: Latency limit to draw, in milliseconds. Default: none.

    Raises:
        InvalidValueError: there are no measurements, or the file cannot be written.
        MissingDependencyError: matplotlib is not installed.
    """
    series: dict[str, list[Measurement]] = defaultdict(list)
    for measurement in measurements:
        series[str(measurement)].append(measurement)
    if not series:
        raise InvalidValueError("measurements: must contain at least one row, got none; run a load test")
    with draw(path, "Latency against throughput", _SUBTITLE) as axes:
        axes.set_xscale("log")
        axes.set_yscale("log")
        for (name, rows), (color, label) in zip(series.items(), _colors(series), strict=True):
            _draw_series(axes, rows, color, shortened(label) or f"_{name}")
        if latency_ms is not None:
            axes.axhline(latency_ms, color=RED, ls="--", lw=1.5, label=f"limit {latency_ms:g} ms")
        set_plain_ticks(axes.xaxis, *axes.get_xlim())
        set_plain_ticks(axes.yaxis, *axes.get_ylim())
        axes.set_xlabel("invocations per minute and instance")
        axes.set_ylabel("latency in ms")
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))


def _colors(series: Mapping[str, Sequence[Measurement]]) -> Iterator[tuple[str, str]]:
    """A color and a label for each series. Many of them have the colors of their instance types."""
    by_type = len(series) > len(PALETTE)
    keys = [rows[0].instance_type if by_type else name for name, rows in series.items()]
    colors = dict(zip(dict.fromkeys(keys), cycle(PALETTE), strict=False))
    labelled: set[str] = set()
    for key in keys:
        yield colors[key], "" if key in labelled else key
        labelled.add(key)


def _draw_series(axes: Axes, rows: list[Measurement], color: str, label: str) -> None:
    ordered = sorted(rows, key=lambda row: float(row.invocations_per_minute))
    axes.plot(
        [float(row.invocations_per_minute) for row in ordered],
        [float(row.latency_ms) for row in ordered],
        color=color,
        lw=2,
        marker="o",
        # matplotlib leaves labels with an underscore out of the legend.
        label=label,
    )
