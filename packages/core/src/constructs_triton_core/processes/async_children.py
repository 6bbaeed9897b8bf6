"""Child processes in an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from constructs_triton_core.processes.children import DEVNULL, Keeper

__all__ = ["AsyncChild", "start_child"]

AsyncChild = asyncio.subprocess.Process

_KEPT: set[asyncio.Task[int]] = set()


async def start_child(
    command: Sequence[str], *, environment: Mapping[str, str], is_kept: bool = True, **options: Any
) -> AsyncChild:
    """Start a child process, which ends with this one: see ``children.Child``.

    Args:
        command: The program and its arguments.
        environment: All of its variables.
        is_kept: Whether a keeper ends it with this process.
        **options: Those of ``subprocess.Popen``. The standard streams are closed by default.
    """
    keeper = Keeper() if is_kept else None
    streams = {"stdin": DEVNULL, "stdout": DEVNULL, "stderr": DEVNULL}
    try:
        process = await asyncio.create_subprocess_exec(
            *command, env=environment, start_new_session=True, **streams | options
        )
    except BaseException:
        if keeper is not None:
            keeper.release()
        raise
    if keeper is not None:
        keeper.keep(process.pid)
        end = asyncio.create_task(process.wait())
        _KEPT.add(end)  # the loop has only a weak reference
        end.add_done_callback(_KEPT.discard)
        end.add_done_callback(lambda _: keeper.release())
    return process
