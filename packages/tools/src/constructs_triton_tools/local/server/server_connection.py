"""The connections of the gateway to one server."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp.client_proto import ResponseHandler

from constructs_triton_tools.local.http_session import open_session
from constructs_triton_tools.local.server.private_address import SOCKET_NAME

# A connection that does not fit into the server's backlog of 1024 fails immediately on a Unix
# socket, while TCP tries again; so no more are opened at the same time, and further requests wait
# for one.
_UNIX_CONNECTIONS = 1000
# The kernel limits it to net.core.wmem_max. The default of 208 KiB makes gateway and server take
# turns several times for each tensor; TCP's buffers grow by themselves.
_SEND_BUFFER_BYTES = 2**20


class _LargeBufferConnector(aiohttp.UnixConnector):
    """Connects to a Unix socket with a large send buffer. aiohttp has no option for it."""

    async def _create_connection(self, *args: Any, **kwargs: Any) -> ResponseHandler:
        """Connect to the server with a send buffer that is large enough for tensors."""
        handler = await super()._create_connection(*args, **kwargs)
        assert handler.transport is not None
        connection = handler.transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
        return handler


class ServerConnection:
    """Connections to a server's Unix socket in ``folder``,
    or to a TCP port if ``folder`` is ``None``.
    """

    def __init__(
        self, folder: Path | None, timeout_seconds: float, *, socket_name: str = SOCKET_NAME
    ) -> None:
        self._socket_name = socket_name
        # Reached through a descriptor, because the address of a Unix socket has room for 107 bytes
        # only.
        self._descriptor = None if folder is None else os.open(folder, os.O_PATH | os.O_DIRECTORY)
        self.session = open_session(self._connector(), timeout_seconds)

    def _connector(self) -> aiohttp.BaseConnector:
        if self._descriptor is None:
            return aiohttp.TCPConnector(limit=0)
        path = f"/proc/self/fd/{self._descriptor}/{self._socket_name}"
        return _LargeBufferConnector(path, limit=_UNIX_CONNECTIONS)

    async def close(self) -> None:
        """Close all connections."""
        await self.session.close()
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
