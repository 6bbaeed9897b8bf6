"""Latency against load in a load test."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from typing import TYPE_CHECKING

from constructs_triton.errors import InvalidValueError
from constructs_triton.measuring.load_test.search import HeldSteps
from constructs_triton.measuring.load_test.step import Limits, StepResult, Verdict
from constructs_triton.measuring.plots.figure import BLUE, GREEN, GREY, RED, draw, set_plain_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_load_test"]

_MARKS = {Verdict.HELD: ("o", "held"), Verdict.NOT_HELD: ("X", "not held"), Verdict.VOID: ("$?$", "void")}


def plot_load_test(
    steps: Sequence[StepResult], path: str | PathLike[str], limits: Limits, *, title: str = "The endpoint"
) -> None:
    """Draw the percentiles of the latency against the requests per second, with the limit.

    Of several steps at one rate the last one is drawn.

    Args:
        steps: Results of a load test.
        path: File to write; its ending decides the format, such as ``.svg`` or ``.png``.
        limits: Latency limit to draw.
        title: What was tested.

    Raises:
        InvalidValueError: there are no answered steps, or the file cannot be written.
        MissingDependencyError: matplotlib is not installed.
    """
    answered = {step.rate: step for step in steps if step.good}
    ordered = [answered[rate] for rate in sorted(answered)]
    if not ordered:
        raise InvalidValueError("steps: no request was answered, so there is nothing to draw; see the errors")
    held = [step for step in ordered if step.verdict is Verdict.HELD]
    highest = max((step.good_per_second for step in held), default=0.0)
    at_least = "at least " if HeldSteps.of(steps).lower_bound_reason else ""
    headline = f"holds {at_least}{highest:,.0f} requests per second" if held else "holds none of the rates"
    subtitle = (
        f"p{limits.percentile:g} within {limits.latency_ms:g} ms, without errors. "
        "Latency counts from when a request was due."
    )
    with draw(path, f"{title} {headline}", subtitle) as axes:
        _draw(axes, ordered, limits)


def _draw(axes: Axes, steps: Sequence[StepResult], limits: Limits) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    if limits.percentile < 99:
        _line(axes, steps, lambda step: step.p99_ms, GREY, "p99")
    _line(axes, steps, lambda step: step.p50_ms, GREEN, "p50")
    _line(axes, steps, lambda step: step.latency_ms, BLUE, f"p{limits.percentile:g}")
    for verdict, (marker, label) in _MARKS.items():
        chosen = [step for step in steps if step.verdict is verdict]
        color = BLUE if verdict is Verdict.HELD else RED
        if chosen:
            axes.scatter(
                [step.rate for step in chosen],
                [step.latency_ms for step in chosen],
                marker=marker,
                s=75,
                color=color,
                zorder=3,
                label=label,
            )
    axes.axhline(limits.latency_ms, color=RED, ls="--", lw=1.5, label="limit")
    axes.set_xlabel("requests per second, offered")
    axes.set_ylabel("latency in ms")
    _ticks(axes)
    axes.legend(loc="upper left", bbox_to_anchor=(0, -0.14), ncols=7, columnspacing=1.2, handlelength=1.6)


def _line(
    axes: Axes, steps: Sequence[StepResult], of: Callable[[StepResult], float | None], color: str, label: str
) -> None:
    points = [(step.rate, value) for step in steps if (value := of(step))]
    if points:
        x, y = zip(*points, strict=True)
        axes.plot(x, y, color=color, lw=2, marker=".", label=label)


def _ticks(axes: Axes) -> None:
    set_plain_ticks(axes.xaxis, *axes.get_xlim())
    set_plain_ticks(axes.yaxis, *axes.get_ylim())
