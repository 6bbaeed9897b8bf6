"""The HTTP session between the gateway and a container."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

import aiohttp

from constructs_triton_core.errors import LocalEndpointError
from constructs_triton_tools.local.model_statistics import (
    ModelStatistics,
    decode_statistics,
    statistics_paths,
)

#: Reading pauses above this. The default of 64 KiB pauses a tensor's body many times.
READ_BUFFER_BYTES = 4 * 2**20
#: Statistics of a model have a few kilobytes, and its entry of the index about 100 bytes.
_MAXIMUM_STATISTICS_BYTES = 4 * 2**20
#: Of all models of a server.
_MAXIMUM_ALL_STATISTICS_BYTES = 64 * 2**20
_STATISTICS_TIMEOUT = aiohttp.ClientTimeout(total=15.0)
_INDEX_PATH = "repository/index"
_PING_INTERVAL_SECONDS = 0.02
_PING_TIMEOUT = aiohttp.ClientTimeout(total=2.0)


def open_session(connector: aiohttp.BaseConnector, timeout_seconds: float) -> aiohttp.ClientSession:
    """Return a session that passes bodies on unchanged,
    and keeps nothing of one request for the next.
    """
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=timeout_seconds),
        auto_decompress=False,
        read_bufsize=READ_BUFFER_BYTES,
        headers={"Accept-Encoding": "identity"},
    )


async def wait_for_ping(
    session: aiohttp.ClientSession, url: str, check: Callable[[], None]
) -> None:
    """Wait until ``/ping`` answers 200.

    ``check`` runs after each failure and may raise an error.
    """
    while True:
        with contextlib.suppress(aiohttp.ClientError, TimeoutError):
            async with session.get(f"{url}/ping", timeout=_PING_TIMEOUT) as response:
                if response.status == 200:
                    return
        check()
        await asyncio.sleep(_PING_INTERVAL_SECONDS)


async def read_statistics(session: aiohttp.ClientSession, url: str) -> tuple[ModelStatistics, ...]:
    """Return what a server has counted of each model. ``url`` ends with ``/v2``, of its HTTP front
    end.

    A model is left out if two archives of a multi-model container have models of its name.
    """
    # Each model is asked for by itself: with --model-namespacing, which SageMaker's start script
    # sets, models/stats is an error, because the server does not find a model whose name has its
    # namespace.
    index = await _ask(session, "POST", f"{url}/{_INDEX_PATH}", _MAXIMUM_STATISTICS_BYTES)
    answers = list[bytes]()
    left = _MAXIMUM_ALL_STATISTICS_BYTES
    for path in statistics_paths(index):
        limit = min(left, _MAXIMUM_STATISTICS_BYTES)
        answers.append(await _ask(session, "GET", f"{url}/{path}", limit))
        left -= len(answers[-1])
        if left <= 0:
            most = _MAXIMUM_ALL_STATISTICS_BYTES >> 20
            raise LocalEndpointError(
                f"statistics: the server's answers have {most} MiB; use another server"
            )
    return decode_statistics(answers)


async def _ask(session: aiohttp.ClientSession, method: str, url: str, limit: int) -> bytes:
    try:
        async with session.request(method, url, timeout=_STATISTICS_TIMEOUT) as response:
            return await read_body(response, limit)
    except (aiohttp.ClientError, TimeoutError) as error:
        raise LocalEndpointError(
            f"statistics: the server does not answer ({type(error).__name__}); "
            "wait until it is ready"
        ) from None


async def read_body(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """Return the body, or its first bytes if it is longer than ``limit``."""
    body = bytearray()
    async for part in response.content.iter_any():
        body += part
        if len(body) >= limit:
            break
    return bytes(body[:limit])
