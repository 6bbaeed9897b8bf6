"""Traffic from files, from CloudWatch and from patterns."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.planning import Traffic, read_traffic

pattern = Traffic.pattern


def csv(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "traffic.csv"
    path.write_text(text)
    return path


def metric_data(tmp_path: Path, *results: Any) -> Path:
    path = tmp_path / "traffic.json"
    path.write_text(json.dumps({"MetricDataResults": results, "Messages": []}))
    return path


def test_minutes_without_a_row_have_no_invocations(tmp_path: Path) -> None:
    """Rows may be in any order, and a gap is filled with zeros."""
    traffic = read_traffic(
        csv(tmp_path, "Minute,Invocations,note\n3,40\n0,10,\n".replace("40", "40,x"))
    )
    assert traffic.invocations == (10, 0, 0, 40)


def test_timestamps_set_the_start(tmp_path: Path) -> None:
    """A time without an offset is in UTC, and others are converted."""
    text = "timestamp,invocations\n2026-03-02T08:01:00,5\n2026-03-02T09:00:00+01:00,7\n"
    traffic = read_traffic(csv(tmp_path, text))
    assert traffic.invocations == (7, 5)
    assert traffic.start == datetime(2026, 3, 2, 8, tzinfo=UTC)


@pytest.mark.parametrize(
    "times", [["2026-03-02T08:02:00+00:00", "2026-03-02T08:00:00+00:00"], [1120, 1000]]
)
def test_output_of_get_metric_data(tmp_path: Path, times: list[Any]) -> None:
    """Both versions of the AWS CLI are read, newest first, with floats for counts."""
    result = {"Id": "m", "Label": "Invocations", "Timestamps": times, "Values": [12.0, 1e3]}
    assert read_traffic(metric_data(tmp_path, result)).invocations == (1000, 0, 12)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "minute,invocations\n-1,5\n",
            r'column "minute": must be a whole number from 0 to 527039, got "-1"',
        ),
        ("minute,invocations\n1,-5\n", r'column "invocations": must be from 0'),
        ("timestamp,invocations\nMonday,5\n", r'must be a time in ISO 8601, got "Monday"'),
        ("invocations\n5\n", r"row 2: has no minute or timestamp"),
        ("timestamp,invocations\n2020-01-01,5\n2026-01-01,5\n", r"must be at most a year long"),
    ],
)
def test_invalid_csv_is_refused(tmp_path: Path, text: str, message: str) -> None:
    """The message names row, column and value."""
    with pytest.raises(InvalidValueError, match=message):
        read_traffic(csv(tmp_path, text))


POINT = {"Timestamps": [0], "Values": [1]}


@pytest.mark.parametrize(
    ("results", "message"),
    [
        ([POINT, POINT], r"must be the output of `aws cloudwatch get-metric-data`"),
        ([{"Timestamps": [], "Values": []}], r"has no data points"),
        # Five minutes of invocations would look like one minute with all of them.
        (
            [{"Timestamps": [0, 300, 900], "Values": [1, 2, 3]}],
            r"got one each 300 seconds; query CloudWatch",
        ),
        # Python has no time after the year 9999.
        ([{"Timestamps": [2**39], "Values": [1]}], "Timestamps: must be a time in ISO 8601"),
    ],
)
def test_invalid_metric_data_is_refused(tmp_path: Path, results: list[Any], message: str) -> None:
    """Several metrics, no points, a wrong period or time, or no file."""
    path = metric_data(tmp_path, *results)
    with pytest.raises(InvalidValueError, match=message):
        read_traffic(path)
    path.unlink()
    with pytest.raises(InvalidValueError, match=r"cannot be read"):
        read_traffic(path)


def test_patterns_reach_their_levels() -> None:
    """Each pattern has its length, and its lowest and highest minute are the given levels."""
    lengths = {"step": 240, "spike": 180, "diurnal": 1440}
    for name, length in lengths.items():
        invocations = Traffic.pattern(name, low=10, high=90).invocations
        assert (len(invocations), min(invocations), max(invocations)) == (length, 10, 90)
    assert Traffic.pattern("spike", low=0, high=9, high_minutes=3).invocations.count(9) == 3
    assert Traffic.pattern("diurnal", low=10, high=90).invocations[4 * 60] == 10


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: pattern("spikes", low=1, high=2), r'got "spikes"; did you mean "spike"\?'),
        (lambda: pattern("step", low=3, high=2), r"low: must be from 0 to high"),
        (
            lambda: pattern("step", low=1, high=2, high_minutes=500),
            r"high_minutes: must be from 1 to 180",
        ),
        *(
            (lambda counts=counts: Traffic(counts), r"invocations")
            for counts in ((), (1, -1), (0.5,))
        ),
    ],
)
def test_invalid_traffic_is_refused(build: Any, message: str) -> None:
    """An unknown name, levels in the wrong order, a length beyond the pattern,
    no counts or no whole ones.
    """
    with pytest.raises(InvalidValueError, match=message):
        build()


@pytest.mark.parametrize("name", ["t.csv", "t.json"])
def test_reading_never_waits_and_never_ends_in_a_device(tmp_path: Path, name: str) -> None:
    """A pipe has no writer, and a device may have no end."""
    os.mkfifo(tmp_path / name)
    with pytest.raises(
        InvalidValueError, match=r"cannot be read \(a named pipe instead of a file\)"
    ):
        read_traffic(tmp_path / name)
    (tmp_path / name).unlink()
    (tmp_path / name).symlink_to("/dev/zero")
    with pytest.raises(InvalidValueError, match=r"cannot be read \(a device instead of a file\)"):
        read_traffic(tmp_path / name)
