"""What an endpoint's refusals mean, one class for each that calls for another reaction.

::

    InvocationError
    ├── EndpointThrottledError   the account's or the endpoint's rate is used up: wait, or add instances
    ├── ModelNotReadyError       a multi-model endpoint is still loading the model: ask again soon
    └── ModelOutOfMemoryError    the container answered 507: the model does not fit beside the others

Source: botocore sagemaker-runtime service model, "InvokeEndpoint" errors; triton server
``src/sagemaker_server.cc`` for 507.
"""

from __future__ import annotations

import json
from typing import Any

from constructs_triton.errors import InvocationError

__all__ = [
    "EndpointThrottledError",
    "ModelNotReadyError",
    "ModelOutOfMemoryError",
    "build_invocation_error",
    "read_model_message",
]

INSUFFICIENT_STORAGE = 507
_THROTTLED_CODES = {"ThrottlingException", "Throttling", "TooManyRequestsException", "RequestLimitExceeded"}
_LONGEST_MESSAGE = 2000
# botocore's and urllib3's own names for what never reached the service.
_MENDS_BY_CODE = {
    "ConnectTimeoutError": "see that the address is right and can be reached from here",
    "EndpointConnectionError": "see that something listens at this address",
    "InvalidRegionError": "give region_name as AWS writes it, such as us-east-1",
    "LocationParseError": "see that the address reads http://host:port",
    "LocationValueError": "see that the address reads http://host:port",
    "NewConnectionError": "see that something listens at this address",
    "NoCredentialsError": "log in to AWS, or give a session with credentials",
    "NoRegionError": "give region_name, or set AWS_DEFAULT_REGION",
    "ProfileNotFound": "see AWS_PROFILE and the profiles of the AWS configuration file",
    "ReadTimeoutError": "see the endpoint's log; a model that needs more than 60 s wants infer_async",
}


class EndpointThrottledError(InvocationError):
    """More requests than the account or the endpoint takes, after all retries."""


class ModelNotReadyError(InvocationError):
    """The model of a multi-model endpoint is still being loaded, after all retries; it goes on loading."""


class ModelOutOfMemoryError(InvocationError):
    """The container could not load or run the model for want of memory (status 507)."""


def build_invocation_error(
    endpoint: str,
    what: str,
    *,
    code: str = "",
    status: int | None = None,
    model_message: str | None = None,
    request_id: str | None = None,
) -> InvocationError:
    """The error of the class that ``code``, the service's name for it, and ``status`` call for."""
    kind, mend = _classify(code, status)
    said = f"status {status}" if status else code or "no answer"
    message = f"endpoint {endpoint}: {what}, got {said}"
    if model_message:
        message += f": {model_message[:_LONGEST_MESSAGE]}"
    return kind(f"{message}; {mend}", status=status, model_message=model_message, request_id=request_id)


def _classify(code: str, status: int | None) -> tuple[type[InvocationError], str]:
    if status == INSUFFICIENT_STORAGE:
        return ModelOutOfMemoryError, "use a larger instance, or fewer or smaller models on it"
    if code == "ModelNotReadyException":
        return ModelNotReadyError, "the model goes on loading for up to 360 s, so ask again"
    if code in _THROTTLED_CODES or status == 429:
        return EndpointThrottledError, "send fewer requests at a time, or add instances"
    if code in {"ValidationError", "ValidationException"} or status in {400, 404}:
        return InvocationError, "compare the request with the endpoint and the model's configuration"
    return InvocationError, _MENDS_BY_CODE.get(code, "see the endpoint's log for the cause")


def read_model_message(body: bytes) -> str:
    """What Triton says in an error body ``{"error": "..."}``; of any other body, its text."""
    text = body[:_LONGEST_MESSAGE].decode("utf-8", errors="replace")
    try:
        value: Any = json.loads(text)
    except ValueError:
        return text.strip()
    return str(value["error"]) if isinstance(value, dict) and "error" in value else text.strip()
