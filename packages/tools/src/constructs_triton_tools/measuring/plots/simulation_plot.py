"""Instances over time in a simulation."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING

from constructs_triton_tools.measuring.plots.figure import BLUE, GREY, RED, draw
from constructs_triton_tools.planning.simulation_result import Simulation

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TWO_DAYS = 2 * 24 * 60
#: Minutes from one label of time to the next.
_LABEL_MINUTES = (5, 10, 15, 30, 60, 120, 180, 360, 720, 1440)


def plot_simulation(simulation: Simulation, path: str | PathLike[str]) -> None:
    """Draw the instances in service, the instances that the load needs, and the minutes above
    capacity.

    Args:
        simulation: Result of ``simulate``.
        path: File to write; its ending decides the format, such as ``.svg`` or ``.png``.

    Raises:
        InvalidValueError: the file cannot be written, or has another ending than a supported
            format.
        MissingDependencyError: matplotlib is not installed.
    """
    with draw(path, _title(simulation), _subtitle(simulation)) as axes:
        _draw(axes, simulation)
        _label_times(axes, simulation)
        axes.set_xlabel(
            "time; costs are in the currency of the price" if simulation.cost else "time"
        )
        axes.set_ylabel("instances")
        axes.set_ylim(bottom=0)
        axes.margins(x=0)
        axes.locator_params(axis="y", integer=True)
        axes.legend(loc="upper left", bbox_to_anchor=(0, -0.14), ncols=4)


def _title(simulation: Simulation) -> str:
    if not simulation.overloaded_minutes:
        dearer = f", but a fixed fleet of {simulation.fixed_instances} costs less"
        return (
            "No minute is above "
            f"capacity{dearer if simulation.cost > simulation.fixed_cost else ''}"
        )
    share = simulation.failed / simulation.arrived
    return (
        f"{simulation.overloaded_minutes} minutes above capacity, {simulation.failed:,} failed "
        f"requests ({share:.1%})"
    )


def _subtitle(simulation: Simulation) -> str:
    hours = (
        f"{simulation.instance_hours} instance hours, at most {simulation.peak_instances} instances"
    )
    if not simulation.cost:
        return hours
    return (
        f"{hours}. Cost {simulation.cost:,}; "
        f"fixed fleet of {simulation.fixed_instances}: "
        f"{simulation.fixed_cost:,}; perfect fleet: {simulation.perfect_cost:,}"
    )


def _draw(axes: Axes, simulation: Simulation) -> None:
    minutes = simulation.minutes
    x = range(len(minutes) + 1)
    needed = [minute.arrived / float(simulation.fleet.invocations_per_minute) for minute in minutes]
    in_service = [minute.in_service for minute in minutes]
    desired = [minute.desired for minute in minutes]
    for number, period in enumerate(simulation.overload_periods()):
        label = "above capacity" if number == 0 else None
        axes.axvspan(
            period.start, period.start + period.length, color=RED, alpha=0.25, lw=0, label=label
        )
    axes.fill_between(
        x,
        [*needed, needed[-1]],
        step="post",
        color=GREY,
        alpha=0.35,
        lw=0,
        label="needed for the load",
    )
    axes.stairs(desired, x, color=BLUE, ls=":", lw=1.5, baseline=None, label="desired")
    axes.stairs(in_service, x, color=BLUE, lw=2.5, baseline=None, label="in service")


def _label_times(axes: Axes, simulation: Simulation) -> None:
    total = len(simulation.minutes)
    # At most 13 labels fit beside each other.
    fitting = (step for step in _LABEL_MINUTES if total / step <= 13)
    step = next(fitting, 7 * 1440)
    if total <= _TWO_DAYS:
        pattern = "%H:%M"
    elif step < 1440:
        pattern = "%d %b %H:%M"
    else:
        pattern = "%d %b"
    ticks = range(0, total + 1, step)
    axes.set_xticks(ticks, [f"{simulation.traffic.time_of(tick):{pattern}}" for tick in ticks])
