"""The HTTP server of CloudFormation's API and of the response URLs of custom resources."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from ..custom_resources.functions import Answers
from ..errors import ApiError
from ..services.moto_requests import HEADERS, refusal
from .cloudformation_api import CloudFormationApi
from .deployment import Deployer
from .query_protocol import decode_request, encode_answer, encode_error
from .stack import Stacks

_MOST_BODY_BYTES = 16 << 20


class CloudFormationServer:
    """Listens on a free port of loopback while its context is open."""

    def __init__(self, stacks: Stacks, deployer: Deployer, answers: Answers) -> None:
        self._api = CloudFormationApi(stacks, deployer)
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self._api, answers))
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"
        answers.base_url = self.url

    def __enter__(self) -> CloudFormationServer:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        for operation in self._api.threads:
            operation.join()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


def stop_server(stop: Callable[[], object], address: tuple[str, int]) -> None:
    """Stop moto's server with its ``stop``, which waits half a second unless a connection comes."""
    stopping = threading.Thread(target=stop)
    stopping.start()
    while stopping.is_alive():
        with suppress(OSError):
            socket.create_connection(address, timeout=1).close()
        stopping.join(0.01)


def _length(given: str | None) -> int | None:
    """Return the length of a body; ``None`` beyond a bound, because every user can send one."""
    text = given or "0"
    is_number = text.isascii() and text.isdecimal() and len(text) < 20
    return int(text) if is_number and int(text) <= _MOST_BODY_BYTES else None


def _handler(api: CloudFormationApi, answers: Answers) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle(self) -> None:
            with suppress(ConnectionError):  # the client has closed it; http.server would print a traceback
                super().handle()

        def do_POST(self) -> None:
            if self._is_refused() or (given := self._body()) is None:
                return
            try:
                request = decode_request(given)
                body, status = encode_answer(request.get("Action", ""), api.answer(request)), 200
            except ApiError as error:
                body, status = encode_error(error.code, str(error)), 400
            except Exception as error:  # otherwise the client would wait forever
                body, status = encode_error("InternalFailure", repr(error)), 400
            self._reply(status, body)

        def do_PUT(self) -> None:
            if self._is_refused() or (given := self._body()) is None:
                return
            try:
                is_expected = answers.receive(self.path.rpartition("/")[2], json.loads(given))
            except (ValueError, RecursionError):
                self._refuse("the body is not JSON")
                return
            self._reply(200 if is_expected else 403, "")

        def _is_refused(self) -> bool:
            """Answer 403 to a request that a foreign web page has caused."""
            given = {name: self.headers.get_all(name, ()) for name in HEADERS}
            body = refusal({name: ",".join(values) for name, values in given.items() if values})
            if body is not None:
                self.close_connection = True  # the request's body is not read
                self._reply(403, body.decode())
            return body is not None

        def _body(self) -> str | None:
            length = _length(self.headers.get("Content-Length"))
            if length is None:
                self._refuse(f"a body may have at most {_MOST_BODY_BYTES:,} bytes")
                return None
            return self.rfile.read(length).decode(errors="replace")

        def _refuse(self, reason: str) -> None:
            self.close_connection = True  # the body, or what follows it, is not read
            self._reply(400, encode_error("ValidationError", reason))

        def _reply(self, status: int, body: str) -> None:
            content = body.encode()
            self.send_response(status)
            self.send_header("Content-Type", "text/xml")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *arguments: object) -> None: ...

    return Handler
