"""Traffic to simulate: the invocations of an endpoint in each minute."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from os import PathLike
from pathlib import Path
from typing import Any

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.spelling import did_you_mean
from constructs_triton_core.untrusted.regular_files import read_json
from constructs_triton_tools.planning.csv_table import Column, raise_for, read_rows
from constructs_triton_tools.planning.quantities import read_decimal

#: A Monday, so that schedules of working days can be tried with the patterns.
_START = datetime(2026, 1, 5, tzinfo=UTC)
_MAXIMUM_MINUTES = 366 * 24 * 60
_MOST_LINES = 600_000
_EARLIEST_HOUR = 4  # the quietest hour of the diurnal pattern


@dataclass(frozen=True, slots=True)
class Traffic:
    """The number of invocations in each minute.

    ``invocations``
        One number for each minute, 0 or more.
    ``start``
        The time of the first minute, which schedules need. Default: Monday, 5 January 2026, 00:00
        UTC.

    Raises:
        InvalidValueError: there are no minutes, more than a year, or a number is not a whole number
            of at least 0.
    """

    invocations: tuple[int, ...]
    start: datetime = _START

    def __post_init__(self) -> None:
        object.__setattr__(self, "invocations", tuple(self.invocations))
        if not 0 < len(self.invocations) <= _MAXIMUM_MINUTES:
            raise InvalidValueError(
                f"invocations: must have from 1 to {_MAXIMUM_MINUTES} minutes, got "
                f"{len(self.invocations)}; give at least one minute and at most a year"
            )
        for minute, count in enumerate(self.invocations):
            if not isinstance(count, int) or count < 0:
                raise InvalidValueError(
                    f"invocations[{minute}]: must be a whole number of at least 0, "
                    f"got {count}; round it"
                )

    @classmethod
    def pattern(
        cls, name: str, *, low: float, high: float, high_minutes: int | None = None
    ) -> Traffic:
        """Return a made-up pattern between two rates.

        Args:
            name: ``"step"``: 4 hours, of which 1 hour low, then ``high_minutes`` high, then low.
                ``"spike"``: the same in 3 hours. ``"diurnal"``: 24 hours in the form of a cosine,
                with its lowest point at 04:00.
            low: Lowest number of invocations per minute.
            high: Highest number of invocations per minute.
            high_minutes: Minutes at the highest rate. Default: 120 for a step, 8 for a spike.

        Raises:
            InvalidValueError: the name is unknown, or a number is out of range.
        """
        if name not in PATTERNS:
            hint = did_you_mean(name, PATTERNS) or f"use one of {', '.join(PATTERNS)}"
            raise InvalidValueError(f'pattern: must be a known pattern, got "{name}"; {hint}')
        if not 0 <= low <= high:
            raise InvalidValueError(f"low: must be from 0 to high ({high}), got {low}; swap them")
        return cls(tuple(map(round, PATTERNS[name](low, high, high_minutes))))

    def time_of(self, minute: int) -> datetime:
        """Return the time of a minute, in the time zone of ``start``.

        Args:
            minute: Minute of the traffic, counted from 0.
        """
        return self.start + timedelta(minutes=minute)


def _jump(total: int, low: float, high: float, high_minutes: int) -> list[float]:
    if not 0 < high_minutes <= total - 60:
        raise InvalidValueError(
            f"high_minutes: must be from 1 to {total - 60}, got {high_minutes}; "
            "use a traffic file for another form"
        )
    return [low] * 60 + [high] * high_minutes + [low] * (total - 60 - high_minutes)


def _step(low: float, high: float, high_minutes: int | None) -> list[float]:
    return _jump(240, low, high, 120 if high_minutes is None else high_minutes)


def _spike(low: float, high: float, high_minutes: int | None) -> list[float]:
    return _jump(180, low, high, 8 if high_minutes is None else high_minutes)


def _diurnal(low: float, high: float, _high_minutes: int | None) -> list[float]:
    angles = (2 * math.pi * (minute / 60 - _EARLIEST_HOUR) / 24 for minute in range(24 * 60))
    return [low + (high - low) * (1 - math.cos(angle)) / 2 for angle in angles]


PATTERNS: Mapping[str, Callable[[float, float, int | None], list[float]]] = {
    "step": _step,
    "diurnal": _diurnal,
    "spike": _spike,
}


_LAST_SECOND = datetime(9999, 1, 1, tzinfo=UTC).timestamp()


def read_traffic(path: str | PathLike[str]) -> Traffic:
    """Read traffic from a CSV file, or from the output of ``aws cloudwatch get-metric-data``.

    A CSV file has a column ``invocations`` and a column ``minute`` (0, 1, ...) or ``timestamp``
    (ISO 8601; UTC if it has no offset). A ``.json`` file has one metric: ``Invocations`` of
    ``AWS/SageMaker`` with the statistic Sum and a period of 60 seconds. Minutes without a value
    have no invocations.

    Args:
        path: Path of the ``.csv`` or ``.json`` file.

    Raises:
        InvalidValueError: the file cannot be read, or a value is not valid.
    """
    if Path(path).suffix == ".json":
        return _place(path, _read_metric_data(Path(path)))
    return _read_csv(path)


# --- CSV ------------------------------------------------------------------------------------------


def _parse_count(place: str, text: str) -> int:
    number = read_decimal(place, text)
    if not 0 <= number <= Decimal(10**12):
        raise InvalidValueError(
            f"{place}: must be from 0 to 1000000000000, got {text}; "
            "write requests per minute, such as 1200"
        )
    return round(number)


def _parse_minute(place: str, text: str) -> int:
    if (
        not text.isascii()
        or not text.isdigit()
        or int(text[:9]) >= _MAXIMUM_MINUTES
        or len(text) > 9
    ):
        raise InvalidValueError(
            f'{place}: must be a whole number from 0 to {_MAXIMUM_MINUTES - 1}, got "{text[:40]}"; '
            "count minutes from 0, or name the column timestamp"
        )
    return int(text)


def _parse_time(place: str, text: str) -> datetime:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidValueError(
            f'{place}: must be a time in ISO 8601, got "{text[:40]}"; '
            "write it as 2026-01-05T08:30:00Z"
        ) from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


_COLUMNS = (
    Column(("invocations",), _parse_count),
    Column(("minute",), _parse_minute, optional=True),
    Column(("timestamp", "time"), _parse_time, optional=True),
)


def _read_csv(path: str | PathLike[str]) -> Traffic:
    rows = read_rows(path, _COLUMNS, most_lines=_MOST_LINES)
    column = "minute" if "minute" in rows[0].cells else "timestamp"
    raise_for(
        [
            f"{row.place}: has no minute or timestamp; fill it in"
            for row in rows
            if column not in row.cells
        ]
    )
    if column == "timestamp":
        return _place(path, [(row.cells["timestamp"], row.cells["invocations"]) for row in rows])
    return Traffic(_fill([(row.cells["minute"], row.cells["invocations"]) for row in rows]))


# --- CloudWatch -----------------------------------------------------------------------------------


def _read_metric_data(path: Path) -> list[tuple[datetime, int]]:
    try:
        (result,) = read_json(path)["MetricDataResults"]
        points = list(zip(result["Timestamps"], result["Values"], strict=True))
    except OSError as error:
        raise InvalidValueError(
            f"{path}: cannot be read ({error.strerror}); give a readable file"
        ) from None
    except (ValueError, KeyError, TypeError) as error:
        raise InvalidValueError(
            f"{path}: must be the output of `aws cloudwatch get-metric-data` with one metric, got "
            f"{type(error).__name__} ({error}); query Invocations, Sum, with a Period of 60"
        ) from None
    return [
        (_cloudwatch_time(path, time), _cloudwatch_count(path, value)) for time, value in points
    ]


def _cloudwatch_time(path: Path, value: Any) -> datetime:
    if isinstance(value, int | float) and 0 <= value < _LAST_SECOND:  # version 1 of the AWS CLI
        return datetime.fromtimestamp(value, UTC)
    return _parse_time(f"{path}: Timestamps", str(value))


def _cloudwatch_count(path: Path, value: Any) -> int:
    return _parse_count(f"{path}: Values", f"{value:f}" if isinstance(value, float) else str(value))


# --- both -----------------------------------------------------------------------------------------


def _place(path: str | PathLike[str], points: list[tuple[datetime, int]]) -> Traffic:
    """Put counts at their minutes."""
    if not points:
        raise InvalidValueError(f"{path}: has no data points; query a time with traffic")
    start = min(time for time, _ in points)
    offsets = [(round((time - start).total_seconds()), count) for time, count in points]
    _check_period(path, sorted(seconds for seconds, _ in offsets))
    return Traffic(_fill([(seconds // 60, count) for seconds, count in offsets]), start)


def _check_period(path: str | PathLike[str], seconds: list[int]) -> None:
    """Refuse points of five minutes or an hour, which would become one minute
    with all their invocations.
    """
    common = math.gcd(*seconds)
    if len(seconds) > 2 and common >= 300:
        raise InvalidValueError(
            f"{path}: must have one data point for each minute, got one each {common} seconds; "
            "query CloudWatch with a Period of 60"
        )


def _fill(points: list[tuple[int, int]]) -> tuple[int, ...]:
    length = max(minute for minute, _ in points) + 1
    if length > _MAXIMUM_MINUTES:
        raise InvalidValueError(
            f"traffic: must be at most a year long, got {length} minutes; shorten it"
        )
    counts = [0] * length
    for minute, count in points:
        counts[minute] += count
    return tuple(counts)
