"""When a step of a search ends early."""

from __future__ import annotations

import pytest

from constructs_triton_tools.measuring.load_test.samples import OK, Recording, Sample
from constructs_triton_tools.measuring.load_test.step import Limits
from constructs_triton_tools.measuring.tuning.bench import MissDetector

LIMITS = Limits(latency_ms=100)


def record(fast: int, slow: int, failed: int = 0, shed: int = 0) -> Recording:
    latencies = [0.05] * fast + [0.2] * slow
    samples = [Sample(0.0, latency, OK) for latency in latencies] + [
        Sample(0.0, 0.01, 500)
    ] * failed
    return Recording(samples=samples, shed=shed)


@pytest.mark.parametrize(
    ("recording", "is_decided"),
    [
        (record(50, 0), False),
        (record(500, 0), False),
        (record(47, 3), False),
        (record(30, 20), True),
        (record(30, 0, failed=20), True),
        (record(20, 20), False),
        (record(1, 0, shed=1), True),
    ],
    ids=["fast", "fast and many", "near the limit", "slow", "errors", "too few", "not sent"],
)
def test_step_ends_when_a_miss_is_certain(recording: Recording, *, is_decided: bool) -> None:
    """A step ends early only for a miss: after 50 requests if too many are slow,
    or if one was not sent.
    """
    assert MissDetector(LIMITS)(recording) is is_decided
