"""Reaches a container that has no network.

Such a container cannot publish a port. The relay listens on 127.0.0.1 and runs a process in the container for
each connection, which passes bytes between the engine's standard streams and the server's port. It needs bash
and cat in the image; Triton's ``serve`` script needs bash too.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from constructs_triton.local.containers.run_arguments import CONTAINER_PORT

__all__ = ["ExecRelay"]

# `kill 0` ends all processes of the script when either side closes its connection.
_SCRIPT = f"""
exec 3<>/dev/tcp/127.0.0.1/{CONTAINER_PORT} 4<&0 || exit 1
{{ cat <&4 >&3; kill 0; }} &
cat <&3
kill 0
"""
_PIECE_BYTES = 2**18


class ExecRelay:
    """Listens on a free port of 127.0.0.1 for the container ``name``."""

    def __init__(self, engine: str, name: str) -> None:
        self._command = [engine, "exec", "--interactive", name, "bash", "-c", _SCRIPT]
        self._server: asyncio.Server | None = None

    async def start(self) -> int:
        """Start listening and return the port."""
        self._server = await asyncio.start_server(self._relay, "127.0.0.1", 0)
        return int(self._server.sockets[0].getsockname()[1])

    def close(self) -> None:
        """Stop listening. Connections end with the container."""
        if self._server is not None:
            self._server.close()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            start_new_session=True,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        sending = asyncio.create_task(_copy(reader, process.stdin))
        try:
            await _copy(process.stdout, writer)
        finally:
            sending.cancel()
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    """Copy bytes until ``source`` ends, then close ``target``."""
    with suppress(ConnectionError):
        while piece := await source.read(_PIECE_BYTES):
            target.write(piece)
            await target.drain()
    target.close()
