"""Turns recorded calls into figures: a row for each second, sums for each target,
and the last errors.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from constructs_triton_tools.local.page.call_record import (
    Call,
    CallRecord,
    Fault,
    fault_of,
    original_message,
)

#: Seconds that the charts show.
HISTORY_SECONDS = 300
_RECENT_SECONDS = 60
_MOST_ERRORS = 50
#: Latencies of one second that percentiles are computed from.
_MOST_LATENCIES = 5000
_PERCENTILES = (50, 95, 99)


@dataclass(slots=True)
class _Counts:
    calls: int = 0
    errors: int = 0
    failures: int = 0

    def count(self, fault: Fault | None) -> None:
        """Count a call. One that failed through no fault of its caller is also a failure."""
        self.calls += 1
        self.errors += fault is not None
        self.failures += fault in (Fault.MODEL, Fault.SERVER)


@dataclass(slots=True)
class _Second(_Counts):
    latencies: list[float] = field(default_factory=list)

    def add(self, call: Call, fault: Fault | None) -> None:
        self.count(fault)
        if len(self.latencies) < _MOST_LATENCIES:
            self.latencies.append(call.seconds)


@dataclass(slots=True)
class _Target(_Counts):
    """What is known of a target.

    A refused request says nothing about the model, so it keeps ``failed``.
    """

    failed: Call | None = None
    recent: dict[int, _Second] = field(default_factory=dict)

    def add(self, call: Call, fault: Fault | None) -> None:
        self.count(fault)
        if fault is None or fault is Fault.MODEL:
            self.failed = None if fault is None else call
        self.recent.setdefault(int(call.ended_at), _Second()).add(call, fault)


class Figures:
    """The figures of a run. :meth:`update` takes the calls that were recorded
    since the last time.
    """

    def __init__(self, record: CallRecord, clock: Callable[[], float] = time.time) -> None:
        self._record = record
        self._clock = clock
        self._seconds: dict[str, dict[int, _Second]] = {}
        self._targets: dict[tuple[str, str], _Target] = {}
        self._errors: deque[tuple[Call, Fault]] = deque(maxlen=_MOST_ERRORS)

    def update(self) -> None:
        """Count the new calls, and forget seconds that no chart shows any more."""
        for call in self._record.take():
            fault = _fault(call)
            seconds = self._seconds.setdefault(call.endpoint, {})
            seconds.setdefault(int(call.ended_at), _Second()).add(call, fault)
            self._targets.setdefault((call.endpoint, call.target), _Target()).add(call, fault)
            if fault is not None:
                self._errors.append((call, fault))
        now = self._clock()
        for seconds in self._seconds.values():
            _forget(seconds, now - HISTORY_SECONDS)
        for target in self._targets.values():
            _forget(target.recent, now - _RECENT_SECONDS)

    def rows(self, endpoint: str, last_seconds: int = HISTORY_SECONDS) -> list[list[float | None]]:
        """Return a row for each second with calls: time, calls,
        errors and the percentiles in ms.
        """
        begin = self._clock() - last_seconds
        seconds = self._seconds.get(endpoint, {})
        return [
            [at, second.calls, second.errors, *_milliseconds(second.latencies)]
            for at, second in sorted(seconds.items())
            if at >= begin
        ]

    def target(self, endpoint: str, target: str) -> dict[str, object]:
        """Return the calls, errors and latencies of one target.

        ``failed`` is the message of its last failure, unless a call succeeded since.
        """
        found = self._targets.get((endpoint, target), _Target())
        latencies: list[float] = []
        for second in found.recent.values():
            latencies += second.latencies
        return {
            **_sums([found]),
            "calls_per_second": _rate(found.recent, self._clock()),
            "milliseconds": _milliseconds(latencies),
            "failed": None if found.failed is None else original_message(found.failed.error),
        }

    def endpoint(self, endpoint: str) -> dict[str, int]:
        """Return the sums of all calls of an endpoint,
        also of those whose target does not exist.
        """
        return _sums([target for (name, _), target in self._targets.items() if name == endpoint])

    def errors(self) -> list[dict[str, object]]:
        """Return the last errors, newest first."""
        return [
            {
                "time": call.ended_at,
                "endpoint": call.endpoint,
                "target": call.target,
                "status": call.status,
                "fault": fault.value,
                "message": original_message(call.error),
            }
            for call, fault in reversed(self._errors)
        ]


def _fault(call: Call) -> Fault | None:
    if call.status < 400:
        return None
    return fault_of(call.status, call.error, is_multi_model=call.is_multi_model)


def _sums(targets: Sequence[_Target]) -> dict[str, int]:
    """Return sums since the start, and of the last minute.

    ``errors`` are also those of wrong requests.
    """
    recent: list[_Second] = []
    for target in targets:
        recent += target.recent.values()

    sums = {}
    for name in ("calls", "errors", "failures"):
        sums[name] = sum(getattr(target, name) for target in targets)
        sums[f"recent_{name}"] = sum(getattr(second, name) for second in recent)
    return sums


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Return the nearest-rank percentile of values in ascending order, which must not be empty."""
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def _milliseconds(latencies: Iterable[float]) -> list[float | None]:
    ordered = sorted(latencies)
    if not ordered:
        return [None] * len(_PERCENTILES)
    return [round(percentile(ordered, share) * 1000, 3) for share in _PERCENTILES]


def _rate(recent: dict[int, _Second], now: float, seconds: int = 5) -> float:
    """Return the calls per second over the last whole seconds."""
    return (
        sum(recent[at].calls for at in range(int(now) - seconds, int(now)) if at in recent)
        / seconds
    )


def _forget(seconds: dict[int, _Second], before: float) -> None:
    for at in [second for second in seconds if second < before]:
        del seconds[at]
