"""Keeps one Triton server: starts it, and leaves nothing of it behind however the gateway ends.

A process of its own, standard library only. It reads JSON lines from its standard input: each starts the
server once more. It answers with a line when the server has ended. At the end of its input, which comes
even when the gateway was killed, it stops the server and its children and removes the server's
shared-memory regions and folders.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import runpy
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
#: How long a server may take to finish what it does before it is killed.
_GRACE_SECONDS = 5.0
_libc = ctypes.CDLL(None, use_errno=True)


def main(shm_prefix: str, *directories: str) -> None:
    """Serve start requests until the standard input ends."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    # Stubs outlive a killed server; as their subreaper this process inherits them and can end them.
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        for line in sys.stdin:
            _supervise(json.loads(line), shm_prefix)
    finally:
        _clear_shared_memory(shm_prefix)
        for directory in directories:
            shutil.rmtree(directory, ignore_errors=True)


def _supervise(request: dict[str, Any], shm_prefix: str) -> None:
    server = _start(request)
    try:
        ended = _wait_for_end(server.pid)
    finally:
        _stop(server)
        _clear_shared_memory(shm_prefix)
    if ended:
        _send_event({"ended": server.returncode})


def _start(request: dict[str, Any]) -> subprocess.Popen[bytes]:
    with Path(request["log"]).open("ab") as log:
        server: subprocess.Popen[bytes] = subprocess.Popen(
            request["argv"],
            env=request["environment"],
            cwd=request["cwd"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_preparation(request.get("mounts")),  # noqa: PLW1509 - a single thread runs here
        )
    _send_event({"started": server.pid})
    return server


def _preparation(mounts: dict[str, str] | None) -> Callable[[], None]:
    """What the server's process does before it becomes the server."""
    if mounts is None:
        return _die_with_parent
    enter = runpy.run_path(mounts["program"])["enter"]

    def prepare() -> None:
        try:
            enter(Path(mounts["source"]))
        except OSError as error:
            os.write(2, f"error: {error}\n".encode())
            os._exit(71)
        _die_with_parent()  # after: a change of rights makes the kernel forget it

    return prepare


def _die_with_parent() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _send_event(event: dict[str, object]) -> None:
    with contextlib.suppress(OSError):  # the gateway is gone, and its input ends next
        sys.stdout.write(json.dumps(event) + "\n")
        sys.stdout.flush()


def _wait_for_end(pid: int) -> bool:
    """Whether the server ended by itself; ``False`` when the input ended first."""
    descriptor = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        poll.register(sys.stdin.fileno(), select.POLLIN | select.POLLHUP)
        return any(ready == descriptor for ready, _ in poll.poll())
    finally:
        os.close(descriptor)


def _stop(server: subprocess.Popen[bytes]) -> None:
    if server.poll() is None:
        server.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(_GRACE_SECONDS)
    _kill_group(server.pid)
    server.wait()
    _reap_orphans()


def _kill_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def _reap_orphans() -> None:
    """End every process that has become ours, also one that left the server's process group."""
    deadline = time.monotonic() + _GRACE_SECONDS
    while time.monotonic() < deadline:
        for pid in _children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            ended, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if ended == 0:
            time.sleep(0.01)


def _children() -> list[int]:
    listing = Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii")
    return [int(pid) for pid in listing.split()]


def _clear_shared_memory(prefix: str) -> None:
    for region in Path("/dev/shm").glob(f"{prefix}*"):
        region.unlink(missing_ok=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
