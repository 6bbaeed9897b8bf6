"""Triton's HTTP front end, which generates in the place of a SageMaker front end that is too old for it.

Both answer a generate request with the same code (triton server src/http_server.cc, ``HandleGenerate``);
SageMaker's calls it since 2.56. The HTTP front end listens on a Unix socket in the server's private folder.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import aiohttp

from constructs_triton.local.running_container import Destination
from constructs_triton.local.server.connection import ServerConnection

__all__ = ["GenerateFrontEnd"]

_SOCKET_NAME = "http.sock"
#: A path relative to the server's working directory, because a Unix address has room for 107 bytes.
_FLAGS = ("--allow-http=true", f"--http-address=unix:{_SOCKET_NAME}")
# Triton 23.10, the first with the generate extension, and 25.03, whose SageMaker front end has it too.
_FIRST_VERSION, _FIRST_ON_SAGEMAKER = (2, 39), (2, 56)
_VERSION = re.compile(rb'"version":"(\d{1,4})\.(\d{1,4})\.')
_URL = "http://localhost/v2"
_MAXIMUM_METADATA_BYTES = 65536


class GenerateFrontEnd:
    """The HTTP front end of a server in ``folder``; ``inference_type`` is not ``infer``."""

    def __init__(self, folder: Path, inference_type: str, timeout_seconds: float) -> None:
        self._socket = folder / _SOCKET_NAME
        self._inference_type = inference_type
        self._connection = ServerConnection(folder, timeout_seconds, socket_name=_SOCKET_NAME)

    def prepare(self) -> tuple[str, ...]:
        """Remove the socket of a server that ran before, and return the next server's flags."""
        self._socket.unlink(missing_ok=True)
        return _FLAGS

    async def close(self) -> None:
        """Close all connections."""
        await self._connection.close()

    async def destination(self, model: str, report: Callable[[str], None]) -> Destination | None:
        """Return where requests for ``model`` go; ``None`` for SageMaker's front end.

        Reports if the server cannot generate.
        """
        version = await self._version()
        if version >= _FIRST_ON_SAGEMAKER:
            return None
        if version < _FIRST_VERSION:
            report(
                f"this Triton server has no generate extension, so it cannot use {self._inference_type} and "
                "answers as with infer; set --tritonserver to a server of 23.10 or newer"
            )
            return None
        url = f"{_URL}/models/{quote(model, safe='')}/{self._inference_type}"
        return Destination(self._connection.session, url)

    async def _version(self) -> tuple[int, int]:
        """Return the server's version; (0, 0) if it does not say."""
        try:
            async with self._connection.session.get(_URL) as response:
                found = _VERSION.search(await response.content.read(_MAXIMUM_METADATA_BYTES))
        except (aiohttp.ClientError, TimeoutError):
            found = None
        return (0, 0) if found is None else (int(found[1]), int(found[2]))
