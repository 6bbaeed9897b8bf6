"""What is recorded of each request of a step, and of each event of a stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

OK = 200


@dataclass(slots=True)
class StreamTimes:
    """When the tokens of a stream arrived, in seconds after the request was due.

    Args:
        first: Time of the first event that has tokens; ``None`` if there was none.
        second: Time of the second such event.
        last: Time of the last such event.
        events: Events that have tokens.
        tokens: Sum of ``num_output_tokens``.
        first_tokens: ``num_output_tokens`` of the first such event.
        has_counts: Whether every event had ``num_output_tokens``.
        is_failed: Whether an error ended the stream after its status 200.
        is_closed: Whether the load test closed the stream before its end.
    """

    first: float | None = None
    second: float | None = None
    last: float = 0.0
    events: int = 0
    tokens: int = 0
    first_tokens: int = 0
    has_counts: bool = True
    is_failed: bool = False
    is_closed: bool = False

    def note(self, time: float, tokens: int | None) -> None:
        """Add an event with this number of tokens; ``None`` if the event does not have the number."""
        self.has_counts &= tokens is not None
        if tokens == 0:
            return
        if self.first is None:
            self.first, self.first_tokens = time, tokens or 0
        elif self.second is None:
            self.second = time
        self.last = time
        self.events += 1
        self.tokens += tokens or 0

    def between(self, *, in_tokens: bool) -> float | None:
        """The mean time of a token after those of the first event, or of an event after the first."""
        count = self.tokens - self.first_tokens if in_tokens else self.events - 1
        return (self.last - self.first) / count if self.first is not None and count > 0 else None


def count_tokens(event: Mapping[str, Any]) -> int | None:
    """Return the tokens of an event: the sum of ``num_output_tokens``, or ``None`` if it has no such numbers.

    An event whose text is empty and that has no number has no tokens: it is often the last one.
    """
    value = event.get("num_output_tokens")
    values = value if isinstance(value, list) else [value]
    if values and all(type(each) is int and each >= 0 for each in values):
        return sum(values)
    return 0 if event.get("text_output") == "" else None


class Sample(NamedTuple):
    """One request: how late it was sent, its latency from when it was due, in seconds, and the status.

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
        return self.status == OK and not self.is_closed and not (self.stream and self.stream.is_failed)


@dataclass(slots=True)
class Recording:
    """What one process recorded in a step.

    Args:
        samples: The requests.
        shed: Requests that were due and not sent.
        cpu: Share of a CPU that the process used.
        first_error: Message of the first error.
        seconds: How long requests were measured; 0 if it was the time of the settings.
        tokens: Tokens that arrived in these seconds, of all streams.
        events: Events with tokens that arrived in these seconds.
    """

    samples: list[Sample] = field(default_factory=list)
    shed: int = 0
    cpu: float = 0.0
    first_error: str = ""
    seconds: float = 0.0
    tokens: int = 0
    events: int = 0


def percentile_ms(values: Sequence[float], percent: float) -> float:
    """Return a percentile of sorted seconds, in milliseconds; 0 for no values."""
    if not values:
        return 0.0
    return round(values[min(len(values) - 1, int(percent / 100 * len(values)))] * 1000, 2)
