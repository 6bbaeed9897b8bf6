"""One step of a load test: a rate for some seconds, what was measured, and what it means."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Any

from constructs_triton_core.declared_values import Value
from constructs_triton_core.errors import InvalidValueError
from constructs_triton_core.facts.limits import RangeLimit
from constructs_triton_tools.declared_fields import check_limits, shows_options
from constructs_triton_tools.measuring.load_test.confidence import (
    held_confidence,
    missed_confidence,
)
from constructs_triton_tools.measuring.load_test.samples import Recording, Sample, percentile_ms
from constructs_triton_tools.measuring.load_test.stream_figures import (
    StreamFigures,
    StreamLimits,
    compute_figures,
)

#: A 99th percentile of fewer requests rests on fewer than ten of them.
REQUESTS_FOR_P99 = 1000
# The generator is busy above this share of one CPU: what it measures is then partly itself.
_BUSY_CPU = 0.8
# A generator that is late by more than this share of the limit cannot measure the limit.
_LATE_SHARE = 0.1
#: Lowest, highest and usual value of settings.
_EMPTY = "no request was due; use a longer step or a higher rate"


class Verdict(StrEnum):
    """What a step shows.

    ``VOID`` means that the endpoint missed the limit, but the generator may be the reason.
    """

    HELD = "held"
    NOT_HELD = "not held"
    VOID = "void"


@shows_options
@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """When the endpoint holds a rate: without errors, and with a percentile of the latency in the
    limit.

    ``latency_ms`` is the highest latency in milliseconds, counted from when a request was due.
    ``stream`` has further limits of streams (default: the requests are not streams).

    Raises:
        InvalidValueError: the limit is not positive, or the percentile is not from 50 to 99.
    """

    latency_ms: float
    percentile: Annotated[
        float,
        Value(
            "percentile of the latency that must be within the limit",
            limit=RangeLimit(50, 99),
            metavar="P",
        ),
    ] = 95
    stream: StreamLimits | None = None

    def __post_init__(self) -> None:
        if not self.latency_ms > 0:
            raise InvalidValueError(f"latency_ms: must be above 0, got {self.latency_ms}; raise it")
        check_limits(self)


@shows_options
@dataclass(frozen=True, slots=True, kw_only=True)
class StepSettings:
    """How a step is run.

    With ``by_concurrency``, a number of requests is kept open, each followed by the next, in place
    of a rate.

    Raises:
        InvalidValueError: a number is out of range.
    """

    seconds: Annotated[
        float,
        Value(
            "seconds of a step that are measured; longer, up to 60, if fewer requests are due than "
            "the percentile needs: 76 for p95, 386 for p99",
            limit=RangeLimit(1, 3600),
            flag="--step-seconds",
            metavar="N",
        ),
    ] = 60
    warm_up_seconds: Annotated[
        float,
        Value(
            "seconds before the first step that are not measured",
            limit=RangeLimit(0, 3600),
            metavar="N",
        ),
    ] = 5
    max_in_flight: Annotated[
        int,
        Value(
            "requests without an answer above which no further ones are sent, but counted",
            limit=RangeLimit(1, 10_000),
            metavar="N",
        ),
    ] = 256
    seed: Annotated[int, Value("seed of the random intervals and values", metavar="N")] = 0
    constant: Annotated[
        bool, Value("send at equal intervals", default_text="random intervals, a Poisson process")
    ] = False
    by_concurrency: bool = False
    most_requests: Annotated[
        int | None,
        Value(
            "end a step after N requests, if that is before --step-seconds",
            limit=RangeLimit(1, None),
            flag="--step-requests",
            metavar="N",
        ),
    ] = None
    grace_seconds: Annotated[
        float | None,
        Value(
            "seconds that open streams may take after a step, before they are closed",
            default_text="30",
            limit=RangeLimit(0, 3600),
            metavar="N",
        ),
    ] = None

    def __post_init__(self) -> None:
        check_limits(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """The result of a step. Latencies are in milliseconds, counted from when a request was due.

    Args:
        rate: Requests per second that were planned, or with ``by_concurrency`` the requests that
            were kept open.
        seconds: How long they were measured.
        requests: Requests that were due.
        good: Requests that were answered with status 200 and, of streams, arrived whole.
        errors: Requests that failed, also within a stream.
        shed: Requests that were not sent because too many were in flight.
        latency_ms: Percentile of the limits.
        p50_ms: Median.
        p99_ms: 99th percentile; ``None`` below 1,000 requests.
        service_ms: Percentile of the limits, counted from sending.
        late_p99_ms: How late the generator sent requests (99th percentile).
        cpu: Share of a CPU that the busiest process of the generator used.
        statuses: Number of failed requests by HTTP status; 0 is no response.
        first_error: Text of the first error; empty if there was none.
        verdict: Whether the rate was held, was not held, or the measurement is void.
        reason: Why it was not held or is void; empty if it was held.
        by_concurrency: Whether a number of requests was kept open in place of a rate.
        stream: Figures of streams; ``None`` for other requests.
        over: Requests over the limit of the latency, with those that failed or were not sent.
        confidence: How sure it is, from 0 to 1, that the percentile is within the limit, or over it
            if the rate is not held. ``None`` for a void step, for one with requests that failed or
            were not sent, and for streams, which have several limits.
        latencies_ms: The latency of each good request, sorted.
    """

    rate: float
    seconds: float
    requests: int
    good: int
    errors: int
    shed: int
    latency_ms: float
    p50_ms: float
    p99_ms: float | None
    service_ms: float
    late_p99_ms: float
    cpu: float
    statuses: dict[int, int]
    first_error: str
    verdict: Verdict
    reason: str
    by_concurrency: bool = False
    stream: StreamFigures | None = None
    over: int = 0
    confidence: float | None = None
    latencies_ms: Sequence[float] = field(default=(), repr=False, compare=False)

    @property
    def good_per_second(self) -> float:
        """Requests per second that were answered with status 200 and, of streams, arrived whole."""
        return self.good / self.seconds

    def to_dict(self) -> dict[str, Any]:
        """Return the result as values that ``json.dumps`` accepts."""
        values: dict[str, Any] = {name: getattr(self, name) for name in self.__slots__}
        values |= {"verdict": str(self.verdict), "good_per_second": round(self.good_per_second, 2)}
        del values["by_concurrency"], values["stream"], values["latencies_ms"]
        if self.stream is None:
            return values
        load = {"rate": None, "concurrency": self.rate} if self.by_concurrency else {}
        return {**values, **self.stream.to_dict(), **load}


def evaluate(
    rate: float, settings: StepSettings, limits: Limits, recordings: Sequence[Recording]
) -> StepResult:
    """Merge what the processes recorded, and decide what it means."""
    samples: list[Sample] = []
    for recording in recordings:
        samples += recording.samples
    good = [sample for sample in samples if sample.is_good]
    failed = [sample for sample in samples if not sample.is_good and not sample.is_closed]
    latencies = sorted(sample.latency for sample in good)
    services = sorted(sample.latency - sample.late for sample in good)
    lateness = sorted(sample.late for sample in samples)
    seconds = max((recording.seconds for recording in recordings), default=0.0) or settings.seconds
    shed = sum(recording.shed for recording in recordings)
    cpu = max((recording.cpu for recording in recordings), default=0.0)

    # What decides the verdict.
    values: dict[str, Any] = {
        "errors": len(failed),
        "shed": shed,
        "latency_ms": percentile_ms(latencies, limits.percentile),
        "service_ms": percentile_ms(services, limits.percentile),
        "late_p99_ms": percentile_ms(lateness, 99),
        "cpu": round(cpu, 3),
        "stream": _figures(rate, settings, limits, recordings, seconds),
    }
    requests = len(samples) + shed
    verdict, reason = _decide(limits, **values) if requests else (Verdict.VOID, _EMPTY)

    # A failed request and one that was not sent are over every limit.
    failures = len(failed) + shed
    over = failures + sum(1000 * latency > limits.latency_ms for latency in latencies)
    confidence = None
    if not limits.stream and not failures:
        confidence = _confidence(verdict, over, requests, limits.percentile)

    return StepResult(
        rate=rate,
        seconds=seconds,
        requests=requests,
        good=len(good),
        p50_ms=percentile_ms(latencies, 50),
        p99_ms=percentile_ms(latencies, 99) if len(latencies) >= REQUESTS_FOR_P99 else None,
        statuses=dict(Counter(sample.status for sample in failed)),
        first_error=_first_error(recordings),
        verdict=verdict,
        reason=reason,
        by_concurrency=settings.by_concurrency,
        over=over,
        confidence=confidence,
        latencies_ms=array("d", (1000 * latency for latency in latencies)),
        **values,
    )


def _first_error(recordings: Sequence[Recording]) -> str:
    """Return the first error of the first process that has one."""
    for recording in recordings:
        if recording.first_error:
            return recording.first_error
    return ""


def _confidence(verdict: Verdict, over: int, requests: int, percentile: float) -> float | None:
    """Return how certain a verdict is, by the number of requests over the limit."""
    match verdict:
        case Verdict.HELD:
            return round(held_confidence(over, requests, percentile), 4)
        case Verdict.NOT_HELD:
            return round(missed_confidence(over, requests, percentile), 4)
    return None


def _figures(
    rate: float,
    settings: StepSettings,
    limits: Limits,
    recordings: Sequence[Recording],
    seconds: float,
) -> StreamFigures | None:
    """Return the times between the events of streams; ``None`` without limits for them."""
    if limits.stream is None:
        return None
    concurrency = rate if settings.by_concurrency else None
    return compute_figures(recordings, seconds, limits.stream, limits.percentile, concurrency)


def _decide(
    limits: Limits,
    *,
    errors: int,
    shed: int,
    latency_ms: float,
    service_ms: float,
    late_p99_ms: float,
    cpu: float,
    stream: StreamFigures | None,
) -> tuple[Verdict, str]:
    """Return the verdict and its reason: a miss that the generator may have caused is void."""
    missed = list(_misses(limits, errors, shed, latency_ms, stream))
    if not missed:
        return Verdict.HELD, ""
    if cpu > _BUSY_CPU:
        return (
            Verdict.VOID,
            f"the generator used {cpu:.0%} of a CPU; use --processes, or another machine",
        )

    limit = limits.latency_ms
    service = service_ms
    if stream and limits.stream and stream.first_token_ms > limits.stream.first_token_ms:
        limit = limits.stream.first_token_ms
        service = stream.first_token_ms - late_p99_ms
    # Lateness delays both the sending and the reading of the answer, so it is in the latency twice.
    without_generator = service - late_p99_ms
    if late_p99_ms > _LATE_SHARE * limit and not errors and without_generator <= limit:
        return Verdict.VOID, f"the generator was {late_p99_ms:.0f} ms late; use another machine"
    return Verdict.NOT_HELD, ", ".join(missed)


def _misses(
    limits: Limits, errors: int, shed: int, latency_ms: float, stream: StreamFigures | None
) -> Iterable[str]:
    """Yield each limit that was not held, with what was measured."""
    if errors:
        yield f"{errors} errors"
    if shed:
        yield f"{shed} not sent, too many in flight"
    if stream and limits.stream:
        if stream.first_token_ms > limits.stream.first_token_ms:
            yield f"p{limits.percentile:g} first token {stream.first_token_ms:.0f} ms"
        if stream.between_tokens_ms > limits.stream.between_tokens_ms:
            yield f"p{limits.percentile:g} between {stream.unit} {stream.between_tokens_ms:.0f} ms"
    if latency_ms > limits.latency_ms:
        yield f"p{limits.percentile:g} {latency_ms:.0f} ms"
