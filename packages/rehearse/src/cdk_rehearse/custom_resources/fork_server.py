"""Calls a function on foreign bytes in a new process each time, which takes milliseconds.

A server imports the function's module once and forks for each call. Calls may run at the same time.
"""

from __future__ import annotations

import atexit
import os
import signal
import socket
import struct
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib import import_module

from constructs_triton_core.processes.bounded_server import limit_memory, read_exactly
from constructs_triton_core.processes.children import (
    Child,
    foreign_environment,
    forked,
    python_command,
)

_PROGRAM = (
    "from cdk_rehearse.custom_resources.fork_server import main; "
    "main(int(sys.argv[1]), sys.argv[2])"
)
_LIMITS = struct.Struct(">Q")
_LENGTH = struct.Struct(">Q")
_PID = struct.Struct(">i")


class ForkServer:
    """Calls one function, each time in a process that has the environment of foreign code.

    Args:
        function: The function, as ``"package.module:name"``. It takes bytes and returns bytes.
    """

    def __init__(self, function: str) -> None:
        self._function = function
        self._starting = threading.Lock()
        self._server: Child[bytes] | None = None
        self._control: socket.socket | None = None
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._share)

    def _share(self) -> None:
        """Call the server of the original process in a copy of it, which must not end the server.

        Each call sends a socket of its own, so that several processes can share a server.
        """
        self._starting = threading.Lock()
        self._shared = self._server
        self._server = None

    def call(self, request: bytes, *, seconds: float, memory_bytes: int) -> bytes | None:
        """Return what the function returns; ``None`` if its process ends before, or takes too long.

        Args:
            request: Argument of the function.
            seconds: Limit on the time.
            memory_bytes: Limit on the memory that the call takes in addition.
        """
        ours, theirs = socket.socketpair()
        with ours, theirs:
            try:
                socket.send_fds(self._started(), [b"\0"], [theirs.fileno()])
            except OSError:  # a copy of the process does not know that the server was killed
                self.close()
                socket.send_fds(self._started(), [b"\0"], [theirs.fileno()])
            theirs.close()
            answers = ours.makefile("rb")
            with answers, suppress(EOFError, OSError):
                ours.sendall(_LIMITS.pack(memory_bytes) + _LENGTH.pack(len(request)) + request)
                (pid,) = _PID.unpack(read_exactly(answers, _PID.size))
                ours.settimeout(seconds)
                try:
                    return read_exactly(
                        answers, *_LENGTH.unpack(read_exactly(answers, _LENGTH.size))
                    )
                except TimeoutError:
                    os.kill(pid, signal.SIGKILL)
        return None

    def _started(self) -> socket.socket:
        """Return the connection to the server, which is started if it does not run."""
        with self._starting:
            if self._server is not None and self._server.poll() is not None:  # the system killed it
                self._end()
            if self._control is None:
                self._control, theirs = socket.socketpair()
                with theirs:
                    command = python_command(_PROGRAM, str(theirs.fileno()), self._function)
                    environment = foreign_environment()
                    self._server = Child(
                        command, environment=environment, pass_fds=[theirs.fileno()]
                    )
                atexit.register(self.close)
            return self._control

    def close(self) -> None:
        """End the server and all calls."""
        with self._starting:
            self._end()

    def _end(self) -> None:
        server = self._server
        control = self._control
        self._server = None
        self._control = None
        if server is not None and control is not None:
            control.close()
            server.end()


# The server.


def main(control: int, name: str) -> None:
    """Fork for each socket that arrives, until there is no other end."""
    module, _, function = name.partition(":")
    call = getattr(import_module(module), function)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the system forgets the copies that have ended
    with socket.socket(fileno=control) as arrivals:
        while descriptors := socket.recv_fds(arrivals, 1, 1)[1]:
            with socket.socket(fileno=descriptors[0]) as channel:
                forked(partial(_answer, call, channel, arrivals))


def _answer(
    function: Callable[[bytes], bytes], channel: socket.socket, arrivals: socket.socket
) -> int:
    """Run one request in a forked process: read it, call the function, and send its answer."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    arrivals.close()
    channel.sendall(_PID.pack(os.getpid()))
    with channel.makefile("rb") as requests:
        (memory_bytes,) = _LIMITS.unpack(read_exactly(requests, _LIMITS.size))
        request = read_exactly(requests, *_LENGTH.unpack(read_exactly(requests, _LENGTH.size)))
    limit_memory(memory_bytes)
    answer = function(request)
    channel.sendall(_LENGTH.pack(len(answer)) + answer)
    return 0
