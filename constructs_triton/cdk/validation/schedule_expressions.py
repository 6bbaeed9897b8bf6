"""Expressions of schedules: ``cron(...)``, ``rate(...)`` and ``at(...)``.

Sources: Application Auto Scaling user guide, "Schedule recurring scaling actions" (six fields);
EventBridge Scheduler user guide, "Schedule types" (a ``?`` in the day of the month or of the week).
"""

from __future__ import annotations

import re

__all__ = ["cron_fields", "schedule_problem"]

_FORM = re.compile(r"(cron|rate|at)\((.*)\)", re.DOTALL)
_RATE = re.compile(r"[1-9]\d* (minutes?|hours?|days?)")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d)?")
_FIELDS = ("minute", "hour", "day", "month", "week_day", "year")
_UNIX_FIELDS = 5
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_NUMBERED_DAY = re.compile(r"(?<![\w/#])[0-7](?!\w)")


def schedule_problem(expression: str) -> str:
    """Return why AWS refuses an expression; empty if it has the right form.

    Only the form is checked: the fields may have values that no clock reaches.
    """
    found = _FORM.fullmatch(expression.strip())
    if found is None:
        return "is none of cron(...), rate(...) and at(...)"
    kind, inner = found.groups()
    if kind == "rate":
        is_right = _RATE.fullmatch(inner)
        return "" if is_right else 'must be a number and a unit, such as "rate(1 day)"'
    if kind == "at":
        return "" if _TIME.fullmatch(inner) else 'must be a time, such as "at(2030-01-31T20:00:00)"'
    return _cron_problem(inner.split())


def _cron_problem(fields: list[str]) -> str:
    """Return what is wrong with the fields of a cron expression; ``""`` if nothing is."""
    if len(fields) != len(_FIELDS):
        return (
            "must have the six fields minutes, hours, day of the month, month, day of the week "
            f"and year, and has {len(fields)}"
        )

    _, _, day_of_month, _, day_of_week, _ = fields
    if (day_of_month == "?") is (day_of_week == "?"):
        return 'must have "?" in either the day of the month or the day of the week'
    return ""


def cron_fields(text: str) -> dict[str, str] | None:
    """Return the fields of the CDK's ``Schedule.cron`` that a time or a crontab line means.

    Returns ``None`` for other strings, and for a line with both a day of the month and a day of the
    week: crontab runs on either, and an expression of AWS can have only one of them.
    """
    clock = re.fullmatch(r"([01]?\d|2[0-3]):([0-5]\d)", text.strip())
    if clock is not None:
        hour, minute = map(int, clock.groups())
        return {"minute": str(minute), "hour": str(hour)}
    fields = text.split()
    if len(fields) != _UNIX_FIELDS or not all(re.fullmatch(r"[\w*,/?-]+", each) for each in fields):
        return None
    named = dict(zip(_FIELDS[:_UNIX_FIELDS], fields, strict=True))
    named["week_day"] = _NUMBERED_DAY.sub(_day_name, named["week_day"])
    found = {name: each for name, each in named.items() if each not in ("*", "?")}
    if "day" in found and "week_day" in found:
        return None
    # The CDK's default of the minute is each minute.
    return {"minute": "*", **found}


def _day_name(number: re.Match[str]) -> str:
    """The name of a day: crontab counts from 0 for Sunday, AWS from 1."""
    return _DAYS[int(number.group()) % len(_DAYS)]
