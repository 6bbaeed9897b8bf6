"""The figures of streams, in virtual time: every time is known by construction."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from virtual_time import run

from constructs_triton_tools.measuring.load_test.open_loop import NoteEvent, OpenLoop, SendStream
from constructs_triton_tools.measuring.load_test.prepared_requests import PreparedRequest
from constructs_triton_tools.measuring.load_test.step import (
    Limits,
    StepResult,
    StepSettings,
    evaluate,
)
from constructs_triton_tools.measuring.load_test.stream_figures import StreamFigures, StreamLimits

REQUEST = PreparedRequest("http://127.0.0.1/invocations", {}, b"")
#: 0.3 s to the first token, and 0.05 s to each of the four further events, of two tokens each.
FIRST, GAP, EVENTS = 0.3, 0.05, 5


def server(
    *, tokens: int | None = 2, first: float = FIRST, fail_at: int = -1, status: int = 200
) -> SendStream:
    """A server of streams; with ``fail_at``, an error takes the place of that event."""

    async def stream(_: PreparedRequest, note: NoteEvent) -> tuple[int, str]:
        if status != 200:
            return status, f"{status} refused"
        for number in range(EVENTS):
            await asyncio.sleep(GAP if number else first)
            if number == fail_at:
                return 200, f"event {number}: the model failed"
            note(asyncio.get_running_loop().time(), tokens, None)
        return 200, ""

    return stream


async def never(_: PreparedRequest) -> tuple[int, str]:
    raise AssertionError


def measure(
    stream: SendStream, load: float, limits: StreamLimits | None = None, **given: Any
) -> StepResult:
    """Measure ten virtual seconds, after one that is left out."""
    settings = StepSettings(**{"seconds": 10, "warm_up_seconds": 1, "constant": True, **given})
    stream_limits = limits or StreamLimits()
    chosen = Limits(latency_ms=stream_limits.latency_ms, stream=stream_limits)
    loop = OpenLoop([REQUEST], never, settings, stream=stream, cpu_clock=lambda: 0.0)
    return evaluate(load, settings, chosen, [run(loop.run(load))])


def figures(result: StepResult) -> StreamFigures:
    assert result.stream is not None
    return result.stream


def test_figures_of_aiperf() -> None:
    """First token 300 ms, second 50 ms later, 200 ms for the 8 tokens after the
    first event: 25 ms each.
    """
    found = figures(measure(server(), 4))
    assert (found.unit, found.first_token_ms, found.second_token_ms) == ("tokens", 300, 50)
    assert found.between_tokens_ms == found.between_tokens_p50_ms == 25
    assert found.tokens_per_second == pytest.approx(4 * 10, rel=0.03)
    assert found.tokens_per_second_per_user == pytest.approx(40)
    assert found.concurrency == pytest.approx(4 * 0.5)


def test_events_are_counted_without_numbers_of_tokens() -> None:
    """Where a response has no num_output_tokens, each event counts, and the result says so."""
    found = figures(measure(server(tokens=None), 4))
    assert (found.unit, found.between_tokens_ms) == ("events", 50)
    assert found.tokens_per_second == pytest.approx(4 * 5, rel=0.03)


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (StreamLimits(first_token_ms=300, between_tokens_ms=25), ""),
        (StreamLimits(first_token_ms=299), "p95 first token 300 ms"),
        (StreamLimits(between_tokens_ms=24), "p95 between tokens 25 ms"),
        (StreamLimits(latency_ms=499), "p95 500 ms"),
    ],
)
def test_goodput_counts_what_meets_every_limit(limits: StreamLimits, reason: str) -> None:
    """A step that misses a limit names it, and its goodput is zero."""
    result = measure(server(), 4, limits)
    assert (result.verdict, result.reason) == ("not held" if reason else "held", reason)
    assert figures(result).goodput_per_second == (0 if reason else result.good_per_second)


def test_number_of_open_streams_is_kept() -> None:
    """Three streams of 0.5 s at a time are six per second,
    and each is due when the one before it ended.
    """
    result = measure(server(), 3, by_concurrency=True)
    assert result.good_per_second == pytest.approx(6, rel=0.06)
    assert figures(result).tokens_per_second == pytest.approx(60, rel=0.03)
    assert figures(result).concurrency == 3
    assert (result.to_dict()["concurrency"], result.to_dict()["rate"]) == (3, None)


@pytest.mark.parametrize(("load", "by_concurrency"), [(4, False), (2, True)])
def test_requests_end_a_step(load: float, by_concurrency: bool) -> None:
    """A step ends when the next request would be one too many,
    and its seconds are those until then.
    """
    result = measure(server(), load, most_requests=8, by_concurrency=by_concurrency)
    assert (result.requests, result.good, result.seconds) == (8, 8, 2)
    assert result.good_per_second == 4


def test_errors_within_streams_are_failures() -> None:
    """They have status 200 and a message, count as errors, and are not in the figures."""
    result = measure(server(fail_at=2), 4)
    assert (result.good, result.errors, result.statuses) == (0, 40, {200: 40})
    assert result.first_error == "event 2: the model failed"
    assert (figures(result).first_token_ms, figures(result).goodput_per_second) == (0, 0)


def test_endpoint_that_refuses_is_not_flooded() -> None:
    """Each of two callers waits 0.1 s after an error, although the refusal takes no time."""
    assert measure(server(status=429), 2, by_concurrency=True).requests <= 2 * 101


def test_open_streams_are_closed_after_the_grace() -> None:
    """They count with what arrived: a first token, and the wait for one that is over the limit."""
    cancelled = 0

    async def stalls(request: PreparedRequest, note: NoteEvent) -> tuple[int, str]:
        nonlocal cancelled
        try:
            note(asyncio.get_running_loop().time() + 0.2, 1, None)
            return await server(first=1000)(request, note)
        except asyncio.CancelledError:
            cancelled += 1
            raise

    settings = {"by_concurrency": True, "grace_seconds": 3, "warm_up_seconds": 0}
    result = measure(stalls, 2, StreamLimits(first_token_ms=500), **settings)
    assert (cancelled, result.errors, result.good) == (2, 0, 0)
    assert (figures(result).closed, figures(result).first_token_ms) == (2, 200)
    slow = measure(server(first=1000), 2, StreamLimits(first_token_ms=500), **settings)
    assert (figures(slow).first_token_ms, slow.verdict) == (13_000, "not held")


def test_cancelled_run_closes_its_streams() -> None:
    """Ctrl-C cancels the run: no stream stays open, at any time of the step."""
    open_streams = 0

    async def stream(request: PreparedRequest, note: NoteEvent) -> tuple[int, str]:
        nonlocal open_streams
        open_streams += 1
        try:
            return await server(first=100)(request, note)
        finally:
            open_streams -= 1

    async def interrupt(after: float, *, by_concurrency: bool) -> int:
        settings = StepSettings(seconds=10, warm_up_seconds=0, by_concurrency=by_concurrency)
        task = asyncio.create_task(OpenLoop([REQUEST], never, settings, stream=stream).run(5))
        await asyncio.sleep(after)
        before = open_streams
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
        return before

    for after in (5.0, 20.0):
        for by_concurrency in (False, True):
            assert run(interrupt(after, by_concurrency=by_concurrency)) >= 5
            assert open_streams == 0


def test_event_without_tokens_is_no_token() -> None:
    """A last event that only ends the text changes neither the times nor the counts."""

    async def ends(request: PreparedRequest, note: NoteEvent) -> tuple[int, str]:
        answer = await server(tokens=1)(request, note)
        await asyncio.sleep(0.5)
        note(asyncio.get_running_loop().time(), 0, None)
        return answer

    found = figures(measure(ends, 4))
    assert (found.unit, found.between_tokens_ms) == ("tokens", 50)


def test_streams_of_one_token_have_no_time_between() -> None:
    """Without a second event there is nothing to divide; the limit between tokens is met."""

    async def once(_: PreparedRequest, note: NoteEvent) -> tuple[int, str]:
        note(asyncio.get_running_loop().time(), 1, None)
        return 200, ""

    result = measure(once, 4, StreamLimits(between_tokens_ms=1))
    assert result.verdict == "held"
    assert (figures(result).between_tokens_ms, figures(result).tokens_per_second_per_user) == (0, 0)


def test_late_generator_makes_a_missed_first_token_void() -> None:
    """What the generator delays is not the endpoint's."""

    async def busy(_: PreparedRequest, note: NoteEvent) -> tuple[int, str]:
        loop = asyncio.get_running_loop()
        loop._selector.now += 0.02  # type: ignore[attr-defined]  # the generator itself works for 20 ms
        note(loop.time(), 1, None)
        return 200, ""

    result = measure(busy, 100, StreamLimits(first_token_ms=100))
    assert (result.verdict, figures(result).first_token_ms > 1000) == ("void", True)


