"""The web server of the gateway."""

from __future__ import annotations

import logging
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from constructs_triton_core.visible_text import visible
from constructs_triton_tools.local.http_session import READ_BUFFER_BYTES


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
