"""Cost against latency of plans, with their Pareto front;
latency against throughput of measurements.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import cycle
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.measuring.plots.figure import (
    BLUE,
    GREEN,
    GREY,
    PALETTE,
    RED,
    draw,
    set_plain_ticks,
    shortened,
)
from constructs_triton_tools.planning import Measurement, Plan
from constructs_triton_tools.planning.capacity import pareto_front
from constructs_triton_tools.planning.quantities import Number

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Annotation

_LABELS = {
    "invocations_per_minute": "invocations per minute and instance",
    "concurrency": "open streams of an instance",
    "latency_ms": "latency in ms",
    "first_token_ms": "time to first token in ms",
    "between_tokens_ms": "time between tokens in ms",
}
_SHORT = {
    "latency_ms": "latency",
    "first_token_ms": "first token",
    "between_tokens_ms": "between tokens",
}
_MARGIN = 1.35  # of a logarithmic axis beyond its points
#: Places of a label beside its point, in points, and its horizontal alignment.
Place = tuple[tuple[float, float], Literal["left", "right"]]
"""Where a label may be: its offset from its point in points, and its alignment."""
_PLACES: tuple[Place, ...] = (
    ((10, 8), "left"),
    ((10, -32), "left"),
    ((-10, -32), "right"),
    ((-10, 8), "right"),
    ((22, 22), "left"),
)
_OUTSIDE = 100
Box = tuple[float, float, float, float]
"""A rectangle of the picture: left, bottom, right and top in pixels."""
_SUBTITLE = "One instance. A line joins the steps of a load test of one configuration."


def plot_plans(
    plans: Sequence[Plan],
    path: str | PathLike[str],
    *,
    chosen: Plan | None = None,
    currency: str = "",
) -> None:
    """Draw cost per hour against latency, or against the figure of the first limit of streams.

    The line is the Pareto front: no plan left of it or below it was measured.

    Args:
        plans: The plans to draw.
        path: File to write; its ending decides the format, such as ``.svg`` or ``.png``.
        chosen: Plan to mark. Default: none.
        currency: Currency of the prices. Default: that of the prices, without its name.

    Raises:
        InvalidValueError: there are no plans, or the file cannot be written.
        MissingDependencyError: matplotlib is not installed.
    """
    if not plans:
        raise InvalidValueError(
            "plans: must contain at least one plan, got none; measure a configuration"
        )
    with draw(path, _title(plans[0], chosen, currency), _subtitle(plans[0])) as axes:
        axes.set_xscale("log")
        axes.set_yscale("log")
        _draw_plans(axes, plans, chosen)
        axes.set_xlabel(f"cost per hour in {currency or 'the currency of the prices'}, logarithmic")
        axes.set_ylabel(f"{_LABELS[plans[0].requirement.compared]}, logarithmic")
        axes.legend(loc="upper left", bbox_to_anchor=(0, -0.14), ncols=5)


def _title(plan: Plan, chosen: Plan | None, currency: str) -> str:
    if chosen is None:
        return f"No configuration is within {_bound(plan)} ms"
    count = chosen.initial_instance_count
    cost = chosen.cost_per_hour
    price = f"{cost:f} {currency}".rstrip()
    return (
        f"{shortened(str(chosen))}: {count} instance{'' if count == 1 else 's'} at {price} per hour"
    )


def _subtitle(plan: Plan) -> str:
    required = plan.requirement
    limits = "".join(
        f", {_SHORT[name]} at most {limit} ms" for name, limit in required.limits.items()
    )
    if required.concurrent_streams is not None:
        return f"For {required.concurrent_streams} open streams{limits}"
    return f"For {required.requests_per_second} requests per second{limits}"


def _bound(plan: Plan) -> Number | None:
    """The limit of the figure that is drawn."""
    return plan.requirement.limits.get(plan.requirement.compared)


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
            *_points([chosen]),
            s=320,
            facecolors="none",
            edgecolors=GREEN,
            lw=3,
            zorder=4,
            label="choice",
        )
    bound = _bound(plans[0])
    if bound is not None:
        axes.axhline(float(bound), color=RED, ls="--", lw=1.5, label=f"limit {bound} ms")
    _set_limits(axes, plans, bound is not None)
    _label_points(axes, plans, front)


def _points(plans: Sequence[Plan]) -> tuple[list[float], list[float]]:
    costs = [float(plan.cost_per_hour) for plan in plans]
    return costs, [float(plan.compared_ms) for plan in plans]


def _set_limits(axes: Axes, plans: Sequence[Plan], has_bound: bool) -> None:
    costs, latencies = _points(plans)
    if has_bound:
        latencies.append(float(_bound(plans[0]) or 0))
    axes.set_xlim(min(costs) / _MARGIN, max(costs) * _MARGIN)
    axes.set_ylim(min(latencies) / _MARGIN, max(latencies) * _MARGIN)
    set_plain_ticks(axes.xaxis, *axes.get_xlim())
    set_plain_ticks(axes.yaxis, *axes.get_ylim())


def _label_points(axes: Axes, plans: Sequence[Plan], front: Sequence[Plan]) -> None:
    """Label each point of the front with its configuration and instance type,
    beside the other points.
    """
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()  # the places of points and labels are known afterwards
    taken = [
        (x, y, x, y) for x, y in axes.transData.transform(list(zip(*_points(plans), strict=True)))
    ]
    for plan, cost, latency in zip(front, *_points(front), strict=True):
        label = axes.annotate(
            f"{shortened(plan.configuration)}\n{plan.instance_type}",
            (cost, latency),
            xytext=_PLACES[0][0],
            textcoords="offset points",
            fontsize=10,
            linespacing=1.1,
            zorder=5,
        )
        taken.append(_place(axes, label, taken))


def _place(axes: Axes, label: Annotation, taken: Sequence[Box]) -> Box:
    """Move a label to the place beside its point where it covers the least, and return its box."""
    drawing = _box(axes.bbox)
    boxes = {}
    penalties = {}
    for place in _PLACES:
        _move(label, place)
        box = _box(label.get_window_extent())
        boxes[place] = box
        penalties[place] = sum(_overlap(box, other) for other in taken)
        if not _is_within(box, drawing):
            penalties[place] += _OUTSIDE

    best = min(penalties, key=lambda place: penalties[place])
    _move(label, best)
    return boxes[best]


def _box(bounds: Any) -> Box:
    """Return matplotlib's bounds of a part of the picture as a tuple."""
    left, bottom, right, top = bounds.extents
    return left, bottom, right, top


