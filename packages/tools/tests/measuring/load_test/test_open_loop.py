"""The open loop, in virtual time: each request is sent when it is due."""

from __future__ import annotations

import asyncio
from random import Random

import pytest
from virtual_time import run

from constructs_triton_tools.measuring.load_test.open_loop import OpenLoop, Send, due_times
from constructs_triton_tools.measuring.load_test.prepared_requests import PreparedRequest
from constructs_triton_tools.measuring.load_test.step import (
    Limits,
    StepResult,
    StepSettings,
    evaluate,
)

LIMITS = Limits(latency_ms=500)


def request(body: bytes = b"", weight: float = 1.0) -> PreparedRequest:
    return PreparedRequest("http://127.0.0.1/endpoints/x/invocations", {}, body, weight=weight)


def measure(
    send: Send, rate: float, *requests: PreparedRequest, limits: Limits = LIMITS, **settings: float
) -> StepResult:
    """Measure one rate for ten virtual seconds, after one that is left out."""
    chosen = StepSettings(**{"seconds": 10, "warm_up_seconds": 1, **settings})  # type: ignore[arg-type]
    loop = OpenLoop(requests or (request(),), send, chosen, cpu_clock=lambda: 0.0)
    return evaluate(rate, chosen, limits, [run(loop.run(rate))])


async def at_once(_: PreparedRequest) -> tuple[int, str]:
    return 200, ""


def server(seconds: float) -> Send:
    async def send(_: PreparedRequest) -> tuple[int, str]:
        await asyncio.sleep(seconds)
        return 200, ""

    return send


def test_requests_are_sent_while_others_are_in_flight() -> None:
    """At 100 per second a server that takes 0.3 s has 30 requests in flight,
    and all are answered.
    """
    result = measure(server(0.3), 100, constant=True)
    assert (result.good, result.errors, result.shed) == (1000, 0, 0)
    assert result.latency_ms == result.p50_ms == result.p99_ms == 300
    assert result.verdict == "held"


def test_stall_of_a_second_is_seen() -> None:
    """A server at 400/s that stops for 1 s shows it in the p99 from the due time;
    no request is lost.
    """
    free = 0.0

    async def send(_: PreparedRequest) -> tuple[int, str]:
        nonlocal free
        now = asyncio.get_running_loop().time()
        free = max(now, free, 6.0 if now >= 5.0 else 0.0) + 0.0005
        await asyncio.sleep(free - now)
        return 200, ""

    result = measure(send, 400, max_in_flight=1000)
    assert result.p99_ms is not None
    assert result.p99_ms >= 900
    assert result.good == result.requests
    assert result.p50_ms < 5


def test_requests_above_the_limit_in_flight_are_counted() -> None:
    """What cannot be sent is reported as not sent, not as a slow request."""
    result = measure(server(2.0), 100, constant=True, max_in_flight=50)
    assert result.shed > 0
    assert result.good + result.shed == result.requests == 1000
    assert result.verdict == "not held"
    assert "not sent, too many in flight" in result.reason


def test_lateness_of_the_generator_counts_as_latency() -> None:
    """A request that is sent late has a latency from when it was due, and the step is void."""

    async def send(_: PreparedRequest) -> tuple[int, str]:
        loop = asyncio.get_running_loop()
        loop._selector.now += 0.02  # type: ignore[attr-defined]  # the generator itself works for 20 ms
        return 200, ""

    result = measure(send, 100, constant=True, limits=Limits(latency_ms=100))
    assert result.latency_ms > 1000
    assert result.service_ms < 100
    assert result.verdict == "void"
    assert "the generator was" in result.reason


def test_warm_up_is_left_out() -> None:
    """Slow first requests are not part of the result."""

    async def send(_: PreparedRequest) -> tuple[int, str]:
        await asyncio.sleep(0.5 if asyncio.get_running_loop().time() < 1 else 0.001)
        return 200, ""

    assert measure(send, 50, constant=True).latency_ms < 2


def test_mix_follows_the_weights() -> None:
    """A request with the weight 3 is sent three times as often as one with the weight 1."""
    sent: list[bytes] = []

    async def send(chosen: PreparedRequest) -> tuple[int, str]:
        sent.append(chosen.body)
        return 200, ""

    measure(send, 400, request(b"a", 3), request(b"b", 1))
    assert 2.5 < sent.count(b"a") / sent.count(b"b") < 3.5


def test_errors_are_counted_by_status() -> None:
    """A failed request has no latency, and the first message is kept."""
    answers = iter([(424, "424 out of memory"), (0, "ClientError: reset"), *[(200, "")] * 10_000])

    async def send(_: PreparedRequest) -> tuple[int, str]:
        return next(answers)

    result = measure(send, 100, warm_up_seconds=0)
    assert result.statuses == {424: 1, 0: 1}
    assert result.first_error == "424 out of memory"
    assert (result.verdict, result.reason) == ("not held", "2 errors")


def test_same_seed_has_the_same_arrivals() -> None:
    """Random arrivals have the planned rate, and depend on the seed alone."""
    first, again, other = (list(due_times(100, 60, Random(seed))) for seed in (1, 1, 2))
    assert first == again != other
    assert first == sorted(first)
    assert len(first) == pytest.approx(6000, rel=0.05)
    assert list(due_times(4, 1.1, Random(0), constant=True)) == [0.25, 0.5, 0.75, 1.0]


def test_live_figures_follow_the_step() -> None:
    """What a progress display shows is what was answered so far."""
    loop = OpenLoop(
        [request()], server(0.2), StepSettings(seconds=2, warm_up_seconds=0, constant=True)
    )
    assert loop.live.percentile_ms(95) == 0
    run(loop.run(10))
    assert (loop.live.sent, loop.live.errors) == (19, 0) or loop.live.sent == 20
    assert loop.live.percentile_ms(50) == pytest.approx(200)


def test_decided_step_ends_early() -> None:
    """A step ends when its samples decide it, and its seconds are those that were measured."""
    decided = StepSettings(seconds=10, warm_up_seconds=1)
    loop = OpenLoop(
        [request()],
        at_once,
        decided,
        is_decided=lambda recording: len(recording.samples) >= 50,
        cpu_clock=lambda: 0.0,
    )
    result = evaluate(100, decided, LIMITS, [run(loop.run(100))])
    assert result.good == 50
    assert 0.2 < result.seconds < 1.5
