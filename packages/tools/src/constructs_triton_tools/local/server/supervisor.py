"""Starts one Triton server and cleans up after it, even if the gateway is killed.

Runs as a separate process. Each JSON line on standard input starts the server. A line on standard
output reports that it has ended. Standard input closes when the gateway ends, even when it was
killed. Then the supervisor stops the server and its child processes, and deletes the server's
shared-memory regions and folders.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from constructs_triton_core.processes.children import STDOUT, Child
from constructs_triton_tools.local.server import namespaces, private_address
from constructs_triton_tools.local.server.private_address import PrivateAddress

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
#: How long ended child processes may take to disappear.
_REAP_SECONDS = 5.0
_STOP_INTERVAL_SECONDS = 0.02
_libc = ctypes.CDLL(None, use_errno=True)


def main(shm_prefix: str, *directories: str) -> None:
    """Handle start requests until standard input is closed.

    The first directory is the server's. The others are those of the run, which are deleted only if
    the gateway was killed: otherwise its request ``stop`` comes first, and the run may go on
    without this server.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    # Stubs outlive a killed server. As their subreaper this process becomes their parent and can
    # end them.
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        for line in sys.stdin:
            request = json.loads(line)
            if "stop" in request:
                directories = directories[:1]
            else:
                _supervise(request, shm_prefix)
    finally:
        _clear_shared_memory(shm_prefix)
        for directory in directories:
            shutil.rmtree(directory, ignore_errors=True)


def _supervise(request: dict[str, Any], shm_prefix: str) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        server = _start(request, theirs)
        theirs.close()
        address = _receive_address(request, ours, server.pid)
    _send_event({"started": server.pid})
    try:
        ended = _wait_for_end(server.pid, address)
    finally:
        if address is not None:
            address.close()
        _stop(server, request)
        _clear_shared_memory(shm_prefix)
    if ended:
        _send_event({"ended": server.returncode})


def _start(request: dict[str, Any], channel: socket.socket) -> Child[bytes]:
    with Path(request["log"]).open("ab") as log:
        return Child(
            request["argv"],
            environment=request["environment"],
            is_kept=False,  # the preparation below lets it end with this process
            cwd=request["cwd"],
            stdout=log,
            stderr=STDOUT,
            preexec_fn=_preparation(request, channel),  # this process has one thread
        )


def _preparation(request: dict[str, Any], channel: socket.socket) -> Callable[[], None]:
    """Return what the new process does before it executes the server."""
    models = None if request["mounted_models"] is None else Path(request["mounted_models"])

    def prepare() -> None:
        try:
            namespaces.enter(models, has_network=request["has_network"])
            if request["private_port"] is not None:
                private_address.report_binds(channel)
        except OSError as error:
            os.write(2, f"error: {error}\n".encode())
            os._exit(71)
        _die_with_parent()  # last, because a change of permissions resets it

    return prepare


def _receive_address(
    request: dict[str, Any], channel: socket.socket, pid: int
) -> PrivateAddress | None:
    """The address that the server's bind is answered with; ``None`` for an open port."""
    if request["private_port"] is None:
        return None
    listener = private_address.receive_listener(channel)
    if listener is None:  # the server has ended before
        return None
    return PrivateAddress(listener, pid, request["private_port"], Path(request["cwd"]))


def _die_with_parent() -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _send_event(event: dict[str, object]) -> None:
    with contextlib.suppress(OSError):  # the gateway has ended, so standard input closes next
        sys.stdout.write(json.dumps(event) + "\n")
        sys.stdout.flush()


def _wait_for_end(pid: int, address: PrivateAddress | None) -> bool:
    """Return whether the server ended by itself; ``False`` if standard input closed first."""
    descriptor = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        poll.register(sys.stdin.fileno(), select.POLLIN | select.POLLHUP)
        if address is not None:
            poll.register(address.fileno(), select.POLLIN)
        while True:
            ready = dict(poll.poll())
            if descriptor in ready or sys.stdin.fileno() in ready:
                return descriptor in ready
            assert address is not None
            if ready[address.fileno()] & select.POLLIN:
                address.answer()
            else:
                poll.unregister(address)  # no process is left that could bind
    finally:
        os.close(descriptor)


def _stop(server: Child[bytes], request: dict[str, Any]) -> None:
    if server.poll() is None and request["grace_seconds"]:
        runs_models = bool(_children(server.pid)) and not _writes_traces(request["argv"])
        server.terminate()
        deadline = time.monotonic() + request["grace_seconds"]
        while server.poll() is None and time.monotonic() < deadline:
            if runs_models and not _children(server.pid):
                # all models have finalized; the server would only notice within the next second
                break
            time.sleep(_STOP_INTERVAL_SECONDS)
    _kill_group(server.pid)
    server.wait()
    _reap_orphans()


def _kill_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def _reap_orphans() -> None:
    """End every child process, including those that left the server's process group."""
    deadline = time.monotonic() + _REAP_SECONDS
    while time.monotonic() < deadline:
        for pid in _children(os.getpid()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            ended, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if ended == 0:
            time.sleep(0.01)


def _children(process: int) -> list[int]:
    """Return the child processes of all threads of a process; none if it has ended."""
    found: list[int] = []
    for thread in Path(f"/proc/{process}/task").glob("*"):
        with contextlib.suppress(OSError):  # the thread has ended
            found += map(int, (thread / "children").read_text(encoding="ascii").split())
    return found


def _writes_traces(argv: Sequence[str]) -> bool:
    """Whether the server writes a file when it ends, after its models."""
    return any(word.startswith("--trace-") for word in argv)


def _clear_shared_memory(prefix: str) -> None:
    for region in Path("/dev/shm").glob(f"{prefix}*"):
        region.unlink(missing_ok=True)