def usage_server(totals: list[int | None]) -> SendStream:
    """A server of five events without numbers of their own, then one without text;
    each may have a total.
    """

    async def stream(_: PreparedRequest, note: NoteEvent) -> tuple[int, str]:
        clock = asyncio.get_running_loop().time
        note(clock(), 0, None)
        for number, total in enumerate(totals):
            await asyncio.sleep(GAP if number else 0.3)
            note(clock(), None if number < 5 else 0, total)
        return 200, ""

    return stream


@pytest.mark.parametrize(
    ("totals", "between"),
    [
        (
            [None] * 5 + [9],
            25,
        ),  # 4 x 50 ms for 8 tokens: the first event has one, as far as is known
        ([2, 4, 6, 8, 10, 10], 25),  # 4 x 50 ms for the 8 tokens after the first two
        ([None] * 5 + [21], 10),
    ],
)
def test_tokens_are_those_of_the_usage(totals: list[int | None], between: float) -> None:
    """The total of a stream is spread over its events; the role and the usage are no tokens."""
    found = figures(measure(usage_server(totals), 4))
    assert (found.unit, found.first_token_ms, found.second_token_ms) == ("tokens", 300, 50)
    assert found.between_tokens_ms == between
    assert found.tokens_per_second == pytest.approx(4 * (totals[-1] or 0), rel=0.03)


