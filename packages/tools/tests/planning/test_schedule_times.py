"""When a schedule runs."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.planning.schedule_times import find_minutes

MONDAY = datetime(2026, 1, 5, tzinfo=UTC)
DAY = 24 * 60


@pytest.mark.parametrize(
    ("expression", "minutes"),
    [
        ("cron(0 8 * * ? *)", [8 * 60, DAY + 8 * 60]),
        ("cron(0/20 7 ? * MON *)", [7 * 60, 7 * 60 + 20, 7 * 60 + 40]),
        ("cron(30 6-7 ? * TUE-FRI 2026)", [DAY + 390, DAY + 450]),
        ("cron(15 10 6 JAN ? *)", [DAY + 615]),
        ("cron(0 12,18 5 1 ? 2026)", [12 * 60, 18 * 60]),
        ("cron(0 0 ? * SUN *)", []),
        ("at(2026-01-06T00:05:00)", [DAY + 5]),
        ("rate(18 hours)", [0, 18 * 60, 36 * 60]),
        ("rate(1 day)", [0, DAY]),
    ],
)
def test_expression_within_two_days(expression: str, minutes: list[int]) -> None:
    """The minutes are counted from the start of the traffic."""
    assert find_minutes(expression, "UTC", MONDAY, 2 * DAY) == minutes


def test_time_zone_follows_daylight_saving_time() -> None:
    """Eight o'clock in Berlin is at seven UTC in winter and at six in summer."""
    for month, hour in ((1, 7), (7, 6)):
        start = datetime(2026, month, 6, tzinfo=UTC)
        assert find_minutes("cron(0 8 * * ? *)", "Europe/Berlin", start, DAY) == [hour * 60]


@pytest.mark.parametrize(
    "expression",
    [
        "cron(0 8 * * ?)",
        "cron(0 8 L * ? *)",
        "cron(0 25 * * ? *)",
        "cron(0 8 ? * MOO *)",
        "rate(0 days)",
        "rate(1 year)",
        "at(noon)",
        "every day",
    ],
)
def test_unsupported_expression_is_refused(expression: str) -> None:
    """The message shows the expression and supported ones."""
    with pytest.raises(InvalidValueError, match=r"schedule: this expression is not supported, got"):
        find_minutes(expression, "UTC", MONDAY, DAY)


def test_unknown_time_zone_is_refused() -> None:
    """Only IANA time zones are known."""
    with pytest.raises(InvalidValueError, match=r'time zone: must be an IANA time zone, got "Berlin"'):
        find_minutes("rate(1 day)", "Berlin", MONDAY, DAY)
