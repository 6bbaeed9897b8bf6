"""Writes the steps that were held as the CSV file that ``planning`` reads."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import ROUND_DOWN, Decimal
from os import PathLike
from pathlib import Path

from constructs_triton.errors import InvalidValueError
from constructs_triton.measuring.load_test.search import HeldSteps
from constructs_triton.measuring.load_test.step import StepResult
from constructs_triton.untrusted.regular_files import open_regular

__all__ = ["BenchmarkMetadata", "write_results"]

_LONGEST_LINE = 4096
_HEADINGS = (
    "configuration",
    "instance_type",
    "invocations_per_minute",
    "latency_ms",
    "latency_p50_ms",
    "latency_p99_ms",
    "instance_type_source",
    "is_lower_bound",
    "offered_per_second",
    "seconds",
    "requests",
    "generator_late_p99_ms",
    "generator_cpu",
    "started",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkMetadata:
    """What was measured.

    ``configuration``
        Any name, for example that of the model configuration.
    ``instance_type``
        ``"ml.g5.xlarge"``, or ``"local"`` for this machine.
    ``instance_type_source``
        ``"endpoint"`` if AWS described the endpoint, ``"local"``, or ``"given"`` if a person wrote the type.
    ``instance_count``
        The number of instances that shared the load. Default: 1.

    Raises:
        InvalidValueError: ``instance_count`` is below 1.
    """

    configuration: str
    instance_type: str = "local"
    instance_type_source: str = "local"
    instance_count: int = 1

    def __post_init__(self) -> None:
        if self.instance_count < 1:
            raise InvalidValueError(
                f"instance_count: must be at least 1, got {self.instance_count}; "
                "give the number of instances in service"
            )


def write_results(
    path: str | PathLike[str],
    metadata: BenchmarkMetadata,
    steps: Iterable[StepResult],
    *,
    append: bool = False,
    started: datetime | None = None,
) -> int:
    """Write a row for each rate that was held, and return their number.

    ``HeldSteps`` selects the steps. In the last row, ``is_lower_bound`` is ``true`` if the endpoint may hold
    a higher rate.

    Args:
        path: Path of the CSV file that planning reads.
        metadata: What was measured.
        steps: Results of the steps.
        append: Whether to add the rows to an existing file instead of replacing it.
        started: Time in the column ``started``. Default: now, in UTC.

    Raises:
        InvalidValueError: the file cannot be written, or has other columns than the rows to append.
    """
    held = HeldSteps.of(steps)
    time = (started or datetime.now(UTC)).isoformat(timespec="seconds")
    rows = [_row(metadata, step, time) for step in held.steps]
    if rows and held.lower_bound_reason:
        rows[-1][_HEADINGS.index("is_lower_bound")] = "true"
    file = Path(path)
    is_new = not (append and file.exists())
    try:
        if not is_new:
            _check_headings(file)
        with file.open("w" if is_new else "a", newline="", encoding="utf-8") as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerows([_HEADINGS, *rows] if is_new else rows)
    except OSError as error:
        raise InvalidValueError(f"{file}: cannot be written ({error.strerror}); give another path") from None
    return len(rows)


def _check_headings(file: Path) -> None:
    with open_regular(file) as stream:
        first_line = stream.readline(_LONGEST_LINE).decode("utf-8", "replace")
    found = next(csv.reader([first_line]), [])
    if tuple(found) != _HEADINGS:
        raise InvalidValueError(f"{file}: has other columns than a load test writes; give another file")


def _row(metadata: BenchmarkMetadata, step: StepResult, started: str) -> list[object]:
    return [
        metadata.configuration,
        metadata.instance_type,
        _per_minute(step, metadata.instance_count),
        step.latency_ms,
        step.p50_ms,
        "" if step.p99_ms is None else step.p99_ms,
        metadata.instance_type_source,
        "false",
        round(step.rate, 2),
        step.seconds,
        step.requests,
        step.late_p99_ms,
        step.cpu,
        started,
    ]


def _per_minute(step: StepResult, instances: int) -> Decimal:
    """Answers per minute of one instance, rounded down: a float would write 32207.999999999996."""
    exact = Decimal(step.good) * 60 / (Decimal(str(step.seconds)) * instances)
    return exact.quantize(Decimal("0.1"), ROUND_DOWN)
