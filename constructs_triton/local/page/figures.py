"""Turns recorded calls into figures: a row for each second, sums for each target, and the last errors."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from constructs_triton.local.page.call_record import Call, CallRecord, original_message, original_status

__all__ = ["Figures", "percentile"]

#: Seconds that the charts show.
HISTORY_SECONDS = 300
_RECENT_SECONDS = 60
_MOST_ERRORS = 50
#: Latencies of one second that percentiles are computed from.
_MOST_LATENCIES = 5000
_PERCENTILES = (50, 95, 99)


@dataclass(slots=True)
class _Second:
    calls: int = 0
    errors: int = 0
    latencies: list[float] = field(default_factory=list)

    def add(self, call: Call) -> None:
        self.calls += 1
        self.errors += call.status >= 400
        if len(self.latencies) < _MOST_LATENCIES:
            self.latencies.append(call.seconds)


@dataclass(slots=True)
class _Target:
    calls: int = 0
    errors: int = 0
    last_error: Call | None = None
    recent: dict[int, _Second] = field(default_factory=dict)

    def add(self, call: Call) -> None:
        self.calls += 1
        self.errors += call.status >= 400
        self.last_error = call if call.status >= 400 else None
        self.recent.setdefault(int(call.ended_at), _Second()).add(call)


class Figures:
    """The figures of a run. :meth:`update` takes the calls that were recorded since the last time."""

    def __init__(self, record: CallRecord, clock: Callable[[], float] = time.time) -> None:
        self._record = record
        self._clock = clock
        self._seconds: dict[str, dict[int, _Second]] = {}
        self._targets: dict[tuple[str, str], _Target] = {}
        self._errors: deque[Call] = deque(maxlen=_MOST_ERRORS)

    def update(self) -> None:
        """Count the new calls, and forget seconds that no chart shows any more."""
        for call in self._record.take():
            seconds = self._seconds.setdefault(call.endpoint, {})
            seconds.setdefault(int(call.ended_at), _Second()).add(call)
            self._targets.setdefault((call.endpoint, call.target), _Target()).add(call)
            if call.status >= 400:
                self._errors.append(call)
        now = self._clock()
        for seconds in self._seconds.values():
            _forget(seconds, now - HISTORY_SECONDS)
        for target in self._targets.values():
            _forget(target.recent, now - _RECENT_SECONDS)

    def rows(self, endpoint: str, last_seconds: int = HISTORY_SECONDS) -> list[list[float | None]]:
        """Return a row for each second with calls: time, calls, errors and the percentiles in ms."""
        begin = self._clock() - last_seconds
        seconds = self._seconds.get(endpoint, {})
        return [
            [at, each.calls, each.errors, *_milliseconds(each.latencies)]
            for at, each in sorted(seconds.items())
            if at >= begin
        ]

    def target(self, endpoint: str, target: str) -> dict[str, object]:
        """Return the calls, errors and latencies of one target, and its last call if that failed."""
        found = self._targets.get((endpoint, target), _Target())
        latencies = [each for second in found.recent.values() for each in second.latencies]
        return {
            "calls": found.calls,
            "errors": found.errors,
            "calls_per_second": _rate(found.recent, self._clock()),
            "milliseconds": _milliseconds(latencies),
            "failed": None if found.last_error is None else original_message(found.last_error.error),
            "failed_status": None if found.last_error is None else original_status(found.last_error.error),
        }

    def errors(self) -> list[dict[str, object]]:
        """Return the last errors, newest first."""
        return [
            {
                "time": call.ended_at,
                "endpoint": call.endpoint,
                "target": call.target,
                "status": call.status,
                "message": original_message(call.error),
            }
            for call in reversed(self._errors)
        ]


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Return the nearest-rank percentile of values in ascending order, which must not be empty."""
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def _milliseconds(latencies: Iterable[float]) -> list[float | None]:
    ordered = sorted(latencies)
    if not ordered:
        return [None] * len(_PERCENTILES)
    return [round(percentile(ordered, each) * 1000, 3) for each in _PERCENTILES]


def _rate(recent: dict[int, _Second], now: float, seconds: int = 5) -> float:
    """Return the calls per second over the last whole seconds."""
    return sum(recent[at].calls for at in range(int(now) - seconds, int(now)) if at in recent) / seconds


def _forget(seconds: dict[int, _Second], before: float) -> None:
    for at in [each for each in seconds if each < before]:
        del seconds[at]