def _move(label: Annotation, place: Place) -> None:
    """Move a label to an offset from its point, with an alignment."""
    offset, alignment = place
    label.set_position(offset)
    label.set_horizontalalignment(alignment)


def _overlap(box: Box, other: Box) -> bool:
    """Whether two boxes have a point in common."""
    left, bottom, right, top = box
    other_left, other_bottom, other_right, other_top = other
    is_beside = right < other_left or other_right < left
    is_above_or_below = top < other_bottom or other_top < bottom
    return not is_beside and not is_above_or_below


def _is_within(box: Box, outer: Box) -> bool:
    """Whether a box is completely in another one."""
    left, bottom, right, top = box
    outer_left, outer_bottom, outer_right, outer_top = outer
    return (
        outer_left <= left and right <= outer_right and outer_bottom <= bottom and top <= outer_top
    )


def plot_measurements(
    measurements: Sequence[Measurement],
    path: str | PathLike[str],
    *,
    latency_ms: float | None = None,
    first_token_ms: float | None = None,
    between_tokens_ms: float | None = None,
) -> None:
    """Draw latency against throughput, with a line for each configuration on each instance type.

    With a limit of streams, draw its figure against the streams that were open on one instance.

    The steps of a load test give a line; a single measurement gives a point.

    Args:
        measurements: What was measured.
        path: File to write; its ending decides the format, such as ``.svg`` or ``.png``.
        latency_ms: Latency limit to draw, in milliseconds. Default: none.
        first_token_ms: Limit to draw of the time to the first token. Default: none.
        between_tokens_ms: Limit to draw of the time between tokens. Default: none.

    Raises:
        InvalidValueError: there are no measurements, or the file cannot be written.
        MissingDependencyError: matplotlib is not installed.
    """
    series: dict[str, list[Measurement]] = defaultdict(list)
    for measurement in measurements:
        series[str(measurement)].append(measurement)
    if not series:
        raise InvalidValueError(
            "measurements: must contain at least one row, got none; run a load test"
        )

    limits = {
        "latency_ms": latency_ms,
        "first_token_ms": first_token_ms,
        "between_tokens_ms": between_tokens_ms,
    }
    figure, limit = _first_limit(limits)
    if figure == "latency_ms":
        load = "invocations_per_minute"
        title = "Latency against throughput"
    else:
        load = "concurrency"
        title = "Tokens against open streams"

    with draw(path, title, _SUBTITLE) as axes:
        axes.set_xscale("log")
        axes.set_yscale("log")
        for (name, rows), (color, label) in zip(series.items(), _colors(series), strict=True):
            _draw_series(axes, _values(rows, load, figure), color, shortened(label) or f"_{name}")
        if limit is not None:
            axes.axhline(limit, color=RED, ls="--", lw=1.5, label=f"limit {limit:g} ms")
        set_plain_ticks(axes.xaxis, *axes.get_xlim())
        set_plain_ticks(axes.yaxis, *axes.get_ylim())
        axes.set_xlabel(f"{_LABELS[load]}, logarithmic")
        axes.set_ylabel(f"{_LABELS[figure]}, logarithmic")
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))


def _first_limit(limits: Mapping[str, float | None]) -> tuple[str, float | None]:
    """Return the figure to draw and its limit: the first that is given, else the latency."""
    for figure, limit in limits.items():
        if limit:
            return figure, limit
    return "latency_ms", None


def _colors(series: Mapping[str, Sequence[Measurement]]) -> Iterator[tuple[str, str]]:
    """A color and a label for each series. Many of them have the colors of their instance types."""
    keys = list(series)
    if len(series) > len(PALETTE):
        keys = [measurements[0].instance_type for measurements in series.values()]

    # The legend has each color once, so only the first series of a color has a label.
    next_color = cycle(PALETTE)
    colors: dict[str, str] = {}
    for key in keys:
        is_first = key not in colors
        if is_first:
            colors[key] = next(next_color)
        yield colors[key], key if is_first else ""


def _values(rows: Sequence[Measurement], load: str, figure: str) -> list[tuple[float, float]]:
    """The points of a line, from left to right.

    Rows that were not measured with streams have none.
    """
    pairs = [(getattr(row, load), getattr(row, figure)) for row in rows]
    return sorted((float(x), float(y)) for x, y in pairs if x is not None and y is not None)


def _draw_series(axes: Axes, points: Sequence[tuple[float, float]], color: str, label: str) -> None:
    axes.plot(
        [x for x, _ in points],
        [y for _, y in points],
        color=color,
        lw=2,
        marker="o",
        # matplotlib leaves labels with an underscore out of the legend.
        label=label,
    )
