"""Removes one container and its folders when the gateway ends, even if the gateway was killed.

Runs as a separate process. Standard input closes when the gateway ends. Before that, the line
``started`` says that a container is being started, and ``removed`` that it has been removed. The
line ``run goes on`` says that the folders of the run are still in use.
"""

from __future__ import annotations

import shutil
import signal
import sys
import time

from constructs_triton_core.processes.children import run_child

#: How long a container that was being started may take to appear.
_APPEARANCE_SECONDS = 15.0
_COMMAND_SECONDS = 120.0


def main(engine: str, name: str, directory: str, *run_folders: str) -> None:
    """Wait until standard input closes, then remove the container ``name`` and the folders."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    lines = [line.strip() for line in sys.stdin]
    states = [line for line in lines if line in ("started", "removed")]
    if states[-1:] == ["started"]:
        _remove(engine, name)
    for folder in (directory, *(() if "run goes on" in lines else run_folders)):
        shutil.rmtree(folder, ignore_errors=True)


def _remove(engine: str, name: str) -> None:
    deadline = time.monotonic() + _APPEARANCE_SECONDS
    while not _succeeds(engine, "container", "inspect", name):
        if time.monotonic() > deadline:
            return
        time.sleep(0.5)
    # First, because `rm` would wait for a process that ignores SIGTERM, as the first process of a
    # container.
    _succeeds(engine, "kill", name)
    _succeeds(engine, "rm", "--force", name)


def _succeeds(*command: str) -> bool:
    try:
        return run_child(command, seconds=_COMMAND_SECONDS).returncode == 0
    except OSError:
        return False
