"""The errors of SageMaker's runtime API.

Source: botocore's service model of sagemaker-runtime (rest-json: the header ``x-amzn-errortype`` contains
the error's name) and messages that the service has been seen to send.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from uuid import uuid4

from aiohttp import web

from constructs_triton_core.untrusted.web_pages import foreign_header
from constructs_triton_tools.local.sources.specs import EndpointSpec

#: The longest message that the service model allows, in characters.
_MESSAGE_LIMIT = 2048


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
        429, "ModelNotReadyException", f"Model {target_model} is not ready for inference; please try again"
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
    console = f"https://{endpoint.region}.console.aws.amazon.com/cloudwatch/home?region={endpoint.region}"
    return RuntimeApiError(
        424,
        "ModelError",
        f'Received {side} error ({status}) from primary with message "{text[:1024]}". '
        f"See {console}#logEventViewer:group={group} in account {endpoint.account} for more information.",
        OriginalStatusCode=status,
        OriginalMessage=text[:_MESSAGE_LIMIT],
        LogStreamArn=f"arn:aws:logs:{endpoint.region}:{endpoint.account}:log-group:{group}",
    )


_HEADERS = ("Host", "Origin", "Sec-Fetch-Site")


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
