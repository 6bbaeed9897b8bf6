"""The picture of a search: best against present, latency against rate,
and the map of what was tried.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING

from constructs_triton_tools.measuring.plots.figure import (
    BLUE,
    GREY,
    ORANGE,
    RED,
    draw_panels,
    set_plain_ticks,
    shortened,
)
from constructs_triton_tools.measuring.tuning.candidates import Candidate
from constructs_triton_tools.measuring.tuning.comparison import Comparison
from constructs_triton_tools.measuring.tuning.outcome import TuneResult
from constructs_triton_tools.measuring.tuning.racing import Outcome, Trial

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PANELS = (
    "Rate held: rounds, mean and 95%",
    "Latency against rate, every step",
    "What was tried: requests per second",
)
_DARKEST = 0.75


def plot_tuning(result: TuneResult, path: str | PathLike[str]) -> None:
    """Draw a search as three panels.

    The ending of ``path`` decides the format, such as ``.svg`` or ``.png``.
    """
    with draw_panels(path, str(result), _PANELS) as (comparison, latency, grid):
        _draw_comparison(comparison, result)
        _draw_latency(latency, result)
        _draw_map(grid, result)


def _finalists(result: TuneResult) -> list[Candidate]:
    """The candidates that were compared, the present configuration first."""
    compared = result.rounds[0] if result.rounds else dict.fromkeys([result.present, result.best])
    return sorted(compared, key=lambda candidate: candidate != result.present)


def _label(candidate: Candidate, result: TuneResult) -> str:
    if candidate == result.present:
        return "your configuration"
    return (
        shortened(candidate.describe(result.present), 48).replace(", ", ",\n").replace("; ", ";\n")
    )


def _color(candidate: Candidate, result: TuneResult) -> str:
    if candidate == result.present:
        return ORANGE
    return BLUE if candidate in _finalists(result) else "#C4C4C4"


def _draw_comparison(axes: Axes, result: TuneResult) -> None:
    candidates = _finalists(result)
    for place, candidate in enumerate(candidates):
        rate = result.rate(candidate)
        axes.bar(place, rate, width=0.55, color=_color(candidate, result), alpha=0.85)
        found = [rates[candidate] for rates in result.rounds]
        axes.scatter([place] * len(found), found, s=22, color="#333333", zorder=3)
        comparison = result.comparisons.get(candidate)
        if comparison is not None:
            _draw_interval(axes, place, result.rate(result.present), comparison)
    axes.set_xticks(
        range(len(candidates)), [_label(each, result) for each in candidates], fontsize=9
    )
    axes.set_ylabel("requests per second")
    axes.set_ylim(bottom=0)


def _draw_interval(axes: Axes, place: int, present: float, comparison: Comparison) -> None:
    """The interval of the ratio, as rates beside the present one."""
    middle = present * comparison.ratio
    errors = [[middle - present * comparison.low], [present * comparison.high - middle]]
    axes.errorbar(place + 0.12, middle, errors, color="#000000", capsize=6, lw=1.5)


def _draw_latency(axes: Axes, result: TuneResult) -> None:
    """Draw the latency of each step over its rate, in the color of its candidate."""
    points: dict[Candidate, list[tuple[float, float]]] = {}
    for step in result.steps:
        if step.result.latency_ms > 0:
            of_candidate = points.setdefault(step.candidate, [])
            of_candidate.append((step.result.rate, step.result.latency_ms))

    # The finalists come last, so that the others do not cover them.
    finalists = _finalists(result)
    for candidate in sorted(points, key=lambda candidate: candidate in finalists):
        label = _label(candidate, result) if candidate in finalists else "_other"
        rates, latencies = zip(*sorted(points[candidate]), strict=True)
        color = _color(candidate, result)
        axes.scatter(rates, latencies, s=24, color=color, label=label.replace("\n", " "))
    limit = result.limits.latency_ms
    axes.axhline(limit, color=RED, ls="--", lw=1.5, label=f"limit {limit:g} ms")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("requests per second, offered")
    axes.set_ylabel(f"p{result.limits.percentile:g} in ms")
    set_plain_ticks(axes.xaxis, *axes.get_xlim())
    set_plain_ticks(axes.yaxis, *axes.get_ylim())
    axes.legend(fontsize=8, loc="upper left")


# --- the map --------------------------------------------------------------------------------------


def _searched_model(result: TuneResult) -> str:
    """The model whose batches and instances were tried most often."""
    names = [name for name, _ in result.present.models]
    tried = [trial.model for trial in result.trials.values()]
    return max(names, key=tried.count)


def _draw_map(axes: Axes, result: TuneResult) -> None:
    """A cell for each pair of batch and instances that was tried;
    what was not tried stays empty.
    """
    model = _searched_model(result)
    cells: dict[tuple[int, int], list[Trial]] = {}
    for trial in result.trials.values():
        settings = trial.candidate[model]
        if trial.model in ("", model):
            cells.setdefault((settings.batch, settings.instances), []).append(trial)
    if not cells:
        axes.set_axis_off()
        return
    batches = sorted({batch for batch, _ in cells})
    counts = sorted({count for _, count in cells})
    highest = max((trial.rate for trial in result.trials.values()), default=1.0) or 1.0
    for (batch, count), trials in cells.items():
        _draw_cell(axes, batches.index(batch), counts.index(count), trials, highest)
    axes.set_xlim(-0.5, len(batches) - 0.5)
    axes.set_ylim(-0.5, len(counts) - 0.5)
    axes.set_xticks(range(len(batches)), list(map(str, batches)))
    axes.set_yticks(range(len(counts)), list(map(str, counts)))
    axes.grid(visible=False)
    axes.set_xlabel(f"largest batch of {model} (1: no dynamic batching)")
    axes.set_ylabel("instances")


def _draw_cell(axes: Axes, x: int, y: int, trials: Sequence[Trial], highest: float) -> None:
    from matplotlib.patches import Rectangle

    measured = [trial for trial in trials if trial.outcome in (Outcome.PRESENT, Outcome.BEST)]
    best = max(measured, key=lambda trial: trial.rate, default=None)
    text, color, hatch = _cell(trials[0], best)
    shade = _DARKEST * best.rate / highest if best else 1.0
    axes.add_patch(
        Rectangle(
            (x - 0.47, y - 0.47), 0.94, 0.94, fc=color, alpha=shade, ec=GREY, hatch=hatch, lw=1
        )
    )
    axes.text(x, y, text, ha="center", va="center", fontsize=10)


def _cell(first: Trial, best: Trial | None) -> tuple[str, str, str | None]:
    """The text, the color and the hatching of a cell."""
    if best is not None:
        return f"{best.rate:.0f}", BLUE, None
    if first.outcome is Outcome.BELOW:
        return f"< {first.rate:.0f}", "#F4F4F4", "///"
    return ("other\noutputs" if first.outcome is Outcome.WRONG else "refused"), "#F4F4F4", "xx"
