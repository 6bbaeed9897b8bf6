"""Durations of the CDK, each created and read once."""

from __future__ import annotations

from functools import cache
from weakref import WeakKeyDictionary

from aws_cdk import Duration

_milliseconds: WeakKeyDictionary[Duration, float | None] = WeakKeyDictionary()


@cache
def duration_of(seconds: int) -> Duration:
    """Return a duration."""
    duration = Duration.seconds(seconds) if seconds % 60 else Duration.minutes(seconds // 60)
    _milliseconds[duration] = seconds * 1000
    return duration


def milliseconds_of(duration: Duration) -> float | None:
    """Return a duration in milliseconds; ``None`` if it is known only at deployment."""
    if duration not in _milliseconds:
        is_known = not duration.is_unresolved()
        _milliseconds[duration] = float(duration.to_milliseconds()) if is_known else None
    return _milliseconds[duration]
