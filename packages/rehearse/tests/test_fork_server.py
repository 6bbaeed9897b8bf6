"""The server that forks for each call."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest

from cdk_rehearse.custom_resources.fork_server import ForkServer

MEMORY = 1 << 30


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    """A server whose calls do what the request names."""
    server = ForkServer("called_functions:act")
    yield server
    server.close()


def test_each_call_has_a_process(server: ForkServer) -> None:
    """Two calls have different processes, neither of which is this one."""
    first, second = (server.call(b"", seconds=5, memory_bytes=MEMORY) for _ in range(2))
    assert len({first, second, str(os.getpid()).encode()}) == 3


@pytest.mark.parametrize("request_", [b"crash", b"raise", b"allocate", b"sleep"])
def test_call_that_ends_early_or_takes_too_long_has_no_answer(
    server: ForkServer, request_: bytes
) -> None:
    """Crashes, exceptions, and calls beyond the limits of memory or time end;
    the server goes on.
    """
    assert server.call(request_, seconds=1, memory_bytes=1 << 28) is None
    assert server.call(b"", seconds=5, memory_bytes=MEMORY) is not None


def test_calls_run_at_the_same_time(server: ForkServer) -> None:
    """A call that takes long does not delay another one."""
    limits = {"seconds": 3, "memory_bytes": MEMORY}
    slow = threading.Thread(target=server.call, args=(b"sleep",), kwargs=limits)
    slow.start()
    assert server.call(b"", seconds=3, memory_bytes=MEMORY) is not None
    assert slow.is_alive()
    slow.join()


def test_calls_do_not_get_the_callers_credentials(
    server: ForkServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment is that of foreign code, and a closed server starts again."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    server.close()
    assert server.call(b"environment", seconds=5, memory_bytes=MEMORY) == b""


def test_server_that_was_killed_is_started_again(server: ForkServer) -> None:
    """A machine without memory may kill it; the next call starts another one."""
    server.call(b"", seconds=5, memory_bytes=MEMORY)
    assert server._server is not None
    server._server.kill()
    os.waitid(os.P_PID, server._server.pid, os.WEXITED | os.WNOWAIT)
    assert server.call(b"", seconds=5, memory_bytes=MEMORY) is not None


def test_copy_of_the_process_starts_a_killed_server_again(server: ForkServer) -> None:
    """A copy shares the server, and starts one of its own when that has ended."""
    server.call(b"", seconds=5, memory_bytes=MEMORY)
    assert server._server is not None
    shared = server._server
    reader, writer = os.pipe()
    copy = os.fork()
    if copy == 0:
        try:
            answer = server.call(b"", seconds=5, memory_bytes=MEMORY)
            shared.kill()
            os.write(writer, b"first " if answer else b"none ")
            while server.call(b"", seconds=5, memory_bytes=MEMORY) is None:
                pass
            os.write(writer, b"second")
            server.close()
        finally:
            os._exit(0)
    os.waitpid(copy, 0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answers:
        assert answers.read() == b"first second"
    assert server.call(b"", seconds=5, memory_bytes=MEMORY) is not None
