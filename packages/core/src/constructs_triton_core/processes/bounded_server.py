"""Answers the requests of a ``BoundedProcess``, in the other process.

It runs as a program, and imports little because users wait for its start.
"""

from __future__ import annotations

import os
import signal
import struct
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from importlib import import_module
from importlib.machinery import PathFinder
from types import ModuleType
from typing import IO

__all__ = ["limit_memory", "read_exactly"]

NO_LIMIT = 0

REQUEST = struct.Struct(">dQQ")
"""What comes before the bytes of a request: seconds, bytes of memory, length."""
ANSWER = struct.Struct(">BQ")
"""What comes before the bytes of an answer: its kind, length."""
NO_ANSWER, WHOLE, PART = range(3)
"""The kinds of answers: not enough memory, the result of the function, what it sent before."""


def read_exactly(stream: IO[bytes], length: int) -> bytes:
    """Read ``length`` bytes; EOFError means that the other process has ended."""
    content = stream.read(length)
    if len(content) < length:
        raise EOFError
    return content


def serve(function: Callable[[bytes], bytes], requests: IO[bytes], answers: IO[bytes]) -> None:
    """Call ``function`` with each request and write the answers,
    until a call needs too much memory.
    """
    with suppress(EOFError):
        while True:
            seconds, memory_bytes, length = REQUEST.unpack(read_exactly(requests, REQUEST.size))
            request = read_exactly(requests, length)
            answer = _call(function, request, seconds, memory_bytes)
            if answer is None:
                _write(answers, NO_ANSWER, b"")
                return
            _write(answers, WHOLE, answer)


def _write(answers: IO[bytes], kind: int, content: bytes) -> None:
    answers.write(ANSWER.pack(kind, len(content)) + content)
    answers.flush()


def _call(
    function: Callable[[bytes], bytes], request: bytes, seconds: float, memory_bytes: int
) -> bytes | None:
    """Return the answer, or ``None`` if there is not enough memory.

    The system ends what takes too long.
    """
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    if memory_bytes:
        limit_memory(memory_bytes)
    try:
        return function(request)
    except MemoryError:
        return None
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


@cache
def _memory_file() -> int:
    return os.open("/proc/self/statm", os.O_RDONLY)


def limit_memory(more_bytes: int) -> None:
    """Let this process take ``more_bytes`` more than it has; on Linux alone."""
    import resource

    with suppress(OSError, ValueError):  # not Linux, or a lower limit of the user
        used = int(os.pread(_memory_file(), 100, 0).split()[0]) * resource.getpagesize()
        _, highest = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (used + more_bytes, highest))


def _import_bare(name: str) -> None:
    """Make the modules of a package importable without running its ``__init__``."""
    parent = sys.modules.get(name.rpartition(".")[0])
    spec = PathFinder.find_spec(name, None if parent is None else parent.__path__)
    if spec is not None and spec.submodule_search_locations is not None:
        package = sys.modules[name] = ModuleType(name)
        package.__path__ = spec.submodule_search_locations


def _main(name: str, bare_packages: str, has_parts: str, *path: str) -> None:
    """Answer the requests on standard input; what the function prints does
    not reach the answers.
    """
    sys.path[:] = path
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    for package in filter(None, bare_packages.split(",")):
        _import_bare(package)
    module, _, function = name.partition(":")
    called = getattr(import_module(module), function)
    if has_parts:
        called = partial(called, send=partial(_write, answers, PART))
    serve(called, sys.stdin.buffer, answers)


if __name__ == "__main__":
    _main(*sys.argv[1:])
