"""What is recorded of each request of a step, and of each event of a stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

OK = 200


@dataclass(slots=True)
class StreamTimes:
    """When the tokens of a stream arrived, in seconds after the request was due.

    Args:
        first: Time of the first event that has tokens; ``None`` if there was none.
        second: Time of the second such event.
        last: Time of the last such event.
        events: Events that have tokens.
        step_events: Those of them that arrived in the measured seconds of the step.
        tokens: Tokens of the events.
        step_tokens: Those of them that arrived in the measured seconds of the step.
        total: Tokens of the stream, if only ``usage`` has their number.
        first_tokens: Tokens of the first such event; 1 if their number is not known, as in AIPerf.
        has_counts: Whether every event had the number of its tokens.
        is_failed: Whether an error ended the stream after its status 200.
        is_closed: Whether the load test closed the stream before its end.
    """

    first: float | None = None
    second: float | None = None
    last: float = 0.0
    events: int = 0
    step_events: int = 0
    tokens: int = 0
    step_tokens: int = 0
    total: int | None = None
    first_tokens: int = 1
    has_counts: bool = True
    is_failed: bool = False
    is_closed: bool = False

    def note(self, time: float, tokens: int | None, total: int | None, *, is_in_step: bool) -> None:
        """Add an event with this number of tokens, and of all tokens so far;
        ``None`` for an unknown one.
        """
        self.has_counts &= tokens is not None
        self.total = self.total if total is None else total
        if tokens == 0:
            return
        if self.first is None:
            self.first = time
            self.first_tokens = tokens or total or 1
        elif self.second is None:
            self.second = time
        self.last = time
        self.events += 1
        self.tokens += tokens or 0
        if is_in_step:
            self.step_events += 1
            self.step_tokens += tokens or 0

    @property
    def is_counted(self) -> bool:
        """Whether the responses have the number of tokens."""
        return self.has_counts or self.total is not None

    def count(self) -> int:
        """The tokens of the stream; one for each event if it was closed before
        their number arrived.
        """
        if self.has_counts:
            return self.tokens
        return self.events if self.total is None else self.total

    def count_in_step(self) -> float:
        """The tokens that arrived in the step: a known total is spread evenly over the events."""
        if self.has_counts or not self.events:
            return self.step_tokens
        return self.count() * self.step_events / self.events

    def between(self, *, in_tokens: bool) -> float | None:
        """The mean time of a token after those of the first event,
        or of an event after the first.
        """
        count = self.count() - self.first_tokens if in_tokens else self.events - 1
        return (self.last - self.first) / count if self.first is not None and count > 0 else None


class Sample(NamedTuple):
    """One request: how late it was sent, its latency from when it was due, in seconds, and the
    status.

    The status is 0 if there was no response. ``stream`` has the times of a stream.
    """

    late: float
    latency: float
    status: int
    stream: StreamTimes | None = None

    @property
    def is_closed(self) -> bool:
        """Whether the load test closed the stream before its end."""
        return self.stream is not None and self.stream.is_closed

    @property
    def is_good(self) -> bool:
        """Whether the whole response arrived, without an error."""
        return (
            self.status == OK and not self.is_closed and not (self.stream and self.stream.is_failed)
        )


@dataclass(slots=True)
class Recording:
    """What one process recorded in a step.

    Args:
        samples: The requests.
        shed: Requests that were due and not sent.
        cpu: Share of a CPU that the process used.
        first_error: Message of the first error.
        seconds: How long requests were measured; 0 if it was the time of the settings.
        tokens: Tokens that arrived in these seconds, of all streams; see
            ``StreamTimes.count_in_step``.
        events: Events with tokens that arrived in these seconds.
    """

    samples: list[Sample] = field(default_factory=list)
    shed: int = 0
    cpu: float = 0.0
    first_error: str = ""
    seconds: float = 0.0
    tokens: float = 0.0
    events: int = 0


def percentile_ms(values: Sequence[float], percent: float) -> float:
    """Return a percentile of sorted seconds, in milliseconds; 0 for no values."""
    if not values:
        return 0.0
    return round(values[min(len(values) - 1, int(percent / 100 * len(values)))] * 1000, 2)
