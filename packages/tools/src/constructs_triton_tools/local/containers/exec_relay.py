"""Reaches a container that has no network, or a port that a container does not publish.

The relay listens on 127.0.0.1 and runs a process in the container for each connection, which passes
bytes between the engine's standard streams and the server's port. It needs bash and cat in the
image; Triton's ``serve`` script needs bash too.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from constructs_triton_core.processes.async_children import AsyncChild, start_child
from constructs_triton_core.processes.children import PIPE, own_environment
from constructs_triton_tools.local.containers.run_arguments import CONTAINER_PORT

# `kill 0` ends all processes of the script when either side closes its connection.
_SCRIPT = """
exec 3<>/dev/tcp/127.0.0.1/$0 4<&0 || exit 1
{ cat <&4 >&3; kill 0; } &
cat <&3
kill 0
"""
_PIECE_BYTES = 2**18


class ExecRelay:
    """Listens on a free port of 127.0.0.1 for a port of the container ``name``."""

    def __init__(self, engine: str, name: str, port: int = CONTAINER_PORT) -> None:
        self._command = [engine, "exec", "--interactive", name, "bash", "-c", _SCRIPT, str(port)]
        self._server: asyncio.Server | None = None
        self._connections: dict[asyncio.Task[None], AsyncChild] = {}

    async def start(self) -> int:
        """Start listening and return the port."""
        self._server = await asyncio.start_server(self._relay, "127.0.0.1", 0)
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Stop listening, and end all connections."""
        if self._server is not None:
            self._server.close()
        for process in self._connections.values():
            _kill(process)
        await asyncio.gather(*self._connections)

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        environment = own_environment()
        process = await start_child(self._command, environment=environment, stdin=PIPE, stdout=PIPE)
        task = asyncio.current_task()
        assert task is not None
        self._connections[task] = process
        try:
            await _exchange(reader, writer, process)
        finally:
            del self._connections[task]


async def _exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, process: AsyncChild
) -> None:
    """Copy both ways until the process closes its output, then end it."""
    assert process.stdin is not None
    assert process.stdout is not None
    sending = asyncio.create_task(_copy(reader, process.stdin))
    try:
        await _copy(process.stdout, writer)
    finally:
        sending.cancel()
        process.stdin.close()
        _kill(process)
        await asyncio.gather(sending, process.wait(), return_exceptions=True)


def _kill(process: AsyncChild) -> None:
    with suppress(ProcessLookupError):
        process.kill()


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    """Copy bytes until ``source`` ends, then close ``target``."""
    with suppress(ConnectionError):
        while piece := await source.read(_PIECE_BYTES):
            target.write(piece)
            await target.drain()
    target.close()
