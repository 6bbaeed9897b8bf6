"""Calls a function on foreign bytes in another process, within limits on its processor time and memory.

Some files can only be read by C++ code, which may take any time and memory for a small file and cannot be
interrupted from Python. The system ends the process when it exceeds a limit.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib import import_module
from typing import IO

from constructs_triton.untrusted.budget import OverBudgetError

__all__ = ["BoundedProcess", "serve"]

_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from constructs_triton.untrusted.bounded_process import main; main(sys.argv[2])"
)
_REQUEST = struct.Struct(">dQQ")
_ANSWER = struct.Struct(">?Q")
_MOST_STARTS = 5  # a process that exceeds its limits is started again, which takes a quarter of a second


class BoundedProcess:
    """A process that calls one function with the bytes of each request.

    It is started by the first request and serves all others. A request that exceeds its limits ends it; after
    five of them, no other request is answered.

    Args:
        function: The function, as ``"package.module:name"``. It takes bytes and returns bytes.
    """

    def __init__(self, function: str) -> None:
        self._function = function
        self._forget()
        atexit.register(self.close)
        if hasattr(os, "register_at_fork"):  # a forked process must not talk to the same one
            os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._starts = 0

    def call(self, request: bytes, *, seconds: float, memory_bytes: int) -> bytes:
        """Return what the function returns for ``request``.

        Args:
            request: Argument of the function.
            seconds: Limit on the processor time.
            memory_bytes: Limit on the memory that the call takes in addition.

        Raises:
            OverBudgetError: the call exceeds a limit, or five calls before have done so.
        """
        with self._lock:
            process = self._started()
            try:
                return _exchange(process, _REQUEST.pack(seconds, memory_bytes, len(request)) + request)
            except (EOFError, OSError):
                is_slow = process.wait() == -signal.SIGPROF
                self._end()
                limit = (
                    f"{seconds:.2g} s of processor time" if is_slow else f"{memory_bytes >> 20} MiB of memory"
                )
                raise OverBudgetError(f"it takes more than {limit}") from None
            except BaseException:  # Ctrl-C: the answer would be taken for that of the next request
                self._end()
                raise

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            if self._starts == _MOST_STARTS:
                raise OverBudgetError(f"{_MOST_STARTS} files before it took too much time or memory")
            self._starts += 1
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-c", _PROGRAM, json.dumps(sys.path), self._function],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # NumPy starts a thread for each core
            )
        return self._process

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._end()

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            with suppress(BrokenPipeError), process:  # it closes the pipes and waits
                pass


def _exchange(process: subprocess.Popen[bytes], message: bytes) -> bytes:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(message)
    process.stdin.flush()
    is_answered, length = _ANSWER.unpack(_read(process.stdout, _ANSWER.size))
    if not is_answered:
        raise EOFError
    return _read(process.stdout, length)


def _read(stream: IO[bytes], length: int) -> bytes:
    content = stream.read(length)
    if len(content) < length:
        raise EOFError
    return content


# The other process.


def main(name: str) -> None:
    """Answer the requests on standard input; what the function prints does not reach the answers."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    module, _, function = name.partition(":")
    serve(getattr(import_module(module), function), sys.stdin.buffer, answers)


def serve(function: Callable[[bytes], bytes], requests: IO[bytes], answers: IO[bytes]) -> None:
    """Call ``function`` with each request and write the answers, until a call needs too much memory."""
    with suppress(EOFError):
        while True:
            seconds, memory_bytes, length = _REQUEST.unpack(_read(requests, _REQUEST.size))
            request = _read(requests, length)
            answer = _call(function, request, seconds, memory_bytes)
            answers.write(_ANSWER.pack(answer is not None, len(answer or b"")) + (answer or b""))
            answers.flush()
            if answer is None:
                return


def _call(
    function: Callable[[bytes], bytes], request: bytes, seconds: float, memory_bytes: int
) -> bytes | None:
    """Return the answer, or ``None`` if there is not enough memory. The system ends what takes too long."""
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    _limit_memory(memory_bytes)
    try:
        return function(request)
    except MemoryError:
        return None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


@cache
def _memory_file() -> int:
    return os.open("/proc/self/statm", os.O_RDONLY)


def _limit_memory(more_bytes: int) -> None:
    import resource

    with suppress(OSError, ValueError):  # not Linux, or a lower limit of the user
        used = int(os.pread(_memory_file(), 100, 0).split()[0]) * resource.getpagesize()
        _, highest = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (used + more_bytes, highest))
