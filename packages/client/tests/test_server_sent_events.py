"""Server-sent events from bytes that are cut anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
from cpu_limit import cpu_limit

from constructs_triton_client import server_sent_events
from constructs_triton_client.server_sent_events import EventReader
from constructs_triton_core.errors import ResponseDecodingError

STREAM = (
    b': a comment\n\ndata: {"text":"gr\xc3\xbc\xc3\x9f"}\r\n\r\n'
    b'data: {"a":\r\ndata:  1}\n\nevent: x\rdata:no space\r\r'
)
EVENTS = ['{"text":"grüß"}', '{"a":\n 1}', "no space"]


def iterate_events(parts: Iterable[bytes]) -> Iterator[str]:
    """Yield the data of each event as soon as the event is complete."""
    reader = EventReader()
    for part in parts:
        yield from reader.feed(part)
    yield from reader.finish()


def test_stream_cut_at_every_byte_has_the_same_events() -> None:
    """Events are the same whether the stream arrives in two parts or in parts of any size."""
    cuts = [[STREAM[:at], STREAM[at:]] for at in range(len(STREAM) + 1)]
    cuts += [[STREAM[i : i + n] for i in range(0, len(STREAM), n)] for n in range(1, 9)]
    for parts in cuts:
        assert list(iterate_events(parts)) == EVENTS


def test_large_event_in_small_parts_is_read_in_linear_time() -> None:
    """Each byte is searched once, however small the parts are."""
    event = b"data: " + b"x" * (4 << 20) + b"\n\n"
    with cpu_limit():
        (found,) = iterate_events(event[at : at + 256] for at in range(0, len(event), 256))
        assert len(found) == 4 << 20


@pytest.mark.parametrize("line", [b"data: 12345\n", b"data:\n"])
def test_size_of_an_event_of_many_lines_is_bounded(
    monkeypatch: pytest.MonkeyPatch, line: bytes
) -> None:
    """The bound is for the event, not for one of its lines."""
    monkeypatch.setattr(server_sent_events, "MAXIMUM_EVENT_BYTES", 1000)
    with pytest.raises(ResponseDecodingError, match="an event may have at most 1000 bytes"):
        list(iterate_events(line for _ in range(2000)))
    assert len(list(iterate_events(line + b"\n" for _ in range(2000)))) == 2000


def test_event_is_yielded_as_soon_as_it_is_complete() -> None:
    """An event does not wait for the part after it."""
    arrived = []

    def parts() -> object:
        for part in (b"data: 1\n\nda", b"ta: 2\n\n"):
            arrived.append(part)
            yield part

    events = iterate_events(parts())  # type: ignore[arg-type]  # an iterator of bytes
    assert (next(events), len(arrived)) == ("1", 1)
    assert (next(events), len(arrived)) == ("2", 2)


@pytest.mark.parametrize(
    "stream", [b"", b"\n\n\n", b": comment\n\n", b"event: x\n\n", b"data\n\n", b"\r"]
)
def test_stream_without_data_has_no_events(stream: bytes) -> None:
    """Comments, other fields and empty lines are not events."""
    assert list(iterate_events([stream])) == []


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        (
            b'data: {"a":1}',
            r"the last event is incomplete, got b'{\"a\":1}'; the stream was cut off",
        ),
        (b"data: 1\n\ndata: 2\n", "the last event is incomplete, got b'2'"),
        (b"data: 1\r", "the last event is incomplete, got b'1'"),
        (b"data: a\xff\n\n", "must be valid UTF-8, got 0xff at its byte 1"),
    ],
)
def test_malformed_stream_is_an_error(stream: bytes, message: str) -> None:
    """An incomplete event and invalid UTF-8 are errors."""
    with pytest.raises(ResponseDecodingError, match=message):
        list(iterate_events([stream]))


@pytest.mark.parametrize(
    ("parts", "events"),
    [
        ([b"data:" + b"x" * 8 + b"\n\n"], ["x" * 8]),
        ([b"data:" + b"x" * 9 + b"\n\n"], None),
        ([b"data:xxxx\ndata:xxxx\n\n", b"data:xxxx\n\n"], ["xxxx\nxxxx", "xxxx"]),
        ([b"data:xxxx\n", b"data:xxxxx\n\n"], None),
        ([b"123456789"], None),
        ([b":2345678"], []),
        ([b"1234", b"56789"], None),
    ],
)
def test_events_have_a_maximum_size(
    monkeypatch: pytest.MonkeyPatch, parts: list[bytes], events: list[str] | None
) -> None:
    """An event of more than the maximum is an error, in one line or several,
    before its end arrives.
    """
    monkeypatch.setattr(server_sent_events, "MAXIMUM_EVENT_BYTES", 8)
    if events is None:
        with pytest.raises(
            ResponseDecodingError, match="at most 8 bytes, got 9 or more; check that the"
        ):
            list(iterate_events(parts))
    else:
        assert list(iterate_events(parts)) == events


@pytest.mark.parametrize("part", [b"", b": c\n\n", b"event: x\n\n", b"\n"])
def test_an_event_must_come(monkeypatch: pytest.MonkeyPatch, part: bytes) -> None:
    """Comments and empty parts without an end stop at a bound, which each event lifts again."""
    monkeypatch.setattr(
        server_sent_events, "MAXIMUM_BYTES_BETWEEN_EVENTS", 10 * 256 + 10 * len(part) + 270
    )
    quiet = [part] * 10 + [b"data: 1\n\n"]
    assert list(iterate_events(quiet * 5)) == ["1"] * 5
    with pytest.raises(
        ResponseDecodingError, match="too many comments and empty parts without an event; ch"
    ):
        list(iterate_events(quiet + [part] * 12))


def test_maximum_size() -> None:
    """An event may have 64 MiB, and twice as much may arrive before it."""
    assert server_sent_events.MAXIMUM_EVENT_BYTES == 64 * 2**20
    assert server_sent_events.MAXIMUM_BYTES_BETWEEN_EVENTS == 128 * 2**20
