"""Figures of recorded calls."""

from __future__ import annotations

import json

import pytest

from constructs_triton_tools.local.page.call_record import Call, CallRecord, original_message
from constructs_triton_tools.local.page.figures import Figures, percentile


def figures_of(*calls: Call, now: float = 1000.5) -> Figures:
    record = CallRecord()
    for call in calls:
        record.add(call)
    figures = Figures(record, clock=lambda: now)
    figures.update()
    return figures


def call(
    at: float, seconds: float = 0.01, status: int = 200, target: str = "v", error: bytes = b""
) -> Call:
    return Call("e", target, at, seconds, status, error)


@pytest.mark.parametrize(("percent", "expected"), [(50, 5), (95, 10), (99, 10), (1, 1), (100, 10)])
def test_percentile_is_the_nearest_rank(percent: float, expected: int) -> None:
    """A percentile is a value that was measured."""
    assert percentile(list(range(1, 11)), percent) == expected


def test_rows_are_seconds() -> None:
    """Calls of one second are one row, with its errors and percentiles in milliseconds."""
    figures = figures_of(call(999.1, 0.010), call(999.9, 0.030, status=424), call(1000.2, 0.002))
    assert figures.rows("e") == [[999, 2, 1, 10.0, 30.0, 30.0], [1000, 1, 0, 2.0, 2.0, 2.0]]
    assert figures.rows("e", last_seconds=1) == [[1000, 1, 0, 2.0, 2.0, 2.0]]
    assert figures.rows("other") == []


def test_old_seconds_are_forgotten() -> None:
    """The charts show five minutes; the sums of a target stay."""
    figures = figures_of(call(600.0), call(999.0))
    assert [row[0] for row in figures.rows("e")] == [999]
    assert figures.target("e", "v")["calls"] == 2


def test_rate_is_of_whole_seconds() -> None:
    """The rate is a mean over the last five seconds that are complete."""
    figures = figures_of(*(call(996 + index / 10) for index in range(50)))
    assert figures.target("e", "v")["calls_per_second"] == pytest.approx(8)


def test_last_call_decides_whether_a_target_has_failed() -> None:
    """An error before the last call counts as an error, and is no failure any more."""
    error = json.dumps(
        {"Message": "long", "OriginalStatusCode": 500, "OriginalMessage": '{"error": "own words"}'}
    ).encode()
    failed = figures_of(call(999), call(999, status=424, error=error)).target("e", "v")
    assert (failed["failed"], failed["failures"]) == ("own words", 1)
    fixed = figures_of(call(999, status=424, error=error), call(999)).target("e", "v")
    assert (fixed["failed"], fixed["failures"]) == (None, 1)


def test_refused_request_is_no_failure() -> None:
    """A wrong request counts as an error of the endpoint,
    and leaves the state of the model as it was.
    """
    refused = call(999, status=400, error=b'{"Message": "Variant x not found"}')
    failed = call(999, status=424, error=b'{"OriginalStatusCode": 500, "OriginalMessage": "own"}')
    healthy, broken = figures_of(call(999), refused), figures_of(failed, refused)
    assert healthy.target("e", "v")["failed"] is None
    assert broken.target("e", "v")["failed"] == "own"
    sums = broken.endpoint("e")
    assert (sums["recent_calls"], sums["recent_errors"], sums["recent_failures"]) == (2, 2, 1)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (b'{"Message": "SageMaker\'s own"}', "SageMaker's own"),
        (b'{"OriginalMessage": "no JSON"}', "no JSON"),
        (b"[1]", "[1]"),
        (b"\xff", "\ufffd"),
        (b"", ""),
        (b"[" * 100_000, "[" * 100_000),
    ],
)
def test_message_of_an_error(error: bytes, expected: str) -> None:
    """An error of any form has a message."""
    assert original_message(error) == expected


def test_record_keeps_the_last_calls_only() -> None:
    """Without an open page the memory for calls has a bound, and each call is taken once."""
    record = CallRecord()
    for number in range(20_001):
        record.add(call(number))
    taken = record.take()
    assert (len(taken), taken[0].ended_at) == (20_000, 1)
    assert record.take() == []
