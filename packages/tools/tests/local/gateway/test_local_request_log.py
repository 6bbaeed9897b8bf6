"""What a local run prints about requests that its gateway cannot read."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from fake_container import connected, endpoint_of, fake_server, in_loop, running_server
from test_local_gateway import CONTAINER, INVOCATIONS, echo

from constructs_triton_tools.local.gateway.gateway import gateway_application
from constructs_triton_tools.local.gateway.gateway_port import listen
from constructs_triton_tools.local.gateway.listener import serving
from constructs_triton_tools.local.gateway.running_endpoint import RunningEndpoint

HEAD = f"POST {INVOCATIONS} HTTP/1.1\r\nHost: localhost\r\n".encode()
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


@asynccontextmanager
async def running(folder: Path, lines: list[str]) -> AsyncIterator[int]:
    """Serve an endpoint on the port that is returned, and collect what the gateway reports."""
    server = fake_server(folder)
    async with running_server(echo) as port, connected(server, port):
        endpoint = endpoint_of(server, CONTAINER)
        with listen(0) as listener:
            async with serving(gateway_application({"e": endpoint}), listener, lines.append):
                yield listener.getsockname()[1]


async def send(port: int, request: bytes, *, is_cut: bool = True) -> bytes:
    """Send bytes, end the sending side if ``is_cut``, and return the answer."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    if is_cut:
        writer.write_eof()
    answer = await reader.read()
    writer.close()
    return answer


@pytest.mark.parametrize(
    ("request_bytes", "line"),
    [
        (
            b"GET /ping HTTP/1.1\r\nHost: localhost:8080\n\r\n\r\n",
            "(BadHttpMessage): Missing expected CR after header value: b'Host: localhost:8080\\n'",
        ),
        (
            b"GET / HTTP/9.9\r\n\r\n",
            "(BadStatusLine): Bad status line: Invalid HTTP version: b'GET / HTTP/9",
        ),
        (
            b"GET / HTTP/1.1\r\nA: \x1b]0;\x07\r\n\r\n",
            r"Invalid header value char: b'A: \x1b]0;\x07'",
        ),
        (b"GET http://[ HTTP/1.1\r\nHost: localhost\r\n\r\n", "(InvalidURLError): http://["),
        (
            HEAD + b"Content-Length: -5\r\n\r\n",
            "Invalid character in Content-Length: b'Content-Length: -5'",
        ),
        (HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n", "Duplicate Content-Length"),
        (
            b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n\r\n",
            "(LineTooLong): Got more than 8190 bytes",
        ),
        (CHUNKED + b"zz\r\n", "Invalid character in chunk size: b'zz'"),
        (CHUNKED + b"-1\r\n", "Invalid character in chunk size: b'-1'"),
        (CHUNKED + b"5\r\nab", "a caller closed the connection before its request was complete"),
    ],
    ids=range(10),
)
@in_loop
async def test_a_malformed_request_is_one_line(
    tmp_path: Path, request_bytes: bytes, line: str
) -> None:
    """The line quotes the place without its control characters, and has no traceback."""
    lines: list[str] = []
    async with running(tmp_path, lines) as port:
        await send(port, request_bytes)
    assert lines
    assert all(line in each and each.isprintable() and len(each) < 300 for each in lines)


@in_loop
async def test_other_protocols_are_not_reported(tmp_path: Path) -> None:
    """A request of TLS, such as that of a browser, is refused and not reported."""
    lines: list[str] = []
    async with running(tmp_path, lines) as port:
        await send(port, b"\x16\x03\x01\x02\x00\x01")
    assert lines == []


@in_loop
async def test_an_error_of_the_gateway_is_reported_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error that is the gateway's own keeps its traceback."""

    def fail(*_: object) -> object:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(RunningEndpoint, "choose", fail)
    lines: list[str] = []
    async with running(tmp_path, lines) as port:
        request = HEAD + b"Connection: close\r\nContent-Length: 0\r\n\r\n"
        answer = await send(port, request, is_cut=False)
    assert answer.startswith(b"HTTP/1.1 500 ")
    assert lines[1].startswith("Traceback")
    assert lines[-1] == "ZeroDivisionError: a bug"
