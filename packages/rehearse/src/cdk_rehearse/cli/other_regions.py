"""The other Regions of ``rehearse --serve``: an account each, in a process of its own.

The state of the simulated services belongs to a process. So the account in the first Region
passes on the requests for another Region, whose account starts at the first of them.

IAM has no Regions: each change of it is carried out in the accounts of all Regions. One that
starts later gets the earlier changes.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from http.client import HTTPConnection
from io import BytesIO
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlsplit

from werkzeug import Request, Response

from cdk_rehearse.errors import ApiError
from constructs_triton_core.processes.children import PIPE, Child, own_environment, python_command

_PROGRAM = """
import sys
from cdk_rehearse.cli.serve import serve
serve(as_json=True, region=sys.argv[1], first_url=sys.argv[2])
"""
_REGION = re.compile(r"[a-z]{2,4}(-[a-z]+){1,3}-[0-9]")
_MOST_REGIONS = 8
#: Headers of one connection (RFC 9110, section 7.6.1), and those that the server sets itself.
_OWN_HEADERS = {"connection", "date", "keep-alive", "server", "transfer-encoding"}
#: The header of a change of IAM that another account has carried out: the account's Region.
_ORIGIN = "X-Simulated-Region"
_READS = ("Generate", "Get", "List", "Simulate")


@dataclass(frozen=True)
class _Message:
    """A request that another account gets."""

    method: str
    target: str
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, request: Request) -> _Message:
        target = request.full_path if request.query_string else request.path
        target = request.environ.get("RAW_URI", target)
        # The account takes only requests with its own host, as it refuses those of web pages.
        headers = {name: value for name, value in request.headers if name.lower() != "host"}
        return cls(request.method, target, request.get_data(), headers)

    def send(self, url: str) -> Response:
        """Return the answer of the account at a URL."""
        parts = urlsplit(url)
        connection = HTTPConnection(parts.hostname or "", parts.port)
        try:
            connection.request(self.method, self.target, self.body, self.headers)
            found = connection.getresponse()
            body = found.read()
        finally:
            connection.close()
        passed = [header for header in found.getheaders() if header[0].lower() not in _OWN_HEADERS]
        return Response(body, found.status, passed)

    def from_region(self, region: str) -> _Message:
        """Return the message as one that an account has carried out."""
        return _Message(self.method, self.target, self.body, {**self.headers, _ORIGIN: region})


def _carried_out(
    environ: Any, start: Any, ask_services: Callable[[Any], Iterable[bytes]]
) -> tuple[Iterable[bytes], _Message | None]:
    """Return the answer to a request to IAM, and the change that it has made."""
    message = _Message.of(Request(environ))
    environ["wsgi.input"] = BytesIO(message.body)
    statuses: list[str] = []

    def started(status: str, *others: Any) -> Any:
        statuses.append(status)
        return start(status, *others)

    answer = list(ask_services(started))
    action = parse_qs(message.body.decode(errors="replace")).get("Action", [""])[0]
    is_change = statuses[0].startswith("2") and not action.startswith(_READS)
    return answer, message if is_change else None


@dataclass(frozen=True)
class FirstRegion:
    """The account in the first Region, as one in another Region sees it.

    Args:
        url: Its URL.
        region: The other Region.
    """

    url: str
    region: str

    def share_iam(
        self, environ: Any, start: Any, ask_services: Callable[[Any], Iterable[bytes]]
    ) -> Iterable[bytes]:
        """Answer a request to IAM, and let the first Region carry out the change too."""
        answer, change = _carried_out(environ, start, ask_services)
        if change is not None and _ORIGIN not in change.headers:
            change.from_region(self.region).send(self.url)
        return answer


class OtherRegions:
    """Passes requests on; a context manager that ends the processes it has started.

    Args:
        start: Starts the account of a Region and returns its URL. Default: in a process.
    """

    def __init__(self, start: Callable[[str], str] | None = None) -> None:
        self.first_region = ""
        self.first_url = ""
        """The URL of the account that passes requests on; the others call it for other Regions."""
        self._start = start or self._start_process
        self._urls: dict[str, str] = {}
        self._changes: list[_Message] = []
        self._lock = threading.Lock()
        self._processes = ExitStack()

    def __enter__(self) -> OtherRegions:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._processes.close()

    def answer(self, region: str, request: Request) -> Response:
        """Return the answer of the account in another Region."""
        return _Message.of(request).send(self._url(region))

    def share_iam(
        self, environ: Any, start: Any, ask_services: Callable[[Any], Iterable[bytes]]
    ) -> Iterable[bytes]:
        """Answer a request to IAM, and let the accounts of all Regions carry out the change."""
        answer, change = _carried_out(environ, start, ask_services)
        if change is None:
            return answer
        origin = change.headers.get(_ORIGIN, self.first_region)
        shared = change.from_region(origin)
        with self._lock:
            self._changes.append(shared)
            for region, url in self._urls.items():
                if region != origin:
                    shared.send(url)
        return answer

    def _url(self, region: str) -> str:
        """Return the address of the account in a Region, which is started on its first use."""
        with self._lock:
            if region not in self._urls:
                self._expect_startable(region)
                url = self._start(region)
                for change in self._changes:
                    change.send(url)
                self._urls[region] = url
            return self._urls[region]

    def _expect_startable(self, region: str) -> None:
        """Raise ``ApiError`` if this is no Region, or one too many: each takes 200 MB."""
        if not _REGION.fullmatch(region):
            raise ApiError("ValidationError", f"{region} is not a Region; correct --region")
        if len(self._urls) >= _MOST_REGIONS:
            known = ", ".join(sorted(self._urls))
            raise ApiError(
                "ValidationError",
                f"this simulated account has started {_MOST_REGIONS} other Regions: {known}; "
                "end it with Ctrl-C, and start it again for others",
            )

    def _start_process(self, region: str) -> str:
        """Start an account of another Region in a process, and return its address."""
        command = python_command(_PROGRAM, region, self.first_url)
        options: dict[str, Any] = {"stdout": PIPE, "stderr": None, "text": True}
        process: Child[str] = Child(command, environment=own_environment(), **options)
        self._processes.enter_context(process)
        self._processes.callback(process.end)
        assert process.stdout is not None
        url: str = json.loads(process.stdout.readline())["AWS_ENDPOINT_URL"]
        return url
