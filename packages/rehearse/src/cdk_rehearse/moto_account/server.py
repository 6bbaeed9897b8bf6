"""The server: which requests it answers, and what it answers in place of a page or a traceback.

Requests that a foreign web page has caused are rejected. Those for what moto does not have are
answered in the form of AWS.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from typing import Any
from xml.sax.saxutils import escape

from moto.core import responses, utils
from moto.moto_server.werkzeug_app import DomainDispatcherApplication

from constructs_triton_core.untrusted.web_pages import foreign_header

from .differences import Difference, Replacement

HEADERS = ("Host", "Origin", "Sec-Fetch-Site")
"""The headers that a refusal depends on."""

_HINT = "call the address of the simulated account"
_FORM = "application/x-www-form-urlencoded"
_XML_SERVICES = ("cloudfront", "route53", "s3")
_MISSING = "501 Not Implemented"  # SDKs do not send the request again


_FOREIGN = Difference(
    DomainDispatcherApplication,
    "__call__",
    "has no loopback address; moto answers every host and origin, and errors with a page",
    since="5.1.22",
)
_ANSWERED_FIRST = Difference(
    DomainDispatcherApplication,
    "__call__",
    "has a CloudFormation that replaces resources and rolls back, and response URLs of custom "
    "resources; other rooms answer them",
    since="5.1.22",
)
_SERVICE_OF_HOST = Difference(
    DomainDispatcherApplication,
    "get_backend_for_host",
    "(speed) a service is searched once, not for each request; "
    "one that moto does not have is no AttributeError",
    since="5.2.0",
)
_OPERATIONS = Difference(
    responses,
    "method_names_from_class",
    "(speed) the operations of a service are searched once, not for each request",
    since="5.1.22",
)

_REGION_AND_SERVICE = 5
"""The parts of a credential scope: access key ID, date, Region, service and ``aws4_request``."""


def patches() -> list[Replacement]:
    """What needs nothing but moto itself."""
    find = cache(partial(_find, DomainDispatcherApplication.get_backend_for_host))
    return [
        _FOREIGN.wrapped_by(_call),
        _SERVICE_OF_HOST.replaced_by(find),
        _OPERATIONS.replaced_by(cache(utils.method_names_from_class)),
    ]


def answered_first_by(
    reply: Callable[[dict[str, Any], Any, Callable[[Any], Iterable[bytes]]], Iterable[bytes]],
) -> Replacement:
    """Answer requests by a function of WSGI, which may ask the services instead.

    It asks them with what begins a response, its own ``start_response`` or another one.
    """

    def around(
        original: Callable[..., Iterable[bytes]],
        application: Any,
        environ: dict[str, Any],
        start_response: Any,
    ) -> Iterable[bytes]:
        return reply(environ, start_response, lambda start: original(application, environ, start))

    return _ANSWERED_FIRST.wrapped_by(around)


def refusal(headers: Mapping[str, str | None]) -> bytes | None:
    """Return the body of a refusal, or ``None`` for a request of this machine."""
    found = ([value] if (value := headers.get(name)) is not None else [] for name in HEADERS)
    wrong = foreign_header(*found)
    if wrong is None:
        return None
    return json.dumps({"__type": "AccessDeniedException", "message": f"{wrong}; {_HINT}"}).encode()


def _call(
    original: Callable[..., Any], application: Any, environ: dict[str, Any], start_response: Any
) -> Iterable[bytes]:
    """Answer a request as AWS does, or refuse it if a web page sent it."""
    body = refusal(
        {name: environ.get(f"HTTP_{name.upper().replace('-', '_')}") for name in HEADERS}
    )
    if body is None:
        return _answer_as_aws(
            lambda start: original(application, environ, start), environ, start_response
        )
    content = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
    start_response("403 Forbidden", content)
    return [body]


def _find(original: Callable[..., Any], application: Any, host: str | None) -> Any:
    is_address = host is not None and "." in host
    if is_address and not any(
        pattern.match(f"http://{host}") for _, pattern in application.backend_url_patterns
    ):
        raise NotImplementedError(f"The simulated account does not have {host}")
    return original(application, host)


def _answer_as_aws(
    ask: Callable[[Callable[..., None]], Iterable[bytes]],
    environ: Mapping[str, Any],
    start_response: Any,
) -> Iterable[bytes]:
    """Return the answer of moto's application ``ask``;
    an error of AWS in place of a page or an exception.
    """
    begun: list[Any] = []
    try:
        answer = ask(lambda *arguments: begun.extend(arguments))
    except NotImplementedError as error:
        return refuse(environ, start_response, _MISSING, "NotImplemented", str(error))
    except Exception as error:  # otherwise the client gets a page and the terminal a traceback
        return refuse(environ, start_response, "400 Bad Request", "InternalFailure", repr(error))
    status, headers, *_ = begun
    # moto's answer to HEAD has the type of a page too, for example that of an object that does not
    # exist.
    is_head = environ["REQUEST_METHOD"] == "HEAD"
    if status[:3] == "404" and not is_head and _is_page(headers):  # no path of the service fits
        request = f"{environ['REQUEST_METHOD']} {environ['PATH_INFO']}"
        message = f"The simulated account does not have {request} of {scope_of(environ)[1]}"
        return refuse(environ, start_response, _MISSING, "NotImplemented", message)
    start_response(*begun)
    return answer


def _is_page(headers: Iterable[tuple[str, str]]) -> bool:
    return any(
        name.lower() == "content-type" and value.startswith("text/html") for name, value in headers
    )


def scope_of(environ: Mapping[str, Any]) -> tuple[str, str]:
    """Return Region and service of the credential scope of a signed request."""
    scope = environ.get("HTTP_AUTHORIZATION", "").partition(",")[0].split("/")
    return (scope[-3], scope[-2]) if len(scope) == _REGION_AND_SERVICE else ("", "this service")


def refuse(
    environ: Mapping[str, Any], start_response: Any, status: str, code: str, message: str
) -> list[bytes]:
    """Answer an error in XML to the services whose protocol is XML, and in JSON to the others."""
    if environ.get("CONTENT_TYPE", "").startswith(_FORM) or scope_of(environ)[1] in _XML_SERVICES:
        kind = "text/xml"
        error = f"<Error><Code>{code}</Code><Message>{escape(message)}</Message></Error>"
        body = f"<ErrorResponse>{error}<RequestId>loopback</RequestId></ErrorResponse>".encode()
    else:
        kind = "application/json"
        body = json.dumps({"__type": code, "message": message}).encode()
    start_response(status, [("Content-Type", kind), ("Content-Length", str(len(body)))])
    return [body]
