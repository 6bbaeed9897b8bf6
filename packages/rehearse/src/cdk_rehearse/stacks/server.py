"""What the server answers before its services: CloudFormation,
and the response URLs of custom resources.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from werkzeug import Request, Response
from werkzeug.serving import make_server

from ..custom_resources.functions import Answers
from ..errors import ApiError
from ..moto_account import query_protocol
from ..moto_account.differences import Replacement
from ..moto_account.server import answered_first_by, refuse, scope_of
from .cloudformation_api import CloudFormationApi

_MOST_BODY_BYTES = 16 << 20
_POLL_SECONDS = 0.01
#: Services of which all Regions have the same resources.
_GLOBAL = ("cloudfront", "iam", "organizations", "route53", "sts")


def patches(api: CloudFormationApi, answers: Answers) -> list[Replacement]:
    """Answer as CloudFormation while the simulated account runs."""
    return [answered_first_by(partial(_call, api, answers))]


class LoopbackServer:
    """Serves an application on a free port of loopback, at ``url``."""

    def __init__(self, application: Any) -> None:
        self._application = application
        self._start()

    def _start(self) -> None:
        self._server = make_server("127.0.0.1", 0, self._application, threaded=True)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(_POLL_SECONDS,), daemon=True
        )
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.port}"

    def start_in_copy(self) -> None:
        """Listen on a port of its own in a copy of the process, which has no other threads."""
        self._server.socket.close()  # the original still listens
        self._start()

    def stop(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._thread.join()


@contextmanager
def serving(application: Any) -> Iterator[str]:
    """Serve an application on a free port of loopback; yields the URL."""
    server = LoopbackServer(application)
    try:
        yield server.url
    finally:
        server.stop()


def _call(
    api: CloudFormationApi,
    answers: Answers,
    environ: Any,
    start: Any,
    ask_services: Callable[[Any], Iterable[bytes]],
) -> Iterable[bytes]:
    """Answer a request to CloudFormation or of a function, or pass it on to the other services."""
    try:
        response = _reply(api, answers, Request(environ))
    except ApiError as error:
        return refuse(environ, start, "400 Bad Request", error.code, str(error))
    if response is not None:
        return response(environ, start)
    if api.share_iam is not None and scope_of(environ)[1] == "iam":
        return api.share_iam(environ, start, ask_services)
    return ask_services(start)


def _reply(api: CloudFormationApi, answers: Answers, request: Request) -> Response | None:
    """Answer a request to CloudFormation, or the response of a function;
    ``None`` for other requests.
    """
    is_response = request.path.startswith("/answers/")
    region, service = scope_of(request.environ)
    is_elsewhere = region not in ("", api.region) and service not in _GLOBAL
    if is_elsewhere and not is_response and api.elsewhere is not None:
        return api.elsewhere(region, request)
    if not is_response and service != "cloudformation":
        return None
    if (request.content_length or 0) > _MOST_BODY_BYTES:  # every user of the machine can send one
        raise ApiError("ValidationError", f"a body may have at most {_MOST_BODY_BYTES:,} bytes")
    if not is_response and region != api.region:
        fix = f"run `rehearse --serve --region {region}` for those of {region}"
        raise ApiError(
            "ValidationError", f"this simulated account has stacks only in {api.region}; {fix}"
        )
    if not is_response:
        return Response(_answer(api, request), mimetype="text/xml")
    is_expected = answers.receive(request.path.rpartition("/")[2], request.get_json(force=True))
    return Response(status=200 if is_expected else 403)


def _answer(api: CloudFormationApi, request: Request) -> str | bytes:
    """Answer an action in the query protocol."""
    action = request.form["Action"]
    given = query_protocol.request_of("cloudformation", action, request.form)
    return query_protocol.answer_of("cloudformation", action, api.answer(action, given))
