"""Triton's HTTP front end, which has statistics and, in old servers, generates instead of
SageMaker's.

Both front ends answer a generate request with the same code (triton server src/http_server.cc,
``HandleGenerate``); SageMaker's calls it since 2.56. The HTTP front end listens on a Unix socket in
the server's private folder. If the template turns it on itself, it listens on a port of 127.0.0.1.

The flags are needed before the server starts. aiohttp is imported later, while it starts.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from constructs_triton_tools.local.model_statistics import NOT_QUOTED, ModelStatistics
from constructs_triton_tools.local.running_container import Destination
from constructs_triton_tools.local.sources.inference_type import used_inference_type
from constructs_triton_tools.local.sources.specs import ContainerSpec

if TYPE_CHECKING:
    import aiohttp

    from constructs_triton_tools.local.server.server_connection import ServerConnection

_SOCKET_NAME = "http.sock"
#: A path relative to the server's working directory, because a Unix address has room for 107 bytes.
_FLAGS = ("--allow-http=true", f"--http-address=unix:{_SOCKET_NAME}")
# Triton 23.10, the first with the generate extension, and 25.03, whose SageMaker front end has it
# too.
_FIRST_VERSION = (2, 39)
_FIRST_ON_SAGEMAKER = (2, 56)
_VERSION = re.compile(rb'"version":"(\d{1,4})\.(\d{1,4})\.')
_MAXIMUM_METADATA_BYTES = 65536


class HttpFrontEnd:
    """The HTTP front end of a server, whose callers send requests of ``inference_type``."""

    def __init__(self, inference_type: str, timeout_seconds: float) -> None:
        self._inference_type = inference_type
        self._timeout_seconds = timeout_seconds
        self._folder = Path()
        self._port: int | None = None
        self._connection: ServerConnection | None = None

    @classmethod
    def of(cls, container: ContainerSpec, timeout_seconds: float) -> HttpFrontEnd:
        """Create the front end of a container's server."""
        return cls(used_inference_type(container, container.image), timeout_seconds)

    def without_own_port(self, arguments: tuple[str, ...]) -> tuple[str, ...]:
        """Return a server's arguments, in which a front end that generates has no port."""
        return arguments if self._inference_type == "infer" else (*arguments, "--allow-http=false")

    def prepare(self, folder: Path, port: int | None = None) -> tuple[str, ...]:
        """Return the flags of the next server, which runs in ``folder``; ``port`` is the
        template's.

        Removes the socket of a server that ran before.
        """
        self._folder = folder
        self._port = port
        (folder / _SOCKET_NAME).unlink(missing_ok=True)
        return _FLAGS if port is None else ()

    async def close(self) -> None:
        """Close all connections."""
        if self._connection is not None:
            await self._connection.close()
            self._connection = None

    @property
    def _session(self) -> aiohttp.ClientSession:
        from constructs_triton_tools.local.server.server_connection import ServerConnection

        if self._connection is None:
            folder = self._folder if self._port is None else None
            timeout = self._timeout_seconds
            self._connection = ServerConnection(folder, timeout, socket_name=_SOCKET_NAME)
        return self._connection.session

    @property
    def _url(self) -> str:
        return "http://localhost/v2" if self._port is None else f"http://127.0.0.1:{self._port}/v2"

    async def statistics(self) -> tuple[ModelStatistics, ...]:
        """Return what the server has counted of each model since the model was loaded."""
        from constructs_triton_tools.local.http_session import read_statistics

        return await read_statistics(self._session, self._url)

    async def generate_destination(
        self, model: str, report: Callable[[str], None]
    ) -> Destination | None:
        """Return where generate requests for ``model`` go; ``None`` for SageMaker's front end.

        Reports if the server cannot generate.
        """
        if self._inference_type == "infer":
            return None
        version = await self._version()
        if version >= _FIRST_ON_SAGEMAKER:
            return None
        if version < _FIRST_VERSION:
            report(
                "this Triton server has no generate extension, so it cannot use "
                f"{self._inference_type} and answers as with infer; "
                "set --tritonserver to a server of 23.10 or newer"
            )
            return None
        url = f"{self._url}/models/{quote(model, safe=NOT_QUOTED)}/{self._inference_type}"
        return Destination(self._session, url)

    async def _version(self) -> tuple[int, int]:
        """Return the server's version; (0, 0) if it does not say."""
        import aiohttp

        from constructs_triton_tools.local.http_session import read_body

        try:
            async with self._session.get(self._url) as response:
                found = _VERSION.search(await read_body(response, _MAXIMUM_METADATA_BYTES))
        except (aiohttp.ClientError, TimeoutError):
            found = None
        return (0, 0) if found is None else (int(found[1]), int(found[2]))
