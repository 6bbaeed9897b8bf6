"""The form of schedules, and what crontab lines mean."""

from __future__ import annotations

import re

import pytest

from constructs_triton.cdk.validation.schedule_expressions import cron_fields, schedule_problem


@pytest.mark.parametrize(
    "expression",
    [
        "cron(0 20 * * ? *)",
        "cron(0/15 8-18 ? * MON-FRI *)",
        "cron(0 0 L * ? 2030)",
        "rate(1 day)",
        "rate(5 minutes)",
        "at(2030-01-31T20:00:00)",
    ],
)
def test_right_forms(expression: str) -> None:
    """Expressions of the documents of AWS have no problem."""
    assert schedule_problem(expression) == ""


@pytest.mark.parametrize(
    ("expression", "problem"),
    [
        ("cron(0 20 * * *)", "six fields .*, and has 5"),
        ("cron(0 20 * * * 20 * * ? *)", "six fields .*, and has 10"),
        ("cron(0 20 * * * *)", r'must have "\?" in either'),
        ("cron(0 20 ? * ? *)", r'must have "\?" in either'),
        ("0 20 * * ? *", "is none of cron"),
        ("rate(0 days)", "a number and a unit"),
        ("at(tomorrow)", "must be a time"),
    ],
)
def test_wrong_forms(expression: str, problem: str) -> None:
    """A wrong number of fields and other forms are named."""
    assert re.search(problem, schedule_problem(expression))


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("0 20 * * *", {"minute": "0", "hour": "20"}),
        ("30 6 * * 1-5", {"minute": "30", "hour": "6", "week_day": "MON-FRI"}),
        ("0 0 1 * *", {"minute": "0", "hour": "0", "day": "1"}),
        ("*/5 * * * 7", {"minute": "*/5", "week_day": "SUN"}),
        ("08:05", {"minute": "5", "hour": "8"}),
    ],
)
def test_crontab_lines_and_times(text: str, fields: dict[str, str]) -> None:
    """Each field goes into the keyword of its name, and days of the week keep their meaning."""
    assert cron_fields(text) == fields


@pytest.mark.parametrize("text", ["0 0 1 * 1", "@daily", "every day", "0 20 * * ? *", "25:00"])
def test_what_is_no_crontab_line(text: str) -> None:
    """A line with both days runs on either, which one expression cannot say."""
    assert cron_fields(text) is None
