"""Answers of an endpoint, which the client reads by every method over both transports."""

from __future__ import annotations

import atexit
import sys
import time
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "packages" / "client" / "tests"))
from hostile_answers import (
    BODIES,
    CHUNKED,
    EVENT,
    FRAMES,
    HEADS,
    answer,
    event_stream,
    frame,
    output,
)
from loopback_server import RawServer, run_raw_server

from constructs_triton_client import HttpTransport, SageMakerTransport, TritonClient, default_config
from constructs_triton_client.wire.json_text import measure_json
from constructs_triton_core.errors import ConstructsTritonError

# A limit that interrupts the client would become one of its errors. By the clock, of which a busy
# machine needs ten times the client's own limit of 3 seconds.
_LONGEST_SECONDS = 30.0


def answers() -> list[bytes]:
    """Valid answers of each kind, and broken ones."""
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in (EVENT, EVENT[:5], EVENT[5:]))
    return [
        *(answer(output()), answer(b'{"error":"no"}', status="400 E")),
        answer(EVENT * 3, "text/event-stream"),
        *(
            CHUNKED + chunks + b"0\r\n\r\n",
            event_stream(frame(EVENT) * 3),
            b"HTTP/1.1 100 C\r\n\r\n" * 3,
        ),
        event_stream(frame(EVENT) + frame(b'{"Message":"m"}', "ModelStreamError", "exception")),
        *(answer(body, kind) for body, kind in BODIES.values() if len(body) < 2000),
        *(event_stream(frames) for frames in FRAMES.values() if len(frames) < 2000),
        *(head for head in HEADS.values() if len(head) < 2000),
    ]


@cache
def _server() -> tuple[RawServer, tuple[TritonClient, TritonClient]]:
    stack = ExitStack()
    atexit.register(stack.close)
    server = stack.enter_context(run_raw_server())
    config = default_config(read_timeout_seconds=3, max_attempts=1)
    maximum = 2**20
    http = HttpTransport(server.url, read_timeout_seconds=3, maximum_response_bytes=maximum)
    remote = SageMakerTransport(
        "demo", endpoint_url=server.url, config=config, maximum_response_bytes=maximum
    )
    return server, (TritonClient(http), TritonClient(remote))


def read_answer(content: bytes, _: Path) -> None:
    """Read an answer; only an error of the client is expected, and no answer takes long."""
    server, clients = _server()
    server.answer = lambda: [content]
    for client in clients:
        for read in (client.infer, lambda fields, client=client: list(client.infer_stream(fields))):
            started = time.monotonic()
            with suppress(ConstructsTritonError):
                read({})
            server.wait()
            assert time.monotonic() - started < _LONGEST_SECONDS, "takes too long"
    assert 0 <= measure_json(content) <= len(content)
