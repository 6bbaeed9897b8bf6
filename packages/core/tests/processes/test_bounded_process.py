"""The process with limits: requests that exceed them end, and do not disturb the others."""

from __future__ import annotations

import io
import os
import signal
from collections.abc import Callable, Iterator
from functools import partial

import called_functions
import pytest

from constructs_triton_core.processes import bounded_process
from constructs_triton_core.processes.bounded_process import BoundedProcess
from constructs_triton_core.processes.bounded_server import ANSWER, REQUEST, serve
from constructs_triton_core.untrusted.budget import OverBudgetError

MEMORY = 64 << 20


@pytest.fixture
def actor() -> Iterator[Callable[[bytes], bytes]]:
    """Return a function that calls ``act`` within half a second and 64 MiB."""
    process = BoundedProcess("called_functions:act")
    yield lambda request: process.call(request, seconds=0.5, memory_bytes=MEMORY)
    process.close()


def test_answers_are_those_of_the_function() -> None:
    """Bytes of any size arrive unchanged, whatever the function prints."""
    process = BoundedProcess("called_functions:reverse")
    for request in (b"", b"abc", bytes(range(256)) * 10_000):
        assert process.call(request, seconds=5, memory_bytes=MEMORY) == request[::-1]
    process.close()


def test_one_process_answers_all_requests(actor: Callable[[bytes], bytes]) -> None:
    """Starting takes longer than most requests, so it happens once."""
    assert actor(b"") == actor(b"") != str(os.getpid()).encode()


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        (b"loop", "it takes more than 0.5 s of processor time"),
        (b"allocate", "it takes more than 64 MiB of memory"),
        (b"crash", "it takes more than 64 MiB of memory"),  # C++ code that gets no memory may abort
    ],
)
def test_limits_end_a_request(
    request_: bytes, reason: str, actor: Callable[[bytes], bytes]
) -> None:
    """A request that exceeds a limit raises an error, and the next one is answered again.

    The process contains the crashes of ``onnx``, such as https://github.com/onnx/onnx/issues/6185.
    """
    before = actor(b"")
    with pytest.raises(OverBudgetError, match=reason):
        actor(request_)
    assert actor(b"") != before


def test_many_hostile_files_do_not_take_many_limits(
    actor: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After some processes had to be ended, no other one is started."""
    monkeypatch.setattr(bounded_process, "_MOST_FAILURES", 1)
    with pytest.raises(OverBudgetError, match="of memory"):
        actor(b"crash")
    with pytest.raises(OverBudgetError, match="1 files before it took too much time or memory"):
        actor(b"")


def test_forked_process_has_its_own(actor: Callable[[bytes], bytes]) -> None:
    """Two processes that share the pipes of one would read each other's answers."""
    before = actor(b"")
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, actor(b""))
        os._exit(0)
    os.waitpid(child, 0)
    forked = os.read(reader, 100)
    assert actor(b"") == before != forked
    os.kill(int(forked), signal.SIGKILL)
    os.close(reader)
    os.close(writer)


def test_serving_ends_with_the_requests() -> None:
    """The process ends when nothing is left to read, and after a request without enough memory."""
    request = REQUEST.pack(5, 1 << 30, 3) + b"abc"
    answers = io.BytesIO()
    serve(called_functions.reverse, io.BytesIO(request * 2), answers)
    assert answers.getvalue() == (ANSWER.pack(True, 3) + b"cba") * 2

    def fail(_: bytes) -> bytes:
        raise MemoryError

    answers = io.BytesIO()
    serve(fail, io.BytesIO(request * 2), answers)
    assert answers.getvalue() == ANSWER.pack(False, 0)


def test_interrupted_request_ends_the_process(
    actor: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After Ctrl-C, the answer of the interrupted request is not taken for that of the next one."""
    before = actor(b"")

    def interrupt(*_: object) -> bytes:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(bounded_process, "read_exactly", interrupt)
        with pytest.raises(KeyboardInterrupt):
            actor(b"")
    assert actor(b"") != before


def test_parts_arrive_before_the_answer() -> None:
    """What a function sends is handed over at once, and the next request gets its own answer."""
    process = BoundedProcess("called_functions:count", has_parts=True)
    parts: list[bytes] = []
    call = partial(process.call, seconds=5, memory_bytes=MEMORY)
    for _ in range(2):
        assert call(b"3", receive_part=parts.append) == b"end"
    assert parts == [b"0", b"1", b"2"] * 2

    def refuse(_: bytes) -> None:
        raise TimeoutError("the reader of the parts")

    with pytest.raises(TimeoutError, match="the reader of the parts"):
        call(b"3", receive_part=refuse)
    assert call(b"0", receive_part=refuse) == b"end"
    process.close()


def test_function_that_waits_for_ever_is_ended() -> None:
    """A call takes no processor time while it waits, so that only its silence ends it."""
    process = BoundedProcess("called_functions:act")
    with pytest.raises(OverBudgetError, match="its process does not answer"):
        process.call(b"sleep", seconds=5, memory_bytes=MEMORY, silent_seconds=0.5)
    assert process.call(b"", seconds=5, memory_bytes=MEMORY, silent_seconds=5)
    process.close()
