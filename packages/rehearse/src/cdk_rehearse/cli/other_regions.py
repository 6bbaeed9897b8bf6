"""The other Regions of ``rehearse --serve``: an account each, in a process of its own.

The state of the simulated services belongs to a process. So the account in the first Region
passes on the requests for another Region, whose account starts at the first of them.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from contextlib import ExitStack
from http.client import HTTPConnection
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

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


class OtherRegions:
    """Passes requests on; a context manager that ends the processes it has started.

    Args:
        start: Starts the account of a Region and returns its URL. Default: in a process.
    """

    def __init__(self, start: Callable[[str], str] | None = None) -> None:
        self.first_url = ""
        """The URL of the account that passes requests on; the others call it for other Regions."""
        self._start = start or self._start_process
        self._urls: dict[str, str] = {}
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
        parts = urlsplit(self._url(region))
        connection = HTTPConnection(parts.hostname or "", parts.port)
        # The account takes only requests with its own host, as it refuses those of web pages.
        headers = {name: value for name, value in request.headers if name.lower() != "host"}
        target = request.full_path if request.query_string else request.path
        raw_target = request.environ.get("RAW_URI", target)
        try:
            connection.request(request.method, raw_target, request.get_data(), headers)
            found = connection.getresponse()
            body = found.read()
        finally:
            connection.close()
        passed = [each for each in found.getheaders() if each[0].lower() not in _OWN_HEADERS]
        return Response(body, found.status, passed)

    def _url(self, region: str) -> str:
        with self._lock:
            if region not in self._urls:
                self._expect_startable(region)
                self._urls[region] = self._start(region)
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
        command = python_command(_PROGRAM, region, self.first_url)
        options: dict[str, Any] = {"stdout": PIPE, "stderr": None, "text": True}
        process: Child[str] = Child(command, environment=own_environment(), **options)
        self._processes.enter_context(process)
        self._processes.callback(process.end)
        assert process.stdout is not None
        url: str = json.loads(process.stdout.readline())["AWS_ENDPOINT_URL"]
        return url
