"""Writes the steps that were held as the CSV file that ``planning`` reads."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import ROUND_DOWN, Decimal
from os import PathLike
from pathlib import Path

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.untrusted.drafts import sole_writer
from constructs_triton_core.untrusted.regular_files import csv_text, open_regular, read_regular
from constructs_triton_core.untrusted.written_files import write_whole
from constructs_triton_tools.measuring.load_test.search import HeldSteps
from constructs_triton_tools.measuring.load_test.step import StepResult
from constructs_triton_tools.measuring.load_test.stream_figures import StreamFigures

_LONGEST_LINE = 4096
_MOST_BYTES = 64 << 20
_HUNDREDTH = Decimal("0.01")
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
#: Further columns of a test of streams.
_STREAM_HEADINGS = (
    "concurrency",
    "first_token_ms",
    "between_tokens_ms",
    "tokens_per_second",
    "token_unit",
    "second_token_ms",
    "tokens_per_second_per_user",
    "goodput_per_second",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkMetadata:
    """What was measured.

    ``configuration``
        Any name, for example that of the model configuration.
    ``instance_type``
        ``"ml.g5.xlarge"``, or ``"local"`` for this machine.
    ``instance_type_source``
        ``"endpoint"`` if AWS described the endpoint, ``"local"``, or ``"given"`` if a person wrote
        the type.
    ``instance_count``
        The number of instances that shared the load. Default: 1.
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

    ``HeldSteps`` selects the steps. In the last row, ``is_lower_bound`` is ``true`` if the endpoint
    may hold a higher rate.
    """
    held = HeldSteps.of(steps)
    headings = _HEADINGS + (_STREAM_HEADINGS if any(step.stream for step in held.steps) else ())
    time = (started or datetime.now(UTC)).isoformat(timespec="seconds")
    rows = [_row(metadata, step, time) for step in held.steps]
    if rows and held.lower_bound_reason:
        rows[-1][_HEADINGS.index("is_lower_bound")] = "true"
    file = Path(path)
    try:
        with sole_writer(file.parent):
            if append and file.exists():
                _check_headings(file, headings)
                write_whole(file, read_regular(file, _MOST_BYTES) + csv_text(rows).encode())
            else:
                write_whole(file, csv_text([headings, *rows]))
    except OSError as error:
        raise InvalidValueError(
            f"{file}: cannot be written ({error.strerror}); give another path"
        ) from None
    return len(rows)


def _check_headings(file: Path, headings: tuple[str, ...]) -> None:
    with open_regular(file) as stream:
        first_line = stream.readline(_LONGEST_LINE).decode("utf-8", "replace")
    found = next(csv.reader([first_line]), [])
    if tuple(found) != headings:
        raise InvalidValueError(
            f"{file}: has other columns than this load test writes; give another file"
        )


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
        "" if step.by_concurrency else round(step.rate, 2),
        step.seconds,
        step.requests,
        step.late_p99_ms,
        step.cpu,
        started,
        *_stream_cells(step.stream, metadata.instance_count),
    ]


def _stream_cells(figures: StreamFigures | None, instances: int) -> list[object]:
    """The cells of a test of streams; the first, and the tokens per second,
    are those of one instance.
    """
    if figures is None:
        return []
    return [
        _share(figures.concurrency, instances),
        figures.first_token_ms,
        figures.between_tokens_ms or "",  # streams of one token have none
        _share(figures.tokens_per_second, instances),
        figures.unit,
        figures.second_token_ms,
        figures.tokens_per_second_per_user,
        figures.goodput_per_second,
    ]


def _share(value: float, instances: int) -> Decimal:
    return max((Decimal(str(value)) / instances).quantize(_HUNDREDTH, ROUND_DOWN), _HUNDREDTH)


def _per_minute(step: StepResult, instances: int) -> Decimal:
    """Answers per minute of one instance, rounded down: a float would write 32207.999999999996."""
    exact = Decimal(step.good) * 60 / (Decimal(str(step.seconds)) * instances)
    return exact.quantize(Decimal("0.1"), ROUND_DOWN)
