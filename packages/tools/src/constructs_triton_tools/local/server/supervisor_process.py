"""The supervisor process of one Triton server, seen from the gateway."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from constructs_triton_core.processes.async_children import AsyncChild, start_child
from constructs_triton_core.processes.children import PIPE, foreign_environment, python_command

_PROGRAM = "from constructs_triton_tools.local.server.supervisor import main; main(*sys.argv[1:])"


def supervisor_command(shm_prefix: str, *directories: Path) -> list[str]:
    """Return the command of a supervisor that removes the shared memory and ``directories`` when it
    ends.

    The first directory is the server's. The others are removed only if the calling process is
    killed.
    """
    return python_command(_PROGRAM, shm_prefix, *map(str, directories))


class SupervisorProcess:
    """Sends start requests to a supervisor and receives its events, one JSON object per line."""

    def __init__(self, process: AsyncChild) -> None:
        self._process = process

    @classmethod
    async def start(cls, shm_prefix: str, *directories: Path) -> SupervisorProcess:
        """Start a supervisor: see ``supervisor_command``."""
        process = await start_child(
            supervisor_command(shm_prefix, *directories),
            environment=foreign_environment(),
            is_kept=False,  # it ends with its standard input, after it has cleaned up
            stdin=PIPE,
            stdout=PIPE,
        )
        return cls(process)

    async def send(self, request: Mapping[str, object]) -> None:
        """Ask for a server to be started."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(request).encode() + b"\n")
        await self._process.stdin.drain()

    async def read_event(self, name: str) -> object:
        """Return the value of the next event called ``name``;
        ``None`` when the supervisor has ended.
        """
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            event = json.loads(line)
            if name in event:
                return event[name]
        return None

    async def close(self) -> None:
        """End the supervisor, and with it the server."""
        assert self._process.stdin is not None
        self._process.stdin.write(b'{"stop": true}\n')
        self._process.stdin.close()
        await self._process.wait()
