"""The exceptions of constructs_triton_client.

::

    ConstructsTritonError
    ├── InvalidValueError (ValueError)   an argument is out of range, malformed or unknown
    ├── CodecError (ValueError)
    │   ├── RequestEncodingError         arrays cannot be encoded as a request
    │   └── ResponseDecodingError        bytes cannot be decoded as a response
    ├── InvocationError                  an endpoint returned an error; carries the status
    │   ├── EndpointThrottledError       too many requests: wait, or add instances
    │   ├── NoCapacityError              an inference component has no copy yet: wait for the first one
    │   ├── ModelNotReadyError           a multi-model endpoint is still loading the model: try again soon
    │   └── ModelOutOfMemoryError        the model does not fit beside the loaded ones
    └── MissingDependencyError           an optional package is not installed

Messages read ``<where>: <what is wrong>[, got <value>]; <how to fix it>``. The package
constructs-triton raises the same classes and adds its own.
"""

from __future__ import annotations

from constructs_triton_core.visible_text import visible_lines

__all__ = [
    "CodecError",
    "ConstructsTritonError",
    "EndpointThrottledError",
    "InvalidValueError",
    "InvocationError",
    "MissingDependencyError",
    "ModelNotReadyError",
    "ModelOutOfMemoryError",
    "NoCapacityError",
    "RequestEncodingError",
    "ResponseDecodingError",
]


class ConstructsTritonError(Exception):
    """Base class of every error that this library raises deliberately.

    Its text shows control characters as escapes, because messages quote files, names and servers, and Python
    prints them to a terminal or a CI log.
    """

    def __str__(self) -> str:
        return visible_lines(super().__str__())


class InvalidValueError(ConstructsTritonError, ValueError):
    """A property or argument is out of range or malformed, or contradicts another."""


class CodecError(ConstructsTritonError, ValueError):
    """Bytes or arrays do not follow the KServe v2 protocol."""


class RequestEncodingError(CodecError):
    """Arrays cannot be encoded as a request."""


class ResponseDecodingError(CodecError):
    """Bytes cannot be decoded as a response."""


class InvocationError(ConstructsTritonError):
    """An endpoint returned an error.

    Args:
        message: Text of the error.
        status: HTTP status of the model or the service; ``None`` if the transport does not know it.
        model_message: Triton's message; ``None`` if there is none.
        request_id: Id of the request, for AWS support; ``None`` if the transport does not know it.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        model_message: str | None = None,
        request_id: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.model_message = model_message
        self.request_id = request_id


class EndpointThrottledError(InvocationError):
    """More requests than the account or the endpoint accepts, after all retries."""


class NoCapacityError(InvocationError):
    """An inference component has no copy. The request starts the first one, which takes minutes."""


class ModelNotReadyError(InvocationError):
    """A multi-model endpoint is still loading the model, after all retries; loading continues."""


class ModelOutOfMemoryError(InvocationError):
    """The container does not have enough memory to load or run the model (status 507)."""


class MissingDependencyError(ConstructsTritonError):
    """An optional package or a system library is not installed; the message contains the install command."""
