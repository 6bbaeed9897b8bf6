"""HTTP between the gateway and a server: over the Unix socket in the server's folder,
or over TCP.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from fake_container import in_loop, listening

from constructs_triton_tools.local.server.private_address import SOCKET_NAME
from constructs_triton_tools.local.server.server_connection import ServerConnection
from constructs_triton_tools.local.server.unix_http import UnixHTTPConnection

URL = "http://127.0.0.1:8080/ping"


async def answer_in_part(request: web.Request) -> web.StreamResponse:
    """Answers, and keeps the connection in use."""
    response = web.StreamResponse()
    await response.prepare(request)
    await asyncio.sleep(5)
    return response


async def answer(request: web.Request) -> web.Response:
    return web.Response(text=request.path)


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[None]:
    """A server on the socket of this folder, which may have a path of any length."""
    application = web.Application()
    application.router.add_get("/ping", answer)
    application.router.add_get("/ping/unfinished", answer_in_part)
    async with listening(application, folder, SOCKET_NAME):
        yield
    (folder / SOCKET_NAME).unlink()


@pytest.mark.parametrize("name", ["short", "long" * 50])
@in_loop
async def test_the_socket_is_reached_in_a_folder_of_any_path(tmp_path: Path, name: str) -> None:
    """The gateway's session and the blocking connection reach it,
    also after the server's restart.
    """
    folder = tmp_path / name
    folder.mkdir()
    connection = ServerConnection(folder, 5.0)
    for _ in range(2):
        async with serving(folder):
            async with connection.session.get(URL) as response:
                assert await response.text() == "/ping"
            assert await asyncio.to_thread(ping, folder) == b"/ping"
    await connection.close()


@in_loop
async def test_the_send_buffer_is_larger_than_the_default(tmp_path: Path) -> None:
    """A tensor is sent in few steps."""
    connection = ServerConnection(tmp_path, 5.0)
    async with serving(tmp_path), connection.session.get(f"{URL}/unfinished") as response:
        assert send_buffer_bytes(response) > default_buffer_bytes()
    await connection.close()


def send_buffer_bytes(response: aiohttp.ClientResponse) -> int:
    assert response.connection is not None
    assert response.connection.transport is not None
    connection = response.connection.transport.get_extra_info("socket")
    return int(connection.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF))


def default_buffer_bytes() -> int:
    with socket.socket(socket.AF_UNIX) as other:
        return other.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)


def ping(folder: Path) -> bytes:
    connection = UnixHTTPConnection(folder / SOCKET_NAME, timeout=5.0)
    connection.request("GET", "/ping")
    content = connection.getresponse().read()
    connection.close()
    return content


@in_loop
async def test_a_server_that_is_not_there_is_an_error_of_the_client(tmp_path: Path) -> None:
    """No socket, and a socket on which nothing listens: what the gateway turns into a response."""
    connection = ServerConnection(tmp_path, 5.0)
    for _ in range(2):
        with pytest.raises(aiohttp.ClientError):
            await connection.session.get(URL)
        with pytest.raises(OSError, match=r"No such file|refused"):
            ping(tmp_path)
        if not (tmp_path / SOCKET_NAME).exists():
            with socket.socket(socket.AF_UNIX) as unused:
                unused.bind(str(tmp_path / SOCKET_NAME))
    await connection.close()


@in_loop
async def test_closing_releases_the_folder(tmp_path: Path) -> None:
    """No descriptor stays open, and closing twice does no harm."""
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - descriptors, not files
    connection = ServerConnection(tmp_path, 5.0)
    await connection.close()
    await connection.close()
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
