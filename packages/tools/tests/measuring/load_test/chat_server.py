"""A server on loopback that streams chat completions as vLLM does, and as SageMaker passes them on.

It has the paths of a container (``/invocations``), of OpenAI (``/v1/chat/completions``) and of
SageMaker's runtime API. The parts of a stream begin and end within events.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from chat_streams import CHUNKS, WHOLE, events

from constructs_triton_tools.local.gateway.relay import payload_part

#: Seconds to the first token, after the event of the role, and to each other one.
FIRST, GAP = 0.2, 0.05
_CUT = 20  # bytes of the next event that arrive with an event


@dataclass
class ChatServer:
    """The server's URL, the chunks that it streams, and the paths,
    headers and bodies that it received.
    """

    url: str
    chunks: list[dict[str, Any]] = field(default_factory=lambda: list(CHUNKS))
    received: list[tuple[str, dict[str, str], dict[str, Any]]] = field(default_factory=list)


@contextmanager
def run_chat_server() -> Iterator[ChatServer]:
    """Run the server for the time of a test."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            server.received.append((self.path, dict(self.headers), body))
            is_stream, is_framed = bool(body.get("stream")), self.path.endswith("-response-stream")
            answer = events(server.chunks) if is_stream else json.dumps(WHOLE).encode()
            self.send_response(200)
            kind = "text/event-stream; charset=utf-8" if is_stream else "application/json"
            self.send_header(
                "Content-Type", "application/vnd.amazon.eventstream" if is_framed else kind
            )
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for number, part in enumerate(_parts(answer) if is_stream else [answer]):
                if is_stream and number:
                    time.sleep(FIRST if number == 1 else GAP)
                self._send(payload_part(part) if is_framed else part)
            self._send(b"")

        def _send(self, part: bytes) -> None:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))

        def log_message(self, format: str, *args: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    server = ChatServer(f"http://127.0.0.1:{http.server_port}")
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join()


def _parts(stream: bytes) -> list[bytes]:
    """The end of an event with the start of the next one, for all but the first and the last."""
    ends = [at + 2 for at in range(len(stream)) if stream.startswith(b"\n\n", at)]
    starts = [0, *(end + _CUT for end in ends[:-2])]
    return [stream[at:until] for at, until in zip(starts, [*starts[1:], len(stream)], strict=True)]
