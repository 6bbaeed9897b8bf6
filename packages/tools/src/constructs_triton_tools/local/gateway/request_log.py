"""Reports what aiohttp's server logs: a malformed request in one line, an error of the gateway in full."""

from __future__ import annotations

import logging
from collections.abc import Callable

from aiohttp.http_exceptions import HttpProcessingError

from constructs_triton_core.visible_text import visible

__all__ = ["request_logger"]

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
