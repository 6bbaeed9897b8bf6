"""Copies of the process that holds a simulated account, made with ``fork``.

A copy starts with the account as it is, which takes milliseconds. What happens in it changes
nothing in the original process. Both sides send each other pickled values.
"""

from __future__ import annotations

import gc
import os
import pickle
import selectors
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from constructs_triton_core.errors import ConstructsTritonError
from constructs_triton_core.processes.children import fork_process

from .errors import StackError

_LENGTH = struct.Struct(">Q")
_MOST_SECONDS = 1200.0
"""How long a copy may be silent. A function may run for a quarter of an hour, the other changes of
a resource take seconds."""
_MORE_SECONDS = 60.0
"""How much longer the copy may be silent that has copies, since their errors name the step."""
_ALIVE_SECONDS = 1.0
_END_SECONDS = 10.0
_THREADS_SECONDS = 5.0
_RUNNING: set[int] = set()
"""The process IDs of the copies of this process."""
_HINT = "run it again, with --failures none if it stops again"


@dataclass(frozen=True)
class Alive:
    """The other process has no answer yet, but still works."""


class Threads:
    """The threads that this process has now and keeps, beside those of single requests.

    A copy of the process has only the thread that forks. A lock that another one holds at this
    moment stays locked in the copy for ever. Python makes its own locks anew, but not those of
    libraries: OpenSSL takes one when a thread ends (``OPENSSL_thread_stop``), after Python has
    forgotten the thread.
    """

    def __init__(self) -> None:
        self._kept = set(threading.enumerate())
        self._of_libraries = max(0, _running_threads() - len(self._kept))

    def wait_for_others(self) -> None:
        """Wait until all other threads have ended, at most five seconds."""
        deadline = time.monotonic() + _THREADS_SECONDS
        while self._has_others() and time.monotonic() < deadline:
            time.sleep(0.001)

    def _has_others(self) -> bool:
        known = threading.enumerate()
        if not self._kept.issuperset(known):
            return True
        return _running_threads() > len(known) + self._of_libraries


def _running_threads() -> int:
    """The number of threads as the system counts them, with those that end just now."""
    try:
        return len(os.listdir("/proc/self/task"))  # noqa: PTH208 - no path of them is needed
    except OSError:  # macOS
        return threading.active_count()


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
        """Receive this many bytes; raises ``EOFError`` if the other side ends before."""
        content = bytearray()
        while len(content) < length:
            part = self._connection.recv(length - len(content))
            if not part:
                raise EOFError
            content += part
        return bytes(content)


class Copy(_Channel):
    """A copy of this process, as the original sees it."""

    def __init__(
        self, pid: int, connection: socket.socket, work: str, silent_seconds: float
    ) -> None:
        super().__init__(connection)
        self.pid = pid
        _RUNNING.add(pid)
        self.silent_seconds = silent_seconds
        self._work = work
        self.heard = time.monotonic()

    def send(self, value: object) -> None:
        """Send a value to the copy, which may have waited for it for a long time.

        Raises:
            ConstructsTritonError: the copy has ended.
        """
        self.heard = time.monotonic()
        try:
            super().send(value)
        except OSError:
            raise self._ended() from None

    def receive(self) -> Any:
        """Return the next value, or :class:`Alive`; raise the error of the copy.

        Raises:
            ConstructsTritonError: the copy ended without an answer, or took too long.
        """
        expect_answer([self])
        try:
            answer = super().receive()
        except (EOFError, OSError):
            raise self._ended() from None
        self.heard = time.monotonic()
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def silent(self) -> ConstructsTritonError:
        """Return the error of a copy that takes too long."""
        return ConstructsTritonError(
            f"the rehearsal stopped: {self._work}, its process did not answer for "
            f"{self.silent_seconds:.0f} s; {_HINT}"
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
                _RUNNING.discard(pid)
                self.pid = 0
                return os.waitstatus_to_exitcode(status)
            time.sleep(pause)
        return None

    def _ended(self) -> ConstructsTritonError:
        how = self._how_it_ended()
        return ConstructsTritonError(
            f"the rehearsal stopped: {self._work}, its process ended with {how}; {_HINT}"
        )

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

    def __init__(self, connection: socket.socket) -> None:
        super().__init__(connection)
        self._told = time.monotonic()

    def tell_alive(self) -> None:
        """Tell the original that this process still works, at most once in a second."""
        if time.monotonic() - self._told >= _ALIVE_SECONDS:
            self._told = time.monotonic()
            self.send(Alive())

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
        ConstructsTritonError: one of them has sent nothing for twenty minutes.
    """
    longest = min(copies, key=lambda copy: copy.heard + copy.silent_seconds)
    seconds = max(0.0, longest.heard + longest.silent_seconds - time.monotonic())
    with selectors.DefaultSelector() as selector:
        for copy in copies:
            selector.register(copy, selectors.EVENT_READ, copy)
        ready = [key.data for key, _ in selector.select(seconds)]
    if not ready:
        raise longest.silent()
    return ready


def copy_process(work: str, folder: str, *, has_copies: bool = False) -> Copy | Original:
    """Fork this process; return the copy in the original, and the original in the copy.

    Args:
        work: What the copy does, for messages.
        folder: Where the copy puts temporary files, which the original deletes.
        has_copies: Whether the copy makes further copies and waits for them.
    """
    ours, theirs = socket.socketpair()
    seconds, _ = signal.getitimer(signal.ITIMER_PROF)
    # The handler of the original must not run in the copy.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    # The other threads wait for requests, which only functions send: see ``Threads``.
    pid = fork_process()
    if pid:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
        theirs.close()
        more_seconds = _MORE_SECONDS if has_copies else 0.0
        return Copy(pid, ours, work, _MOST_SECONDS + more_seconds)

    ours.close()
    # What exists is never searched for garbage again, which would copy all of its memory.
    gc.freeze()
    tempfile.tempdir = folder
    # A forked process has no timer, so the limit on its processor time is set again.
    signal.setitimer(signal.ITIMER_PROF, seconds)
    _RUNNING.clear()
    signal.signal(signal.SIGTERM, _end_with_copies)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
    return Original(theirs)


def _end_with_copies(*_: object) -> None:
    """End this copy and its own copies.

    An exception would leave the block of the copy, if it came at the end of this block.
    """
    for pid in _RUNNING:
        with suppress(OSError):
            os.kill(pid, signal.SIGTERM)
    os._exit(1)


def _answerable(error: Exception) -> Exception:
    """An error that can be pickled; the traceback of one that is a bug."""
    if isinstance(error, ConstructsTritonError | StackError):
        return error
    if isinstance(error, MemoryError):
        return MemoryError()
    return RuntimeError("".join(traceback.format_exception(error)))
