"""The errors of SageMaker's runtime API.

Source: botocore's service model of sagemaker-runtime (rest-json: the header ``x-amzn-errortype``
contains the error's name) and messages that the service has been seen to send.

The limits of the runtime API's headers: lengths, patterns and numbers.

Source: botocore's service model of sagemaker-runtime. The words of an error are those of AWS's API;
a sensitive value is left out of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from typing import Any
from uuid import uuid4

from aiohttp import web
from botocore.loaders import Loader
from botocore.model import ServiceModel, Shape, StructureShape

from constructs_triton_core.untrusted.web_pages import foreign_header
from constructs_triton_tools.local.sources.specs import EndpointSpec

#: The longest message that the service model allows, in characters.
_MESSAGE_LIMIT = 2048
_HEADERS = ("Host", "Origin", "Sec-Fetch-Site")
#: A value of a message is cut to this length.
_SHOWN = 100
#: Java's classes of characters, as Python writes them. A header contains only ASCII.
_CLASSES = {r"\p{ASCII}": r"[\x00-\x7f]", r"[\p{Print}]": r"[ -~]", r"\S": r"[!-~]"}
#: More digits than any accepted number has; ``int`` rejects thousands of them with another error.
_MOST_DIGITS = 9


class RuntimeApiError(Exception):
    """An error response of the runtime API: its HTTP status, name and members."""

    def __init__(self, status: int, code: str, message: str, **members: object) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.members = {"Message": message[:_MESSAGE_LIMIT], **members}

    def body(self) -> bytes:
        """Return the body of the response."""
        return json.dumps(self.members).encode()

    def response(self) -> web.Response:
        """Return the error as SageMaker's runtime API sends it."""
        return web.Response(
            status=self.status,
            body=self.body(),
            content_type="application/json",
            headers={"x-amzn-errortype": self.code, "x-amzn-RequestId": str(uuid4())},
        )


def validation_error(message: str) -> RuntimeApiError:
    """Return the error for a wrong request."""
    return RuntimeApiError(400, "ValidationError", message)


def model_not_ready(target_model: str) -> RuntimeApiError:
    """Return the error for a model that is still being loaded. Loading continues."""
    return RuntimeApiError(
        429,
        "ModelNotReadyException",
        f"Model {target_model} is not ready for inference; please try again",
    )


def service_unavailable(message: str) -> RuntimeApiError:
    """Return the error for a container that is not running."""
    return RuntimeApiError(503, "ServiceUnavailable", message)


def model_error(
    endpoint: EndpointSpec, status: int, original: bytes | str, log_group: str | None = None
) -> RuntimeApiError:
    """Return the error for a container that answered with an error, or (status 0) not in time.

    ``log_group`` is that of the container (default: the endpoint's).
    """
    text = original if isinstance(original, str) else original.decode("utf-8", "replace")
    side = "client" if 400 <= status < 500 else "server"
    group = log_group or f"/aws/sagemaker/Endpoints/{endpoint.name}"
    console = (
        f"https://{endpoint.region}.console.aws.amazon.com/cloudwatch/home?region={endpoint.region}"
    )
    return RuntimeApiError(
        424,
        "ModelError",
        f'Received {side} error ({status}) from primary with message "{text[:1024]}". See '
        f"{console}#logEventViewer:group={group} in account "
        f"{endpoint.account} for more information.",
        OriginalStatusCode=status,
        OriginalMessage=text[:_MESSAGE_LIMIT],
        LogStreamArn=f"arn:aws:logs:{endpoint.region}:{endpoint.account}:log-group:{group}",
    )


@web.middleware
async def refuse_foreign_requests(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Answer 403 unless the host, and the origin if there is one, are loopback."""
    headers = (request.headers.getall(name, []) for name in _HEADERS)
    wrong = foreign_header(*headers)
    if wrong is not None:
        message = f"{wrong}; call the address that `local up` prints"
        return RuntimeApiError(403, "AccessDeniedException", message).response()
    return await handler(request)


def check_headers(operation: str, headers: Mapping[str, str]) -> None:
    """Check the headers of a request."""
    wrong = []
    for header, name, shape in _header_members(operation):
        value = headers.get(header)
        if value is None:
            continue
        constraint = _broken_constraint(shape, value)
        if constraint is None:
            continue
        is_sensitive = shape.metadata.get("sensitive")
        shown = "" if is_sensitive else f"{value[:_SHOWN]!r} "
        wrong.append(
            f"Value {shown}at '{name}' failed to satisfy constraint: Member must {constraint}"
        )

    if wrong:
        count = f"{len(wrong)} validation error{'s' if len(wrong) > 1 else ''} detected"
        raise validation_error(f"{count}: {'; '.join(wrong)}")


def body_limit(operation: str) -> int:
    """Return the size of the largest body in bytes."""
    return int(_members(operation)["Body"].metadata["max"])


def _broken_constraint(shape: Shape, value: str) -> str | None:
    """Return the first constraint that a value breaks, in the words of the API."""
    least = shape.metadata.get("min")
    most = shape.metadata.get("max")
    if shape.type_name == "integer":
        size = int(value[:_MOST_DIGITS]) if value.isdecimal() else -1
        word = "value"
    else:
        size = len(value)
        word = "length"
    if most is not None and size > most:
        return f"have {word} less than or equal to {most}"
    if least is not None and size < least:
        return f"have {word} greater than or equal to {least}"
    pattern = shape.metadata.get("pattern")
    if pattern is not None and not _compiled(pattern).fullmatch(value):
        return f"satisfy regular expression pattern: {pattern}"
    return None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    for java, python in _CLASSES.items():
        pattern = pattern.replace(java, python)
    return re.compile(pattern.replace(r"\z", r"\Z"))


@cache
def _header_members(operation: str) -> tuple[tuple[str, str, Shape], ...]:
    """Return each header of a request, with its name in messages."""
    return tuple(
        (shape.serialization["name"], name[0].lower() + name[1:], shape)
        for name, shape in _members(operation).items()
        if shape.serialization.get("location") == "header"
    )


@cache
def _members(operation: str) -> Mapping[str, Any]:
    shape = _model().operation_model(operation).input_shape
    return shape.members if isinstance(shape, StructureShape) else {}


@cache
def _model() -> ServiceModel:
    return ServiceModel(Loader().load_service_model("sagemaker-runtime", "service-2"))


async def refuse_other_services(request: web.Request) -> web.Response:
    """Answer a call of another service of AWS, which ``AWS_ENDPOINT_URL`` sends here too.

    Services whose requests are JSON name their operation in ``X-Amz-Target``. Those of the query
    protocol send a form, and read XML.
    """
    target = request.headers.get("X-Amz-Target", "")
    absent = target.partition(".")[2] or "API beside the runtime"
    message = (
        f"this is a local run, which has no {absent}; "
        "`constructs-triton local status` shows its endpoints, and its page the diagnosis"
    )
    if target:
        body = json.dumps({"__type": "UnsupportedOperationException", "message": message})
        return web.Response(status=400, text=body, content_type="application/x-amz-json-1.1")
    error = f"<Code>UnsupportedOperation</Code><Message>{message}</Message>"
    xml = f"<ErrorResponse><Error>{error}</Error></ErrorResponse>"
    return web.Response(status=400, text=xml, content_type="text/xml")
