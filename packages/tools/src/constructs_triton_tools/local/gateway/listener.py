"""The socket of the gateway, and its web server."""

from __future__ import annotations

import logging
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from constructs_triton_core.errors import LocalEndpointError
from constructs_triton_core.visible_text import visible
from constructs_triton_tools.local.http_session import READ_BUFFER_BYTES

HOST = "127.0.0.1"


@contextmanager
def listen(port: int) -> Iterator[socket.socket]:
    """Give a socket that listens on a port of this machine; 0 means any free port."""
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


_LONGEST_REASON = 200


def request_logger(report: Callable[[str], None]) -> logging.Logger:
    """Return a logger for aiohttp's server that passes each line to ``report``."""
    logger = logging.Logger("constructs_triton_tools.local.gateway", logging.WARNING)
    logger.addHandler(_Reports(report))
    return logger


class _Reports(logging.Handler):
    def __init__(self, report: Callable[[str], None]) -> None:
        super().__init__()
        self._report = report

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, HttpProcessingError):
            # The parser's message quotes the request, with a caret below the place.
            reason = visible(" ".join(error.message.rstrip(" ^\n").split()))[:_LONGEST_REASON]
            self._report(f"a malformed request was refused ({type(error).__name__}): {reason}")
        elif isinstance(error, ConnectionError):
            self._report("a caller closed the connection before its request was complete")
        else:
            for line in self.format(record).splitlines():
                self._report(line)
