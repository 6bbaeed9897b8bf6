"""The figures of streams: first token, time between tokens, tokens per second and goodput.

Source of the definitions: NVIDIA AIPerf 0.13, "AIPerf Metrics Reference",
https://docs.nvidia.com/aiperf/v0.13.0/reference/ai-perf-metrics-reference. Two rules are not
AIPerf's: times count from when a request was due, and the rates are those of the measured seconds
alone, without the end of a step, in which fewer streams are open.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from constructs_triton_core.errors import InvalidValueError
from constructs_triton_tools.measuring.load_test.samples import (
    Recording,
    Sample,
    StreamTimes,
    percentile_ms,
)

EVENTS = "events"
TOKENS = "tokens"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamLimits:
    """When a stream is fast enough. The defaults are no limits.

    ``between_tokens_ms`` is a mean for each stream, and ``latency_ms`` the time of a whole stream.

    Raises:
        InvalidValueError: a limit is not positive.
    """

    first_token_ms: float = inf
    between_tokens_ms: float = inf
    latency_ms: float = inf

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if not getattr(self, name) > 0:
                raise InvalidValueError(
                    f"{name}: must be above 0, got {getattr(self, name)}; raise it"
                )

    def are_met(self, sample: Sample, *, in_tokens: bool) -> bool:
        """Whether a stream counts for the goodput: it is whole, without an error,
        and meets every limit.
        """
        times = sample.stream
        if times is None or times.first is None or not sample.is_good:
            return False
        between = times.between(in_tokens=in_tokens) or 0.0
        measured = (times.first, between, sample.latency)
        limits = (self.first_token_ms, self.between_tokens_ms, self.latency_ms)
        # Rounded as the percentiles are, so that a stream of exactly the limit meets it.
        return all(
            round(value * 1000, 2) <= limit for value, limit in zip(measured, limits, strict=True)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamFigures:
    """The figures of a step of streams; times are in milliseconds, at the percentile of the limits.

    Args:
        unit: ``"tokens"`` if every response has the number of its tokens; otherwise ``"events"``,
            and every figure about tokens is about events.
        first_token_ms: Time to the first token, from when the request was due.
        first_token_p50_ms: Its median.
        second_token_ms: Time from the first to the second event (AIPerf's time to second token).
        second_token_p50_ms: Its median.
        between_tokens_ms: Inter-token latency: for each stream, the time from its first to its last
            token, divided by the tokens after those of the first event.
        between_tokens_p50_ms: Its median.
        tokens_per_second: Tokens of all streams that arrived in the measured seconds, per second.
        tokens_per_second_per_user: Mean of 1 / inter-token latency.
        goodput_per_second: Requests per second that met every limit.
        concurrency: Streams that were open at a time: the planned ones, or requests per second
            times their mean duration.
        closed: Streams that the load test closed before their end.
    """

    unit: str
    first_token_ms: float
    first_token_p50_ms: float
    second_token_ms: float
    second_token_p50_ms: float
    between_tokens_ms: float
    between_tokens_p50_ms: float
    tokens_per_second: float
    tokens_per_second_per_user: float
    goodput_per_second: float
    concurrency: float
    closed: int

    def to_dict(self) -> dict[str, Any]:
        """Return the figures as values that ``json.dumps`` accepts."""
        return {name: getattr(self, name) for name in self.__slots__}


def _are_counted(streams: Sequence[StreamTimes]) -> bool:
    """Return whether every stream has its number of tokens.

    One that was closed before the number arrived says nothing about the model.
    """
    known = [stream for stream in streams if stream.events]
    counted = [stream.is_counted for stream in known if stream.is_counted or not stream.is_closed]
    return bool(counted) and all(counted)


def compute_figures(
    recordings: Sequence[Recording],
    seconds: float,
    limits: StreamLimits,
    percentile: float,
    concurrency: float | None,
) -> StreamFigures:
    """Compute the figures of a step.

    A stream that was closed before its end counts with what arrived of it.

    ``concurrency`` is the planned number of streams at a time; ``None`` computes it.
    """
    samples: list[Sample] = []
    for recording in recordings:
        samples += (sample for sample in recording.samples if sample.stream)
    seen = [sample for sample in samples if sample.is_good or sample.is_closed]
    times = [sample.stream for sample in seen if sample.stream]

    # Tokens are counted only if all streams have their numbers; otherwise events are.
    in_tokens = _are_counted(times)
    if in_tokens:
        arrived = sum(recording.tokens for recording in recordings)
    else:
        arrived = sum(recording.events for recording in recordings)
    good = sum(limits.are_met(sample, in_tokens=in_tokens) for sample in samples)

    first = sorted(_first_tokens(seen, limits))
    second = sorted(_present(_second_token(stream) for stream in times))
    between = sorted(_present(stream.between(in_tokens=in_tokens) for stream in times))
    speeds = [1 / pause for pause in between if pause]
    mean_speed = sum(speeds) / len(speeds) if speeds else 0.0

    if concurrency is None:
        # Little's law: the time that streams were open, in each second of the step.
        concurrency = sum(sample.latency for sample in samples) / seconds
    return StreamFigures(
        unit=TOKENS if in_tokens else EVENTS,
        first_token_ms=percentile_ms(first, percentile),
        first_token_p50_ms=percentile_ms(first, 50),
        second_token_ms=percentile_ms(second, percentile),
        second_token_p50_ms=percentile_ms(second, 50),
        between_tokens_ms=percentile_ms(between, percentile),
        between_tokens_p50_ms=percentile_ms(between, 50),
        tokens_per_second=round(arrived / seconds, 2),
        tokens_per_second_per_user=round(mean_speed, 2),
        goodput_per_second=round(good / seconds, 3),
        concurrency=round(concurrency, 2),
        closed=sum(sample.is_closed for sample in samples),
    )


def _present(values: Iterable[float | None]) -> Iterable[float]:
    return (value for value in values if value is not None)


def _first_tokens(samples: Iterable[Sample], limits: StreamLimits) -> Iterable[float]:
    """The times to the first token.

    A closed stream that waited for its first token beyond the limit counts with that time: without
    it, an endpoint that is too slow to answer would look fast.
    """
    for sample in samples:
        assert sample.stream is not None
        if sample.stream.first is not None:
            yield sample.stream.first
        elif sample.latency * 1000 > limits.first_token_ms:
            yield sample.latency


def _second_token(times: StreamTimes) -> float | None:
    return None if times.first is None or times.second is None else times.second - times.first
