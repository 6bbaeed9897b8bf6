"""Callers that send or read slowly, or never go on, keep the gateway from no other caller."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from fake_container import connected, endpoint_of, fake_server, in_loop, running_server
from test_local_gateway import CONTAINER, INVOCATIONS, STREAM

from constructs_triton_tools.local.gateway.gateway import gateway_application
from constructs_triton_tools.local.gateway.gateway_port import listen
from constructs_triton_tools.local.gateway.listener import serving

POST = f"POST {INVOCATIONS} HTTP/1.1\r\nHost: localhost\r\n"
ASKS = "Content-Length: 4\r\n\r\nmany"
#: What a caller sends before it stops, and the number of these callers. The gateway holds up to
#: 8 MiB of each response that is not read.
SLOW = {
    "no request": ("", 200),
    "headers without an end": (f"{POST}A: b\r\n", 200),
    "a small body without an end": (f"{POST}Content-Length: 1000\r\n\r\nx", 200),
    "a large body without an end": (f"{POST}Content-Length: {2**20}\r\n\r\nx", 200),
    "chunks without an end": (f"{POST}Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n", 200),
    "a response that is not read": (POST + ASKS, 5),
    "a stream that is not read": (POST.replace(INVOCATIONS, STREAM) + ASKS, 5),
}


class Container:
    """Answers "many" with more than the buffers before a reader hold, and others with their body.

    ``left`` counts the callers whose connections ended before they had the whole response.
    """

    def __init__(self) -> None:
        self.left = asyncio.Semaphore(0)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        if body != b"many":
            return web.Response(body=body)
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            for _ in range(64):
                await response.write(bytes(2**20))
        finally:
            self.left.release()
        return response


@asynccontextmanager
async def running(
    folder: Path, container: Container, timeout_seconds: float = 60.0
) -> AsyncIterator[tuple[str, int]]:
    """Serve an endpoint at the address that is returned."""
    server = fake_server(folder, timeout_seconds=timeout_seconds)
    async with running_server(container.answer) as port, connected(server, port):
        with listen(0) as listener:
            application = gateway_application({"e": endpoint_of(server, CONTAINER)})
            async with serving(application, listener, lambda _: None):
                yield listener.getsockname()


@asynccontextmanager
async def stopped_callers(address: tuple[str, int], text: str, count: int) -> AsyncIterator[None]:
    """Callers that send a text, and then neither send nor read any more."""
    connections = [await asyncio.open_connection(*address, limit=1) for _ in range(count)]
    for _, writer in connections:
        writer.write(text.encode())
    try:
        yield
    finally:
        for _, writer in connections:
            writer.transport.abort()


@pytest.mark.parametrize(("text", "count"), SLOW.values(), ids=SLOW)
@in_loop
async def test_slow_callers_do_not_stop_others(tmp_path: Path, text: str, count: int) -> None:
    """While these callers wait for nothing, another one gets its response."""
    async with (
        running(tmp_path, Container()) as (host, port),
        stopped_callers((host, port), text, count),
        aiohttp.ClientSession() as session,
        session.post(f"http://{host}:{port}{INVOCATIONS}", data=b"other") as response,
    ):
        assert await response.read() == b"other"


@pytest.mark.parametrize("path", [INVOCATIONS, STREAM])
@in_loop
async def test_caller_that_does_not_read_is_disconnected(tmp_path: Path, path: str) -> None:
    """After the time that a response may take, the container has none of these callers left."""
    container = Container()
    text = POST.replace(INVOCATIONS, path) + ASKS
    async with (
        running(tmp_path, container, timeout_seconds=0.1) as address,
        stopped_callers(address, text, 3),
    ):
        for _ in range(3):
            await container.left.acquire()
