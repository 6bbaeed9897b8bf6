"""The HTTP session between the gateway and a container."""

from __future__ import annotations

import aiohttp

__all__ = ["READ_BUFFER_BYTES", "open_session"]

#: Reading pauses above this. The default of 64 KiB pauses a tensor's body many times.
READ_BUFFER_BYTES = 4 * 2**20


def open_session(connector: aiohttp.BaseConnector, timeout_seconds: float) -> aiohttp.ClientSession:
    """Return a session that passes bodies on unchanged."""
    return aiohttp.ClientSession(
        connector=connector,
        timeout=aiohttp.ClientTimeout(total=timeout_seconds),
        auto_decompress=False,
        read_bufsize=READ_BUFFER_BYTES,
        headers={"Accept-Encoding": "identity"},
    )
