"""Latency against load in a load test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from os import PathLike
from typing import TYPE_CHECKING

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.measuring.load_test.search import HeldSteps
from constructs_triton_tools.measuring.load_test.step import Limits, StepResult, Verdict
from constructs_triton_tools.measuring.load_test.stream_figures import StreamLimits
from constructs_triton_tools.measuring.plots.figure import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    RED,
    draw,
    set_plain_ticks,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKS = {
    Verdict.HELD: ("o", "held"),
    Verdict.NOT_HELD: ("X", "not held"),
    Verdict.VOID: ("$?$", "void"),
}


def plot_load_test(
    steps: Sequence[StepResult],
    path: str | PathLike[str],
    limits: Limits,
    *,
    title: str = "The endpoint",
) -> None:
    """Draw the percentiles of the latency against the requests per second, with the limit.

    Of streams, draw the times to the first token and between tokens, against the rate or the open
    streams. Of several steps at one rate the last one is drawn.

    The ending of ``path`` decides the format, such as ``.svg`` or ``.png``.
    """
    answered = {step.rate: step for step in steps if step.good}
    ordered = [answered[rate] for rate in sorted(answered)]
    if not ordered:
        raise InvalidValueError(
            "steps: no request was answered, so there is nothing to draw; see the errors"
        )
    held = [step for step in ordered if step.verdict is Verdict.HELD]
    highest = max((step.good_per_second for step in held), default=0.0)
    at_least = "at least " if HeldSteps.of(steps).lower_bound_reason else ""
    headline = (
        f"holds {at_least}{highest:,.0f} requests per second" if held else "holds none of the rates"
    )
    if held and held[-1].stream:
        headline = f"holds {at_least}{_describe_load(held[-1])}"
    with draw(path, f"{title} {headline}", _describe_limits(limits)) as axes:
        _draw(axes, ordered, limits)


def _describe_load(step: StepResult) -> str:
    if step.by_concurrency:
        return f"{step.rate:g} open streams"
    return f"{step.good_per_second:,.1f} streams per second"


def _describe_limits(limits: Limits) -> str:
    percentile = f"p{limits.percentile:g}"
    if limits.stream is None:
        return (
            f"{percentile} within {limits.latency_ms:g} ms, without errors. "
            "Latency counts from when a request was due."
        )
    named = {
        "first token": limits.stream.first_token_ms,
        "between tokens": limits.stream.between_tokens_ms,
    }
    bounds = [f"{name} within {limit:g} ms" for name, limit in named.items() if limit < inf]
    return f"{percentile} {' and '.join(bounds) or 'without a limit'}, without errors."


def _draw(axes: Axes, steps: Sequence[StepResult], limits: Limits) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    if limits.stream is not None:
        _draw_streams(axes, steps, limits, limits.stream)
    else:
        _draw_latency(axes, steps, limits)
    is_stream = limits.stream is not None
    by_concurrency = steps[0].by_concurrency
    axes.set_xlabel("open streams" if by_concurrency else "requests per second, offered")
    axes.set_ylabel("time in ms" if is_stream else "latency in ms")
    _ticks(axes)
    columns = 4 if is_stream else 7
    axes.legend(
        loc="upper left",
        bbox_to_anchor=(0, -0.14),
        ncols=columns,
        columnspacing=1.2,
        handlelength=1.6,
    )


def _draw_streams(
    axes: Axes, steps: Sequence[StepResult], limits: Limits, stream: StreamLimits
) -> None:
    lines = (
        ("first_token", "first token", BLUE, stream.first_token_ms),
        ("between_tokens", "between tokens", ORANGE, stream.between_tokens_ms),
    )
    for name, label, color, limit in lines:
        _line(axes, steps, _stream_figure(f"{name}_ms"), color, f"{label} p{limits.percentile:g}")
        _line(axes, steps, _stream_figure(f"{name}_p50_ms"), color, f"{label} p50", style=":")
        _marks(axes, steps, _stream_figure(f"{name}_ms"), has_labels=name == "first_token")
        if limit < inf:
            axes.axhline(limit, color=color, ls="--", lw=1.5, label=f"limit {limit:g} ms")


def _stream_figure(name: str) -> Callable[[StepResult], float | None]:
    return lambda step: getattr(step.stream, name) or None


def _draw_latency(axes: Axes, steps: Sequence[StepResult], limits: Limits) -> None:
    if limits.percentile < 99:
        _line(axes, steps, lambda step: step.p99_ms, GREY, "p99")
    _line(axes, steps, lambda step: step.p50_ms, GREEN, "p50")
    _line(axes, steps, lambda step: step.latency_ms, BLUE, f"p{limits.percentile:g}")
    _marks(axes, steps, lambda step: step.latency_ms)
    axes.axhline(limits.latency_ms, color=RED, ls="--", lw=1.5, label="limit")


def _marks(
    axes: Axes,
    steps: Sequence[StepResult],
    of: Callable[[StepResult], float | None],
    *,
    has_labels: bool = True,
) -> None:
    """Mark the figure ``of`` each step by the verdict about the step."""
    for verdict, (marker, label) in _MARKS.items():
        points = _points([step for step in steps if step.verdict is verdict], of)
        if not points:
            continue
        color = BLUE if verdict is Verdict.HELD else RED
        # The legend leaves out labels that begin with an underscore.
        text = label if has_labels else f"_{label}"
        rates, values = zip(*points, strict=True)
        axes.scatter(rates, values, marker=marker, s=75, color=color, zorder=3, label=text)


def _line(
    axes: Axes,
    steps: Sequence[StepResult],
    of: Callable[[StepResult], float | None],
    color: str,
    label: str,
    *,
    style: str = "-",
) -> None:
    """Draw the figure ``of`` the steps over their rates, as a line."""
    points = _points(steps, of)
    if points:
        rates, values = zip(*points, strict=True)
        axes.plot(rates, values, color=color, lw=2, ls=style, marker=".", label=label)


def _points(
    steps: Sequence[StepResult], of: Callable[[StepResult], float | None]
) -> list[tuple[float, float]]:
    """Return the rates of the steps and a figure ``of`` each, without steps that have none."""
    points = []
    for step in steps:
        value = of(step)
        if value:
            points.append((step.rate, value))
    return points


def _ticks(axes: Axes) -> None:
    set_plain_ticks(axes.xaxis, *axes.get_xlim())
    set_plain_ticks(axes.yaxis, *axes.get_ylim())
