"""Copies of the process that holds a simulated account, made with ``fork``.

A copy starts with the account as it is, which takes milliseconds. What happens in it changes
nothing in the original process. Both sides send each other pickled values.
"""

from __future__ import annotations

import gc
import os
import pickle
import select
import signal
import socket
import struct
import sys
import tempfile
import traceback
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any

from constructs_triton_core.errors import ConstructsTritonError
from constructs_triton_core.processes.children import fork_process

from .errors import StackError

_LENGTH = struct.Struct(">Q")
_MOST_SECONDS = 900.0
"""How long a copy may be silent. A rollback takes seconds, on a busy machine minutes."""
_END_SECONDS = 10.0
_HINT = "run it again, with --failures none if it stops again"


class _Channel:
    """One end of a connection over which pickled values go."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection

    def fileno(self) -> int:
        return self._connection.fileno()

    def send(self, value: object) -> None:
        """Send a value to the other process."""
        content = pickle.dumps(value)
        self._connection.sendall(_LENGTH.pack(len(content)) + content)

    def receive(self) -> Any:
        """Return the next value; raises ``EOFError`` if the other process has ended."""
        (length,) = _LENGTH.unpack(self._exactly(_LENGTH.size))
        return pickle.loads(self._exactly(length))

    def close(self) -> None:
        self._connection.close()

    def _exactly(self, length: int) -> bytes:
        content = bytearray()
        while len(content) < length:
            part = self._connection.recv(length - len(content))
            if not part:
                raise EOFError
            content += part
        return bytes(content)


class Copy(_Channel):
    """A copy of this process, as the original sees it."""

    def __init__(self, pid: int, connection: socket.socket, work: str) -> None:
        super().__init__(connection)
        self.pid = pid
        self._work = work

    def receive(self) -> Any:
        """Return the next value; raise the error of the copy.

        Raises:
            ConstructsTritonError: the copy ended without an answer, or took too long.
        """
        expect_answer([self])
        try:
            answer = super().receive()
        except (EOFError, OSError):
            how = self._how_it_ended()
            raise ConstructsTritonError(
                f"the rehearsal stopped: {self._work}, its process ended with {how}; {_HINT}"
            ) from None
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def silent(self) -> ConstructsTritonError:
        """Return the error of a copy that takes too long."""
        return ConstructsTritonError(
            f"the rehearsal stopped: {self._work}, its process did not answer for "
            f"{_MOST_SECONDS:.0f} s; {_HINT}"
        )

    def end(self) -> None:
        """End the process, by force after ten seconds."""
        self.close()
        for number in (signal.SIGTERM, signal.SIGKILL):
            if self.pid == 0:
                return
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)
            self._wait(_END_SECONDS)

    def forget(self) -> None:
        """Wait for the end of a process that has answered."""
        self.close()
        self._wait(_END_SECONDS)
        self.end()

    def _wait(self, seconds: float) -> int | None:
        """Return the exit code of the process, or ``None`` if it still runs."""
        # A waiting process is woken by the end of the connection, which comes first; no other
        # event tells the end of one process among several on all systems.
        for pause in [0.001] * 50 + [0.05] * int(seconds * 20):
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.pid = 0
                return os.waitstatus_to_exitcode(status)
            select.select([], [], [], pause)
        return None

    def _how_it_ended(self) -> str:
        code = self._wait(_END_SECONDS)
        if code is None:
            return "a closed connection"
        if code < 0:
            return signal.Signals(-code).name
        return f"exit code {code}"


class Original(_Channel):
    """The original of this process, as the copy sees it.

    A context manager: at its end the process ends too, after an error with this error as its
    answer.
    """

    def __enter__(self) -> Original:
        return self

    def __exit__(
        self, _: type[BaseException] | None, error: BaseException | None, __: TracebackType | None
    ) -> None:
        code = 0
        try:
            if isinstance(error, Exception):
                self.send(_answerable(error))
            elif error is not None:
                code = 1
        except BaseException:  # the original has ended
            code = 1
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)


def expect_answer(copies: Sequence[Copy]) -> list[Copy]:
    """Wait until copies have sent something, and return these.

    Raises:
        ConstructsTritonError: none of them has sent anything for a quarter of an hour.
    """
    ready, _, _ = select.select(copies, [], [], _MOST_SECONDS)
    if not ready:
        raise copies[0].silent()
    return ready


def copy_process(work: str, folder: str) -> Copy | Original:
    """Fork this process; return the copy in the original, and the original in the copy.

    Args:
        work: What the copy does, for messages.
        folder: Where the copy puts temporary files, which the original deletes.
    """
    ours, theirs = socket.socketpair()
    seconds, _ = signal.getitimer(signal.ITIMER_PROF)
    # The threads of the simulated account wait for requests, which only functions send.
    pid = fork_process()
    if pid:
        theirs.close()
        return Copy(pid, ours, work)

    ours.close()
    # What exists is never searched for garbage again, which would copy all of its memory.
    gc.freeze()
    tempfile.tempdir = folder
    # A forked process has no timer, so the limit on its processor time is set again.
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    return Original(theirs)


def _answerable(error: Exception) -> Exception:
    """An error that can be pickled; the traceback of one that is a bug."""
    if isinstance(error, ConstructsTritonError | StackError):
        return error
    return RuntimeError("".join(traceback.format_exception(error)))
