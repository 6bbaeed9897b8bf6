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


NOT_SUPPORTED = r"schedule: this expression is not supported, got"


@pytest.mark.parametrize(
    ("expression", "time_zone", "message"),
    [
        *(
            (f"cron(0 8 {each})", "UTC", NOT_SUPPORTED)
            for each in ("* * ?", "L * ? *", "? * MOO *")
        ),
        *(
            (each, "UTC", NOT_SUPPORTED)
            for each in ("cron(0 25 * * ? *)", "rate(0 days)", "rate(1 year)")
        ),
        *((each, "UTC", NOT_SUPPORTED) for each in ("at(noon)", "every day")),
        ("rate(1 day)", "Berlin", r'time zone: must be an IANA time zone, got "Berlin"'),
    ],
)
def test_unsupported_schedule_is_refused(expression: str, time_zone: str, message: str) -> None:
    """The message shows the expression and supported ones, or the time zone."""
    with pytest.raises(InvalidValueError, match=message):
        find_minutes(expression, time_zone, MONDAY, DAY)