def test_one_stream_without_usage_makes_all_figures_of_events() -> None:
    """Numbers of tokens and of events are never added."""
    servers = [usage_server([None] * 5 + [9]), usage_server([None] * 6)]

    async def both(request: PreparedRequest, note: NoteEvent) -> tuple[int, str]:
        servers.reverse()
        return await servers[0](request, note)

    assert (figures(measure(both, 4)).unit, figures(measure(both, 4)).between_tokens_ms) == (
        "events",
        50,
    )


def test_closed_streams_count_their_events() -> None:
    """The usage of a stream that the step closes does not arrive;
    the unit is that of the others.
    """
    calls = 0

    async def last_stalls(request: PreparedRequest, note: NoteEvent) -> tuple[int, str]:
        nonlocal calls
        calls += 1
        answer = await usage_server([None] * 5 + [9])(
            request, note if calls < 8 else lambda *_: None
        )
        if calls == 8:
            note(asyncio.get_running_loop().time(), None, None)
            await asyncio.sleep(1000)
        return answer

    settings: dict[str, Any] = {"by_concurrency": True, "grace_seconds": 1, "warm_up_seconds": 0}
    settings["most_requests"] = 8
    found = figures(measure(last_stalls, 1, **settings))
    assert (found.unit, found.closed, found.between_tokens_ms) == ("tokens", 1, 25)
    calls = 7
    only_closed = figures(measure(last_stalls, 1, **settings))
    assert (only_closed.unit, only_closed.closed) == ("events", 1)
