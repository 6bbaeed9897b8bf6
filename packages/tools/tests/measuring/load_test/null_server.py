"""A server on loopback that answers every request at once, and keeps the POSTs that it received."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Received = tuple[str, dict[str, str], bytes]


@dataclass
class NullServer:
    """The server's URL, the requests it received, and the status, type,
    body and headers of its answers.
    """

    url: str
    received: list[Received] = field(default_factory=list)
    status: Callable[[int], int] = lambda _: 200
    content_type: str = "application/json"
    answer: bytes | Callable[[Received], bytes] = b'{"message": "no"}'
    headers: Mapping[str, str] = field(default_factory=dict)


@contextmanager
def run_null_server() -> Iterator[NullServer]:
    """Run the server for the time of a test."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            server.received.append((self.path, dict(self.headers), body))
            self._answer(server.status(len(server.received)))

        def do_GET(self) -> None:
            self._answer(200)

        def _answer(self, status: int) -> None:
            answer = (
                server.answer(server.received[-1]) if callable(server.answer) else server.answer
            )
            self.send_response(status)
            self.send_header("Content-Type", server.content_type)
            for name, value in {**server.headers, "Content-Length": str(len(answer))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    server = NullServer(f"http://127.0.0.1:{http.server_port}")
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()
        thread.join()
