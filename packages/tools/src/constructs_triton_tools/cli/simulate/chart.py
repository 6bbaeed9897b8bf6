"""Charts of block characters for terminals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from constructs_triton_core.untrusted.terminal import Line
from constructs_triton_tools.planning.simulation_result import Simulation

_ROWS = 12
_USED = "█"
_IDLE = "░"
_MISSING = "x"
_EMPTY = " "
_STYLES = {_USED: "34", _IDLE: "34", _MISSING: "1;31"}
LEGEND = f"{_USED} in use   {_IDLE} in service, not needed   {_MISSING} above capacity"


def draw_simulation(simulation: Simulation, width: int) -> Iterator[Line]:
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
        first = column * len(minutes) // count
        last = (column + 1) * len(minutes) // count
        worst = max(pairs[first:last], key=lambda pair: (pair[1] - pair[0], pair[1]))
        yield worst[0], int(worst[1])


def _row(level: int, step: int, columns: Sequence[tuple[int, int]]) -> Line:
    """Return the row that shows the instances from ``level - step + 1`` to ``level``."""
    marks = (_mark(level - step, in_service, needed) for in_service, needed in columns)
    return [
        f"{level:6} ┤",
        *(("".join(run), _STYLES.get(mark, "")) for mark, run in groupby(marks)),
    ]


def _mark(lowest: int, in_service: int, needed: int) -> str:
    if min(in_service, needed) > lowest:
        return _USED
    if in_service > lowest:
        return _IDLE
    return _MISSING if needed > lowest else _EMPTY


def _axis(simulation: Simulation, width: int) -> str:
    labels = [" "] * (width + 8)
    for part in range(5):
        column = part * (width - 1) // 4
        time = simulation.traffic.time_of(column * len(simulation.minutes) // width)
        text = f"{time:%H:%M}"
        start = min(8 + column, len(labels) - len(text))
        labels[start : start + len(text)] = text
    return "".join(labels).rstrip()
