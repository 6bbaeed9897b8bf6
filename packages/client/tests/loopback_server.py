"""Loopback servers with scripted answers: one that speaks HTTP, and one that sends any bytes."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import boto3
import numpy as np

from constructs_triton_client import SageMakerTransport, default_config
from constructs_triton_client.wire import encode_response


@dataclass
class Exchange:
    """One request as the server received it."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Answer:
    """One response of the server; ``length`` replaces the Content-Length of ``body``."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    length: int | None = None


@dataclass
class Server:
    """A server that sends its answers in order and repeats the last one."""

    url: str
    answers: list[Answer] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)

    def next_answer(self, exchange: Exchange) -> Answer:
        self.exchanges.append(exchange)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@contextmanager
def run_server() -> Iterator[Server]:
    """Run a scripted server for the time of a test."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            answer = script.next_answer(Exchange(self.path, dict(self.headers), body))
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            if "Transfer-Encoding" not in answer.headers:
                length = len(answer.body) if answer.length is None else answer.length
                self.send_header("Content-Length", str(length))
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    httpd.daemon_threads = True
    script = Server(f"http://127.0.0.1:{httpd.server_address[1]}")
    thread = threading.Thread(target=httpd.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield script
    httpd.shutdown()
    httpd.server_close()
    thread.join()


def binary_answer() -> Answer:
    """Return a binary response with one output."""
    response = encode_response(
        {"Y": np.array([1.5], dtype="f4")}, model_name="m", model_version="3"
    )
    return Answer(
        200, response.body, {"Content-Type": response.content_type, "x-amzn-RequestId": "r-1"}
    )


SESSION = boto3.Session("akid", "secret", region_name="eu-central-1")


def sagemaker_transport(url: str, **options: Any) -> SageMakerTransport:
    """Return a transport to a server that may be broken: it waits 10 s,
    and sends a request once.
    """
    config = default_config(read_timeout_seconds=10, max_attempts=1)
    return SageMakerTransport("demo", session=SESSION, endpoint_url=url, config=config, **options)


@dataclass
class RawServer:
    """A server that answers each request with the bytes of ``answer`` and closes the connection."""

    url: str
    answer: Callable[[], Iterable[bytes]] = tuple
    threads: list[threading.Thread] = field(default_factory=list)

    def wait(self) -> None:
        """Wait until all connections are closed."""
        while self.threads:
            self.threads.pop().join(30)


@contextmanager
def run_raw_server() -> Iterator[RawServer]:
    """Run a server whose answers need not be HTTP for the time of a test."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = RawServer(f"http://127.0.0.1:{listener.getsockname()[1]}")

        def accept() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                thread = threading.Thread(
                    target=_answer, args=(connection, server.answer), daemon=True
                )
                server.threads.append(thread)
                thread.start()

        threading.Thread(target=accept, daemon=True).start()
        yield server
        listener.shutdown(socket.SHUT_RDWR)


def _answer(connection: socket.socket, answer: Callable[[], Iterable[bytes]]) -> None:
    with suppress(OSError), connection, connection.makefile("rb") as request:
        size = 0
        while (line := request.readline()) not in (b"\r\n", b""):
            name, _, value = line.partition(b":")
            size = int(value) if name.lower() == b"content-length" else size
        request.read(size)
        for piece in answer():
            connection.sendall(piece)
