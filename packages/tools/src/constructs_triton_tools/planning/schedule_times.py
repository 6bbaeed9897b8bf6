"""Times of Application Auto Scaling's schedules: ``at(...)``, ``cron(...)`` and ``rate(...)``.

Source: the Application Auto Scaling user guide, "Schedule recurring scaling actions using cron
expressions".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from constructs_triton_core.errors import InvalidValueError

_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
# Minute, hour, day of the month, month, day of the week (Sunday is 1), year.
_RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (1, 7), (1970, 2199))
_UNITS = {"minute": 1, "hour": 60, "day": 24 * 60}
_EXPRESSION = re.compile(r"(at|cron|rate)\((.*)\)")
_PART = re.compile(r"(\*|\w+)(?:-(\w+))?(?:/(\d+))?")


def find_minutes(expression: str, time_zone: str, start: datetime, length: int) -> list[int]:
    """Return the minutes, counted from ``start``, at which a schedule runs.

    ``rate`` counts from ``start``, because a template does not say when it is deployed.

    Raises:
        InvalidValueError: the expression or the time zone is not supported.
    """
    match = _EXPRESSION.fullmatch(expression.strip())
    if match is None:
        raise _unsupported(expression)
    zone = _zone(time_zone)
    kind, text = match.groups()
    if kind == "rate":
        return list(range(0, length, _period(expression, text)))
    runs_at = _at(expression, text) if kind == "at" else _cron(expression, text)
    times = (
        (minute, (start + timedelta(minutes=minute)).astimezone(zone)) for minute in range(length)
    )
    return [minute for minute, time in times if runs_at(time)]


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise InvalidValueError(
            f'time zone: must be an IANA time zone, got "{name}"; write it as Europe/Berlin'
        ) from None


def _period(expression: str, text: str) -> int:
    value, _, unit = text.strip().partition(" ")
    minutes = _UNITS.get(unit.strip().removesuffix("s"))
    if not value.isdecimal() or int(value) < 1 or minutes is None:
        raise _unsupported(expression)
    return int(value) * minutes


def _at(expression: str, text: str) -> Callable[[datetime], bool]:
    try:
        moment = datetime.fromisoformat(text.strip()).replace(second=0, tzinfo=None)
    except ValueError:
        raise _unsupported(expression) from None
    return lambda time: time.replace(second=0, microsecond=0, tzinfo=None) == moment


def _cron(expression: str, text: str) -> Callable[[datetime], bool]:
    fields = text.split()
    if len(fields) != len(_RANGES):
        raise _unsupported(expression)
    minutes, hours, days, months, weekdays, years = (
        _values(expression, field, *bounds) for field, bounds in zip(fields, _RANGES, strict=True)
    )
    return lambda time: (
        time.minute in minutes
        and time.hour in hours
        and time.day in days
        and time.month in months
        and time.isoweekday() % 7 + 1 in weekdays
        and time.year in years
    )


def _values(expression: str, field: str, low: int, high: int) -> set[int]:
    """The values of one field, such as ``0/15``, ``MON-FRI`` or ``1,5``."""
    values: set[int] = set()
    for part in field.split(","):
        match = _PART.fullmatch("*" if part == "?" else part)
        if match is None:
            raise _unsupported(expression)
        first, last, step = match.groups()
        if first == "*":
            begin = low
            end = high
        else:
            begin = _number(expression, first, low, high)
            end = begin
            if last:
                end = _number(expression, last, low, high)
            elif step:
                # "0/15" goes on to the highest value.
                end = high
        values.update(range(begin, end + 1, int(step or 1) or 1))
    return values


def _number(expression: str, word: str, low: int, high: int) -> int:
    names = {12: _MONTHS, 7: _DAYS}.get(high, ())
    if word.upper() in names:
        return names.index(word.upper()) + 1
    if not word.isdecimal() or not low <= int(word) <= high:
        raise _unsupported(expression)
    return int(word)


def _unsupported(expression: str) -> InvalidValueError:
    return InvalidValueError(
        f'schedule: this expression is not supported, got "{expression}"; write '
        '"at(2026-01-05T08:00:00)", "rate(1 day)", or "cron(0 8 ? * MON-FRI *)" without L, W and #'
    )
