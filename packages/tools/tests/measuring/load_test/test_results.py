"""What a load test writes, and how its steps are decided."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from constructs_triton_client import Invocation
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.measuring.load_test.locust_file import format_locustfile
from constructs_triton_tools.measuring.load_test.results_file import (
    BenchmarkMetadata,
    write_results,
)
from constructs_triton_tools.measuring.load_test.samples import Recording, Sample
from constructs_triton_tools.measuring.load_test.step import (
    Limits,
    StepResult,
    StepSettings,
    evaluate,
)
from constructs_triton_tools.planning import read_measurements

STARTED = datetime(2026, 1, 5, 8, tzinfo=UTC)
LIMITS = Limits(latency_ms=100)


def step(
    rate: float = 10, latency: float = 0.02, late: float = 0.0, count: int = 100, **recording: Any
) -> StepResult:
    """A step whose requests all have the same latency and lateness, in seconds."""
    samples = [Sample(late, latency, 200)] * count
    settings = StepSettings(seconds=recording.pop("seconds", 10))
    return evaluate(rate, settings, LIMITS, [Recording(samples, **recording)])


@pytest.mark.parametrize(
    ("result", "verdict", "reason"),
    [
        (step(), "held", ""),
        (step(cpu=0.95), "held", ""),
        (step(latency=0.101), "not held", "p95 101 ms"),
        (step(shed=3), "not held", "3 not sent, too many in flight"),
        (step(latency=0.2, cpu=0.81), "void", "the generator used 81% of a CPU; use --processes"),
        (step(latency=0.2, late=0.15), "void", "the generator was 150 ms late"),
        (step(latency=0.6, late=0.15), "not held", "p95 600 ms"),
        (step(count=0), "void", "no request was due; use a longer step"),
    ],
)
def test_verdict_of_a_step(result: StepResult, verdict: str, reason: str) -> None:
    """A missed limit is void if the generator can be the reason, and not held otherwise."""
    assert result.verdict == verdict
    assert result.reason.startswith(reason)


def test_a_step_keeps_its_latencies_and_how_sure_it_is() -> None:
    """Failed and unsent requests are over the limit; only good ones have a latency."""
    samples = [*([Sample(0, 0.02, 200)] * 190), Sample(0, 0.3, 200), Sample(0, 0.01, 500)]
    found = evaluate(10, StepSettings(seconds=10), LIMITS, [Recording(samples, shed=1)])
    assert found.requests == 193
    assert found.over == 3
    assert len(found.latencies_ms) == 191
    assert list(found.latencies_ms[-2:]) == pytest.approx([20, 300])
    assert found.confidence is None  # an error is a miss, whatever the percentile is
    assert "latencies_ms" not in found.to_dict()


@pytest.mark.parametrize(
    ("result", "confidence"),
    [
        (step(count=40), 0.8715),
        (step(count=400), 1.0),
        (step(latency=0.101, count=10), 1.0),
        (step(latency=0.2, cpu=0.9), None),
    ],
)
def test_confidence_depends_on_the_number_of_requests(
    result: StepResult, confidence: float | None
) -> None:
    """A step of few requests can be held by chance; a void step shows nothing."""
    assert result.confidence == confidence


def test_p99_needs_a_thousand_requests() -> None:
    """Fewer would put less than ten above it."""
    assert step(count=999).p99_ms is None
    assert step(count=1000).p99_ms == 20


def test_rows_are_what_plan_reads(tmp_path: Path) -> None:
    """Each rate that was held is a row, with the throughput of one instance, rounded down."""
    path = tmp_path / "benchmark.csv"
    metadata = BenchmarkMetadata(
        configuration="fp16", instance_type="ml.g5.xlarge", instance_count=3
    )
    steps = [step(20, count=200), step(10), step(40, latency=0.5), step(20, count=601, seconds=30)]

    assert write_results(path, metadata, steps, started=STARTED) == 2

    first, second = read_measurements(path)
    assert str(first) == "fp16 on ml.g5.xlarge"
    assert str(second.invocations_per_minute) == "400.6"
    assert second.latency_ms == 20
    assert "2026-01-05T08:00:00+00:00" in path.read_text()


def test_rates_above_one_that_was_not_confirmed_are_left_out(tmp_path: Path) -> None:
    """A rate that a longer step did not hold is not written, and no higher one."""
    path = tmp_path / "benchmark.csv"
    steps = [step(10), step(20), step(40), step(80, latency=0.5), step(40, latency=0.5), step(20)]

    assert write_results(path, BenchmarkMetadata(configuration="a"), steps) == 2

    rates = [float(row.invocations_per_minute) for row in read_measurements(path)]
    assert rates == [600, 600]


def test_rows_are_appended_to_a_file_of_a_load_test(tmp_path: Path) -> None:
    """Several configurations are in one file; another file is not changed."""
    path = tmp_path / "benchmark.csv"
    for name in ("a", "b"):
        write_results(path, BenchmarkMetadata(configuration=name), [step()], append=True)
    assert [row.configuration for row in read_measurements(path)] == ["a", "b"]

    path.write_text("something,else\n")
    with pytest.raises(InvalidValueError, match=r"has other columns than this load test writes"):
        write_results(path, BenchmarkMetadata(configuration="c"), [step()], append=True)
    with pytest.raises(InvalidValueError, match=r"cannot be written"):
        write_results(tmp_path / "absent" / "b.csv", BenchmarkMetadata(configuration="c"), [step()])


def test_metadata_need_an_instance() -> None:
    """The throughput is divided by the instances."""
    with pytest.raises(InvalidValueError, match=r"instance_count: must be at least 1, got 0"):
        BenchmarkMetadata(configuration="a", instance_count=0)


def test_locustfile_compiles_and_has_the_requests() -> None:
    """It is Python with the bodies, the parameters and the weights of the test."""
    invocation = Invocation(b"\x00\xff", "application/octet-stream", {"TargetModel": "cats.tar.gz"})
    text = format_locustfile("pets", [(3.0, invocation)], region="eu-west-1")
    compile(text, "locustfile.py", "exec")
    assert "(3.0, 'application/octet-stream', {'TargetModel': 'cats.tar.gz'}, 'AP8=')" in text
    assert "REGION = 'eu-west-1'" in text


def test_one_unlucky_step_of_several_rounds_removes_no_row(tmp_path: Path) -> None:
    """A plan is sized by the highest rate of the rounds, not by the one below a busy moment."""
    low = step(rate=30, count=300)
    high = step(rate=36, count=360)
    unlucky = step(rate=30, latency=0.3, count=300)
    too_high = step(rate=40, latency=0.2)
    path = tmp_path / "b.csv"

    written = write_results(
        path, BenchmarkMetadata(configuration="c"), [low, high, unlucky, low, high, too_high]
    )

    assert written == 2
    rows = read_measurements(path)
    assert [row.invocations_per_minute for row in rows] == [1800, 2160]
    assert not any(row.is_lower_bound for row in rows)
