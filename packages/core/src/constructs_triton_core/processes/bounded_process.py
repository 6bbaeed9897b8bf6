"""Calls a function on foreign bytes in another process, within limits on its processor time and
memory.

Some files can only be read by C++ code, which may take any time and memory for a small file and
cannot be interrupted from Python. The system ends the process when it exceeds a limit.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

from constructs_triton_core.processes import bounded_server
from constructs_triton_core.processes.bounded_server import (
    ANSWER,
    NO_ANSWER,
    NO_LIMIT,
    REQUEST,
    WHOLE,
    read_exactly,
)
from constructs_triton_core.processes.children import PIPE, Child, foreign_environment, import_path
from constructs_triton_core.untrusted.budget import OverBudgetError

__all__ = ["NO_LIMIT", "BoundedProcess"]

_MOST_FAILURES = (
    5  # a process that exceeds its limits is started again, which takes a quarter of a second
)


class BoundedProcess:
    """A process that calls one function with the bytes of each request.

    It is started by the first request and serves all others. A request that exceeds its limits ends
    it; after five of them, no other request is answered.

    Args:
        function: The function, as ``"package.module:name"``. It takes bytes and returns bytes.
        environment: Returns the variables of the process. Default: those for foreign data.
        bare_packages: Packages of which the function uses only modules, so that their ``__init__``
            is not run. A package follows the one that contains it.
        first_paths: Folders whose packages the process imports before those of this Python.
        has_parts: Whether the function also takes ``send``, which it may call with bytes before it
            returns.
    """

    def __init__(
        self,
        function: str,
        environment: Callable[[], Mapping[str, str]] = foreign_environment,
        *,
        bare_packages: tuple[str, ...] = (),
        first_paths: tuple[str, ...] = (),
        has_parts: bool = False,
    ) -> None:
        self._arguments = (function, ",".join(bare_packages), "parts" if has_parts else "")
        self._environment = environment
        self._first_paths = first_paths
        self._forget()
        atexit.register(self.close)
        if hasattr(os, "register_at_fork"):  # a forked process must not talk to the same one
            os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._process: Child[bytes] | None = None
        self._failures = 0
        self._is_silent = False

    def call(
        self,
        request: bytes,
        *,
        seconds: float,
        memory_bytes: int,
        silent_seconds: float = NO_LIMIT,
        receive_part: Callable[[bytes], None] | None = None,
    ) -> bytes:
        """Return what the function returns for ``request``.

        Args:
            request: Argument of the function.
            seconds: Limit on the processor time, or ``NO_LIMIT``.
            memory_bytes: Limit on the memory that the call takes in addition, or ``NO_LIMIT``.
            silent_seconds: Limit on the time until the function sends something or returns, or
                ``NO_LIMIT``. It also ends a function that waits for ever.
            receive_part: Called with what the function sends before it returns.

        Raises:
            OverBudgetError: the call exceeds a limit, or five calls before have done so.
        """
        with self._lock:
            self.send(request, seconds=seconds, memory_bytes=memory_bytes)
            while True:
                kind, content = self._next_answer(silent_seconds)
                if kind == WHOLE:
                    return content
                self._hand_over(content, receive_part)

    def send(self, request: bytes, *, seconds: float, memory_bytes: int) -> None:
        """Send a request, as :meth:`call`, for a caller with one thread and several processes."""
        if self._failures == _MOST_FAILURES:
            raise OverBudgetError(f"{_MOST_FAILURES} files before it took too much time or memory")
        self._limits = seconds, memory_bytes
        stream = self._started().stdin
        assert stream is not None
        with self._ending_it():
            stream.write(REQUEST.pack(seconds, memory_bytes, len(request)) + request)
            stream.flush()

    def receive(self) -> bytes:
        """Return the answer to the request that was sent."""
        return self._next_answer(NO_LIMIT)[1]

    def _next_answer(self, silent_seconds: float) -> tuple[int, bytes]:
        with self._ending_it(), self._expecting_an_answer(silent_seconds):
            assert self._process is not None
            stream = self._process.stdout
            assert stream is not None
            kind, length = ANSWER.unpack(read_exactly(stream, ANSWER.size))
            if kind == NO_ANSWER:
                raise EOFError
            return kind, read_exactly(stream, length)

    def _hand_over(self, part: bytes, receive_part: Callable[[bytes], None] | None) -> None:
        assert receive_part is not None
        try:
            receive_part(part)
        except BaseException:
            # The rest of the answer is not that of the next request.
            self._end()
            raise

    @contextmanager
    def _expecting_an_answer(self, seconds: float) -> Iterator[None]:
        """Kill the process if it does not answer in time, so that the pipe ends."""
        if seconds == NO_LIMIT:
            yield
            return
        watch = threading.Timer(seconds, self._kill_silent, [self._process])
        watch.daemon = True
        watch.start()
        try:
            yield
        finally:
            watch.cancel()

    def _kill_silent(self, process: Child[bytes]) -> None:
        self._is_silent = True
        with suppress(OSError):
            os.killpg(process.pid, signal.SIGKILL)

    @contextmanager
    def _ending_it(self) -> Iterator[None]:
        """End the process after an error, also after Ctrl-C:
        its answer is not that of the next request.
        """
        try:
            yield
        except (EOFError, OSError):
            self._failures += 1
            raise OverBudgetError(self._why_it_ended()) from None
        except BaseException:
            self._end()
            raise

    def _why_it_ended(self) -> str:
        seconds, memory_bytes = self._limits
        code = self._end()
        if self._is_silent:
            self._is_silent = False
            return "its process does not answer"
        if code == -signal.SIGPROF:
            return f"it takes more than {seconds:.2g} s of processor time"
        if memory_bytes:
            return f"it takes more than {memory_bytes >> 20} MiB of memory"
        return f"its process ended with exit code {code}"

    def _started(self) -> Child[bytes]:
        if self._process is None:
            # NumPy would start a thread for each core.
            environment = {**self._environment(), "OPENBLAS_NUM_THREADS": "1"}
            command = [
                sys.executable,
                "-I",
                bounded_server.__file__,
                *self._arguments,
                *self._first_paths,
                *import_path(),
            ]
            self._process = Child(command, environment=environment, stdin=PIPE, stdout=PIPE)
        return self._process

    def close(self) -> None:
        """End the process."""
        with self._lock:
            self._end()

    def _end(self) -> int | None:
        process, self._process = self._process, None
        if process is None:
            return None
        with suppress(BrokenPipeError), process:  # it closes the pipes
            process.end()
        return process.returncode
