"""Charts of block characters for terminals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from constructs_triton.planning.simulation_result import Simulation

if TYPE_CHECKING:
    from rich.text import Text


__all__ = ["draw_simulation"]

_ROWS = 12
_USED, _IDLE, _MISSING, _EMPTY = "█", "░", "x", " "
_STYLES = {_USED: "blue", _IDLE: "blue", _MISSING: "bold red"}
LEGEND = f"{_USED} in use   {_IDLE} in service, not needed   {_MISSING} above capacity"


def draw_simulation(simulation: Simulation, width: int) -> Iterator[Text]:
    """Yield the lines of a chart of instances over time, at most ``width`` characters wide."""
    columns = list(_columns(simulation, width - 8))
    top = max(max(in_service, needed) for in_service, needed in columns)
    step = -(-top // _ROWS)
    for level in range(-(-top // step) * step, 0, -step):
        yield _row(level, step, columns)
    yield _axis(simulation, len(columns))


def _columns(simulation: Simulation, width: int) -> Iterator[tuple[int, int]]:
    """Instances in service and instances needed; a column shows the worst of its minutes."""
    minutes = simulation.minutes
    capacity = float(simulation.fleet.invocations_per_minute)
    pairs = [(minute.in_service, -(-minute.arrived // capacity)) for minute in minutes]
    count = max(1, min(width, len(minutes)))
    for column in range(count):
        first, last = column * len(minutes) // count, (column + 1) * len(minutes) // count
        worst = max(pairs[first:last], key=lambda pair: (pair[1] - pair[0], pair[1]))
        yield worst[0], int(worst[1])


def _row(level: int, step: int, columns: Sequence[tuple[int, int]]) -> Text:
    from rich.text import Text

    line = Text(f"{level:6} ┤")
    for in_service, needed in columns:
        # A row shows the instances from level - step + 1 to level.
        lowest = level - step
        mark = (
            _USED
            if min(in_service, needed) > lowest
            else _IDLE
            if in_service > lowest
            else _MISSING
            if needed > lowest
            else _EMPTY
        )
        line.append(mark, style=_STYLES.get(mark, ""))
    return line


def _axis(simulation: Simulation, width: int) -> Text:
    from rich.text import Text

    labels = [" "] * (width + 8)
    for part in range(5):
        column = part * (width - 1) // 4
        time = simulation.traffic.time_of(column * len(simulation.minutes) // width)
        text = f"{time:%H:%M}"
        start = min(8 + column, len(labels) - len(text))
        labels[start : start + len(text)] = text
    return Text("".join(labels).rstrip())
