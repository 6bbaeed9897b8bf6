"""The socket of the gateway, and its web server."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from aiohttp import web

from constructs_triton_core.errors import LocalEndpointError
from constructs_triton_tools.local.gateway.request_log import request_logger
from constructs_triton_tools.local.http_session import READ_BUFFER_BYTES

__all__ = ["HOST", "listen", "serving"]

HOST = "127.0.0.1"


@contextmanager
def listen(port: int) -> Iterator[socket.socket]:
    """Give a socket that listens on a port of this machine; 0 means any free port.

    Raises:
        LocalEndpointError: another program has the port.
    """
    listener = socket.socket()
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
            listener.listen()  # two runs could both bind a port, but only one can listen
        except OSError as error:
            raise LocalEndpointError(
                f"--port: cannot listen on {HOST}, got {port} ({error.strerror}); "
                "set --port to a free port, or to 0 for any free port"
            ) from error
        yield listener
    finally:
        listener.close()


@asynccontextmanager
async def serving(
    application: web.Application, listener: socket.socket, report: Callable[[str], None]
) -> AsyncIterator[None]:
    """Serve the application on the socket, and report requests that aiohttp refuses."""
    # SageMaker does not look into bodies, so a compressed one reaches the container as it is.
    runner = web.AppRunner(
        application,
        access_log=None,
        logger=request_logger(report),
        read_bufsize=READ_BUFFER_BYTES,
        auto_decompress=False,
        shutdown_timeout=1.0,
    )
    await runner.setup()
    try:
        await web.SockSite(runner, listener).start()
        yield
    finally:
        await runner.cleanup()
